"""Runs a pod through the API server's admission, with the webhook in the chain, and returns the pod as it is stored.

The order is the server's own (pkg/kubeapiserver/options/plugins.go, 1.36) and does not depend on flags. Both passes run
all plugins of the server. The webhook is called a second time only if its reinvocationPolicy is IfNeeded and the
plugins changed the pod after its first call; there is no third pass (apiserver pkg/admission: reinvocation.go,
plugin/webhook/mutating/dispatcher.go). Validation follows, the API's own first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from trimtab.admission.apiserver import (
    defaulting,
    limitranger,
    pod_classes,
    resourcequota,
    serialization,
    validate_pod,
)
from trimtab.admission.apiserver.outcome import ChainStep, PodAdmitted, PodRejected
from trimtab.cluster.api.pod import Pod
from trimtab.policy.cluster_facts import ClusterFacts

Plugin = Callable[[Pod, ClusterFacts, str], Pod | PodRejected]
Webhook = Callable[[Pod], Pod]
"""The webhook as a function: the pod in the review → the pod after the webhook's patch."""

ARRIVAL = (defaulting.check_quantities, defaulting.set_defaults)
IN_TREE = (
    limitranger.apply_limit_ranges,
    pod_classes.resolve_priority,
    pod_classes.admit_toleration_seconds,
    pod_classes.apply_runtime_class,
)
VALIDATING = (
    validate_pod.validate_pod,
    limitranger.check_limit_ranges,
    pod_classes.check_overhead,
    resourcequota.check_quotas,
)
NAMES: dict[Plugin, str] = {
    defaulting.check_quantities: defaulting.PLUGIN,
    defaulting.set_defaults: defaulting.DEFAULTING,
    limitranger.apply_limit_ranges: limitranger.PLUGIN,
    pod_classes.resolve_priority: pod_classes.PRIORITY_PLUGIN,
    pod_classes.admit_toleration_seconds: pod_classes.TOLERATION_SECONDS,
    pod_classes.apply_runtime_class: pod_classes.RUNTIME_CLASS_PLUGIN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInputs:
    """The inputs of all plugins of one chain."""

    facts: ClusterFacts
    namespace: str
    runtime_class_admission: bool = True

    def enabled_plugins(self, chain: tuple[Plugin, ...]) -> tuple[Plugin, ...]:
        disabled = () if self.runtime_class_admission else (pod_classes.apply_runtime_class, pod_classes.check_overhead)
        return tuple(plugin for plugin in chain if plugin not in disabled)


def run_admission_chain(
    pod: Pod,
    facts: ClusterFacts,
    namespace: str,
    webhook: Webhook,
    *,
    reinvocation: bool = True,
    runtime_class_admission: bool = True,
    second_call_comes: bool = True,
) -> PodAdmitted | PodRejected:
    """Returns the pod as it would be stored, with the steps that changed it; or the rejection, in the server's words.

    `reinvocation`: whether the webhook is registered with `reinvocationPolicy: IfNeeded`. `runtime_class_admission`:
    False for a server without the RuntimeClass plugin. `second_call_comes`: False for a second call that times out
    under `failurePolicy: Ignore`. `pod` must be a pod and not a template, because templates do not go through this
    chain.
    """
    inputs = ChainInputs(facts=facts, namespace=namespace, runtime_class_admission=runtime_class_admission)
    first = _run_plugins(PodAdmitted(pod=pod, calls=0), 1, (*ARRIVAL, *IN_TREE), inputs)
    if isinstance(first, PodRejected):
        return first
    after_webhook = _call_webhook(first, 1, webhook, inputs)
    if isinstance(after_webhook, PodRejected) or after_webhook.pod is first.pod:
        return _validate_and_store(after_webhook, inputs)
    second = _second_pass(after_webhook, webhook if reinvocation and second_call_comes else None, inputs)
    return _validate_and_store(second, inputs)


def _second_pass(after_first: PodAdmitted, webhook: Webhook | None, inputs: ChainInputs) -> PodAdmitted | PodRejected:
    """Runs the second pass. `webhook` is None if no second call can happen."""
    defaulted = _run_plugins(after_first, 2, IN_TREE, inputs)
    if (
        isinstance(defaulted, PodRejected)
        or webhook is None
        or serialization.is_semantically_equal(after_first.pod, defaulted.pod)
    ):
        return defaulted
    return _call_webhook(defaulted, 2, webhook, inputs)


def _run_plugins(
    admitted: PodAdmitted, number: int, chain: tuple[Plugin, ...], inputs: ChainInputs
) -> PodAdmitted | PodRejected:
    for plugin in inputs.enabled_plugins(chain):
        result = plugin(admitted.pod, inputs.facts, inputs.namespace)
        if isinstance(result, PodRejected):
            return result
        admitted = _with_step(admitted, number, NAMES[plugin], result)
    return admitted


def _call_webhook(
    admitted: PodAdmitted, number: int, webhook: Webhook, inputs: ChainInputs
) -> PodAdmitted | PodRejected:
    """Calls the webhook. A changed pod is serialized to JSON and gets defaults again; an unchanged pod stays the same
    object."""
    after_call = replace(admitted, calls=admitted.calls + 1)
    returned = webhook(serialization.round_trip(admitted.pod))
    if not defaulting.has_readable_quantities(returned):
        return defaulting.UNREADABLE_RESULT
    if serialization.is_semantically_equal(admitted.pod, returned):
        return after_call
    return _run_plugins(
        _with_step(after_call, number, "webhook", serialization.round_trip(returned)), number, ARRIVAL, inputs
    )


def _with_step(admitted: PodAdmitted, number: int, name: str, pod: Pod) -> PodAdmitted:
    if pod is admitted.pod or pod == admitted.pod:
        return admitted
    return replace(admitted, pod=pod, steps=(*admitted.steps, ChainStep(number, name, admitted.pod, pod)))


def _validate_and_store(admitted: PodAdmitted | PodRejected, inputs: ChainInputs) -> PodAdmitted | PodRejected:
    if isinstance(admitted, PodRejected):
        return admitted
    for plugin in inputs.enabled_plugins(VALIDATING):
        result = plugin(admitted.pod, inputs.facts, inputs.namespace)
        if isinstance(result, PodRejected):
            return result
    return _default_on_read(replace(admitted, pod=serialization.round_trip(admitted.pod)), inputs)


def _default_on_read(admitted: PodAdmitted, inputs: ChainInputs) -> PodAdmitted | PodRejected:
    """Applies defaults to the stored pod once more, as the API server does each time it reads a pod from etcd.

    So the amounts that LimitRanger gave to containers become pod-level requests, which neither validation nor quotas
    have checked.
    """
    return _run_plugins(
        admitted, max((step.number for step in admitted.steps), default=1), (defaulting.set_defaults,), inputs
    )
