"""Which pod is stored when this one is created, with our webhook in the chain?

The order is the server's own (pkg/kubeapiserver/options/plugins.go, 1.36), not that of any flag. Both passes run the
whole in-tree chain; our webhook is called a second time only if its policy is IfNeeded and the in-tree plugins changed
what it had left; there is no third pass (apiserver pkg/admission: reinvocation.go, plugin/webhook/mutating/
dispatcher.go). Validation comes afterwards, the API's own first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from trimtab.admission.apiserver import (
    defaulting,
    limitranger,
    priority,
    resourcequota,
    runtimeclass,
    serialization,
    validate_pod,
)
from trimtab.admission.apiserver.outcome import ChainStep, PodAdmitted, PodRejected
from trimtab.cluster.api.pod import Pod
from trimtab.policy.cluster_facts import ClusterFacts

Plugin = Callable[[Pod, ClusterFacts, str], Pod | PodRejected]
Webhook = Callable[[Pod], Pod]
"""Ours: the pod as the review shows it → the pod it decides on."""

ARRIVAL = (defaulting.decode, defaulting.default)
IN_TREE = (limitranger.admit, priority.admit, priority.admit_toleration_seconds, runtimeclass.admit)
VALIDATING = (validate_pod.validate, limitranger.validate, runtimeclass.validate, resourcequota.validate)
NAMES: dict[Plugin, str] = {
    defaulting.decode: defaulting.PLUGIN,
    defaulting.default: defaulting.DEFAULTING,
    limitranger.admit: limitranger.PLUGIN,
    priority.admit: priority.PLUGIN,
    priority.admit_toleration_seconds: priority.TOLERATION_SECONDS,
    runtimeclass.admit: runtimeclass.PLUGIN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInputs:
    """What stands around our webhook."""

    facts: ClusterFacts
    namespace: str
    runtime_class_admission: bool = True

    def plugins(self, chain: tuple[Plugin, ...]) -> tuple[Plugin, ...]:
        off = () if self.runtime_class_admission else (runtimeclass.admit, runtimeclass.validate)
        return tuple(plugin for plugin in chain if plugin not in off)


def admit(
    pod: Pod,
    facts: ClusterFacts,
    namespace: str,
    webhook: Webhook,
    *,
    reinvocation: bool = True,
    runtime_class_admission: bool = True,
    second_call_comes: bool = True,
) -> PodAdmitted | PodRejected:
    """The pod as it would be stored, with what changed it on the way; or who refused it, in the server's words.

    reinvocation: our webhook is registered with `reinvocationPolicy: IfNeeded`.
    runtime_class_admission: False for a server that was started without the RuntimeClass plugin.
    second_call_comes: False for a second call that times out under `failurePolicy: Ignore`.
    The pod is one, not a template: the caller builds it (a Deployment's template meets none of this).
    """
    world = ChainInputs(facts=facts, namespace=namespace, runtime_class_admission=runtime_class_admission)
    first = _through(PodAdmitted(pod=pod, calls=0), 1, (*ARRIVAL, *IN_TREE), world)
    if isinstance(first, PodRejected):
        return first
    called = _called(first, 1, webhook, world)
    if isinstance(called, PodRejected) or called.pod is first.pod:
        return _validated(called, world)
    second = _second_pass(called, webhook if reinvocation and second_call_comes else None, world)
    return _validated(second, world)


def _second_pass(left: PodAdmitted, webhook: Webhook | None, world: ChainInputs) -> PodAdmitted | PodRejected:
    """`webhook` is None where no second call can come."""
    found = _through(left, 2, IN_TREE, world)
    if isinstance(found, PodRejected) or webhook is None or serialization.same(left.pod, found.pod):
        return found
    return _called(found, 2, webhook, world)


def _through(at: PodAdmitted, number: int, chain: tuple[Plugin, ...], world: ChainInputs) -> PodAdmitted | PodRejected:
    for plugin in world.plugins(chain):
        found = plugin(at.pod, world.facts, world.namespace)
        if isinstance(found, PodRejected):
            return found
        at = _noted(at, number, NAMES[plugin], found)
    return at


def _called(at: PodAdmitted, number: int, webhook: Webhook, world: ChainInputs) -> PodAdmitted | PodRejected:
    """After a change the pod has been through JSON and is defaulted again; without one it stays the very same."""
    counted = replace(at, calls=at.calls + 1)
    decided = webhook(serialization.sent(at.pod))
    if not defaulting.readable(decided):
        return defaulting.UNREADABLE_RESULT
    if serialization.same(at.pod, decided):
        return counted
    return _through(_noted(counted, number, "webhook", serialization.sent(decided)), number, ARRIVAL, world)


def _noted(at: PodAdmitted, number: int, name: str, pod: Pod) -> PodAdmitted:
    if pod is at.pod or pod == at.pod:
        return at
    return replace(at, pod=pod, steps=(*at.steps, ChainStep(number, name, at.pod, pod)))


def _validated(at: PodAdmitted | PodRejected, world: ChainInputs) -> PodAdmitted | PodRejected:
    if isinstance(at, PodRejected):
        return at
    for plugin in world.plugins(VALIDATING):
        found = plugin(at.pod, world.facts, world.namespace)
        if isinstance(found, PodRejected):
            return found
    return _read_back(replace(at, pod=serialization.sent(at.pod)), world)


def _read_back(at: PodAdmitted, world: ChainInputs) -> PodAdmitted | PodRejected:
    """Whoever reads the pod from the store, the creator first, gets it defaulted once more.

    So what LimitRanger gave the containers becomes a pod-level request that neither validation nor quota has seen.
    """
    return _through(at, max((step.number for step in at.steps), default=1), (defaulting.default,), world)
