"""Which pod is stored when this one is created, with our webhook in the chain?

The order is the server's own (pkg/kubeapiserver/options/plugins.go, 1.36), not that of any flag. Both passes run the
whole in-tree chain; our webhook is called a second time only if its policy is IfNeeded and the in-tree plugins changed
what it had left; there is no third pass (apiserver pkg/admission: reinvocation.go, plugin/webhook/mutating/
dispatcher.go). Validation comes afterwards, the API's own first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from trimtab.admission.apiserver import (
    decoding,
    defaulting,
    limitranger,
    priority,
    quota,
    runtimeclass,
    tolerationseconds,
    validation,
    wire,
)
from trimtab.admission.apiserver.outcome import Refused, Step, Stored
from trimtab.cluster.api.pod import Pod
from trimtab.policy.facts import Facts

Plugin = Callable[[Pod, Facts, str], Pod | Refused]
Webhook = Callable[[Pod], Pod]
"""Ours: the pod as the review shows it → the pod it decides on."""

ARRIVAL = (decoding.decode, defaulting.default)
IN_TREE = (limitranger.admit, priority.admit, tolerationseconds.admit, runtimeclass.admit)
VALIDATING = (validation.validate, limitranger.validate, runtimeclass.validate, quota.validate)
NAMES: dict[Plugin, str] = {
    decoding.decode: decoding.PLUGIN,
    defaulting.default: defaulting.PLUGIN,
    limitranger.admit: limitranger.PLUGIN,
    priority.admit: priority.PLUGIN,
    tolerationseconds.admit: tolerationseconds.PLUGIN,
    runtimeclass.admit: runtimeclass.PLUGIN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What stands around our webhook."""

    facts: Facts
    namespace: str
    runtime_class_admission: bool = True

    def plugins(self, chain: tuple[Plugin, ...]) -> tuple[Plugin, ...]:
        off = () if self.runtime_class_admission else (runtimeclass.admit, runtimeclass.validate)
        return tuple(plugin for plugin in chain if plugin not in off)


def admit(
    pod: Pod,
    facts: Facts,
    namespace: str,
    webhook: Webhook,
    *,
    reinvocation: bool = True,
    runtime_class_admission: bool = True,
    second_call_comes: bool = True,
) -> Stored | Refused:
    """The pod as it would be stored, with what changed it on the way; or who refused it, in the server's words.

    reinvocation: our webhook is registered with `reinvocationPolicy: IfNeeded`.
    runtime_class_admission: False for a server that was started without the RuntimeClass plugin.
    second_call_comes: False for a second call that times out under `failurePolicy: Ignore`.
    The pod is one, not a template: the caller builds it (a Deployment's template meets none of this).
    """
    world = World(facts=facts, namespace=namespace, runtime_class_admission=runtime_class_admission)
    first = _through(Stored(pod=pod, calls=0), 1, (*ARRIVAL, *IN_TREE), world)
    if isinstance(first, Refused):
        return first
    called = _called(first, 1, webhook, world)
    if isinstance(called, Refused) or called.pod is first.pod:
        return _validated(called, world)
    second = _second_pass(called, webhook if reinvocation and second_call_comes else None, world)
    return _validated(second, world)


def _second_pass(left: Stored, webhook: Webhook | None, world: World) -> Stored | Refused:
    """`webhook` is None where no second call can come."""
    found = _through(left, 2, IN_TREE, world)
    if isinstance(found, Refused) or webhook is None or wire.same(left.pod, found.pod):
        return found
    return _called(found, 2, webhook, world)


def _through(at: Stored, number: int, chain: tuple[Plugin, ...], world: World) -> Stored | Refused:
    for plugin in world.plugins(chain):
        found = plugin(at.pod, world.facts, world.namespace)
        if isinstance(found, Refused):
            return found
        at = _noted(at, number, NAMES[plugin], found)
    return at


def _called(at: Stored, number: int, webhook: Webhook, world: World) -> Stored | Refused:
    """After a change the pod has been through JSON and is defaulted again; without one it stays the very same."""
    counted = replace(at, calls=at.calls + 1)
    decided = webhook(wire.sent(at.pod))
    if not decoding.readable(decided):
        return decoding.UNREADABLE_RESULT
    if wire.same(at.pod, decided):
        return counted
    return _through(_noted(counted, number, "webhook", wire.sent(decided)), number, ARRIVAL, world)


def _noted(at: Stored, number: int, name: str, pod: Pod) -> Stored:
    if pod is at.pod or pod == at.pod:
        return at
    return replace(at, pod=pod, steps=(*at.steps, Step(number, name, at.pod, pod)))


def _validated(at: Stored | Refused, world: World) -> Stored | Refused:
    if isinstance(at, Refused):
        return at
    for plugin in world.plugins(VALIDATING):
        found = plugin(at.pod, world.facts, world.namespace)
        if isinstance(found, Refused):
            return found
    return _read_back(replace(at, pod=wire.sent(at.pod)), world)


def _read_back(at: Stored, world: World) -> Stored | Refused:
    """Whoever reads the pod from the store, the creator first, gets it defaulted once more.

    So what LimitRanger gave the containers becomes a pod-level request that neither validation nor quota has seen.
    """
    return _through(at, max((step.number for step in at.steps), default=1), (defaulting.default,), world)
