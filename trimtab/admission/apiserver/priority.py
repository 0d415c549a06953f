"""Simulates the Priority and DefaultTolerationSeconds plugins.

Priority (plugin/pkg/admission/priority/admission.go, 1.36) computes the priority number from the class, and rejects a
pod that contains another number. So a webhook that changes `priorityClassName` must also remove `priority` and
`preemptionPolicy`.

DefaultTolerationSeconds (plugin/pkg/admission/defaulttolerationseconds/admission.go, 1.36) uses the server's default of
300 s for both taints, `not-ready` and `unreachable`.
"""

from collections.abc import Container, Mapping

from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.core import PriorityClass
from trimtab.cluster.api.meta import Metadata, UnsetType, change, value_or
from trimtab.cluster.api.pod import Pod, PodSpec, Toleration
from trimtab.policy.cluster_facts import ClusterFacts

PLUGIN = "Priority"
BUILT_IN = {
    name: PriorityClass(metadata=Metadata(name=name), value=value)
    for name, value in (("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000))
}
"""The PriorityClasses that exist in every cluster (pkg/apis/scheduling/v1/helpers.go)."""
_NO_CLASS = PriorityClass()


def resolve_priority(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod with its PriorityClass (the cluster's default if it names none), its priority number and its
    preemption policy."""
    if "PriorityClass" not in facts.listed_kinds:
        return pod
    class_name = value_or(pod.spec.priority_class_name, "")
    priority_class = (
        facts.priority_classes.get(class_name) or BUILT_IN.get(class_name)
        if class_name
        else _default_class(facts.priority_classes)
    )
    if priority_class is None:
        return PodRejected(403, PLUGIN, f"no PriorityClass with name {class_name} was found")
    return _find_contradiction(pod.spec, priority_class) or change(pod, spec=_with_priority(pod.spec, priority_class))


def names_missing_class(spec: PodSpec, names: Container[str]) -> bool:
    """Returns whether the pod names a PriorityClass that is neither among `names` nor in every cluster."""
    name = value_or(spec.priority_class_name, "")
    return bool(name) and name not in names and name not in BUILT_IN


def _default_class(classes: Mapping[str, PriorityClass]) -> PriorityClass:
    """Returns the global default class. If several were created at the same time, it is the one with the lowest value;
    if there is none, a class with priority 0."""
    return min((c for c in classes.values() if c.global_default), key=lambda c: c.value, default=_NO_CLASS)


def _find_contradiction(spec: PodSpec, priority_class: PriorityClass) -> PodRejected | None:
    field = "must not be provided in pod spec; priority admission controller computed"
    if not isinstance(spec.priority, UnsetType) and spec.priority != priority_class.value:
        message = f"the integer value of priority ({spec.priority}) {field} {priority_class.value}"
        return PodRejected(403, PLUGIN, f"{message} from the given PriorityClass name")
    if not isinstance(spec.preemption_policy, UnsetType) and spec.preemption_policy != priority_class.preemption_policy:
        message = f"the string value of PreemptionPolicy ({spec.preemption_policy}) {field}"
        return PodRejected(
            403, PLUGIN, f"{message} {priority_class.preemption_policy} from the given PriorityClass name"
        )
    return None


def _with_priority(spec: PodSpec, priority_class: PriorityClass) -> PodSpec:
    filled = change(spec, priority=priority_class.value, preemption_policy=priority_class.preemption_policy)
    return change(filled, priority_class_name=priority_class.metadata.name) if priority_class.metadata.name else filled


TOLERATION_SECONDS = "DefaultTolerationSeconds"
NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_toleration_seconds(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod with tolerations of the taints `not-ready` and `unreachable` for 300 s, except for a taint that
    the pod already tolerates. Never rejects."""
    tolerations = value_or(pod.spec.tolerations, ())
    missing = tuple(
        _toleration_for(key)
        for key in NODE_TAINTS
        if not any(_covers_taint(toleration, key) for toleration in tolerations)
    )
    return change(pod, spec=change(pod.spec, tolerations=tolerations + missing)) if missing else pod


def _covers_taint(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _toleration_for(key: str) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
