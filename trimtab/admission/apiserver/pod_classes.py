"""Simulates the plugins that give a pod what its classes contain: Priority, RuntimeClass, and DefaultTolerationSeconds.

Priority (plugin/pkg/admission/priority/admission.go, 1.36) computes the priority number from the class, and rejects a
pod that contains another number. So a webhook that changes `priorityClassName` must also remove `priority` and
`preemptionPolicy`.

DefaultTolerationSeconds (plugin/pkg/admission/defaulttolerationseconds/admission.go, 1.36) uses the server's default of
300 s for both taints, `not-ready` and `unreachable`.

RuntimeClass (plugin/pkg/admission/runtimeclass/admission.go, 1.36) sets overhead, node selector and tolerations of the
class that a pod names, in both passes, and checks the overhead once more at the end.

Tolerations are merged by `MergeTolerations` (pkg/util/tolerations/tolerations.go, 1.36). That function does not treat
an absent operator and `operator: Equal` alike: a toleration without an operator covers one with `operator: Equal`, but
not the other way round.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resource_sums import round_quantities
from trimtab.cluster.api.core import PriorityClass, RuntimeClass, Scheduling
from trimtab.cluster.api.meta import Metadata, UnsetType, change, value_or
from trimtab.cluster.api.pod import Pod, PodSpec, Toleration
from trimtab.cluster.resources import is_same_list
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import PodContext

PRIORITY_PLUGIN = "Priority"
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
    # The global default class. If several were created at the same time, it is the one with the lowest value; if
    # there is none, a class with priority 0.
    priority_class = (
        facts.priority_classes.get(class_name) or BUILT_IN.get(class_name)
        if class_name
        else min(
            (c for c in facts.priority_classes.values() if c.global_default), key=lambda c: c.value, default=_NO_CLASS
        )
    )
    if priority_class is None:
        return PodRejected(403, PRIORITY_PLUGIN, f"no PriorityClass with name {class_name} was found")
    return _find_contradiction(pod.spec, priority_class) or change(pod, spec=_with_priority(pod.spec, priority_class))


def names_missing_class(spec: PodSpec, names: Container[str]) -> bool:
    """Returns whether the pod names a PriorityClass that is neither among `names` nor in every cluster."""
    name = value_or(spec.priority_class_name, "")
    return bool(name) and name not in names and name not in BUILT_IN


def _find_contradiction(spec: PodSpec, priority_class: PriorityClass) -> PodRejected | None:
    field = "must not be provided in pod spec; priority admission controller computed"
    if not isinstance(spec.priority, UnsetType) and spec.priority != priority_class.value:
        message = f"the integer value of priority ({spec.priority}) {field} {priority_class.value}"
        return PodRejected(403, PRIORITY_PLUGIN, f"{message} from the given PriorityClass name")
    if not isinstance(spec.preemption_policy, UnsetType) and spec.preemption_policy != priority_class.preemption_policy:
        message = f"the string value of PreemptionPolicy ({spec.preemption_policy}) {field}"
        return PodRejected(
            403, PRIORITY_PLUGIN, f"{message} {priority_class.preemption_policy} from the given PriorityClass name"
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
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
        for key in NODE_TAINTS
        if not any(toleration.key in ("", key) and toleration.effect in ("", "NoExecute") for toleration in tolerations)
    )
    return change(pod, spec=change(pod.spec, tolerations=tolerations + missing)) if missing else pod


_NO_LIMIT = float("inf")
_GroupKey = tuple[str, str, str | None]
"""(key, effect, value), where the value is None if the operator is Exists."""


def merge_tolerations(first: tuple[Toleration, ...], second: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Returns the tolerations of both lists in order, without those that another toleration covers; of equal ones, the
    first stays. This also applies to two tolerations of the pod's own list.

    The server compares each toleration with every other. Here, tolerations that differ only in their seconds form a
    group, so that each is compared with only eight groups: a pod may have thousands of tolerations.
    """
    tolerations = first + second
    following, covered_by_later = _LongestTolerations(), []
    for toleration in reversed(tolerations):
        covered_by_later.append(following.covers_toleration(toleration))
        following.add_toleration(toleration)
    merged: list[Toleration] = []
    merged_set: set[Toleration] = set()
    preceding = _LongestTolerations()
    for toleration, is_covered in zip(tolerations, reversed(covered_by_later), strict=True):
        if not is_covered and toleration not in merged_set and not preceding.covers_toleration(toleration):
            merged.append(toleration)
            preceding.add_toleration(toleration)
            merged_set.add(toleration)
    return tuple(merged)


@dataclass(slots=True)
class _LongestTolerations:
    """For each group of tolerations, the two with the longest durations that are not equal to each other."""

    _groups: dict[_GroupKey, tuple[Toleration, Toleration | None]] = field(default_factory=dict)

    def add_toleration(self, toleration: Toleration) -> None:
        if toleration.operator not in ("", "Equal", "Exists"):
            return  # covers only equal tolerations
        group = (toleration.key, toleration.effect, None if toleration.operator == "Exists" else toleration.value)
        best, second = self._groups.get(group, (toleration, None))
        if toleration == best:
            second = second if group in self._groups else None
        elif _seconds_of(toleration) > _seconds_of(best):
            best, second = toleration, best
        elif second is None or _seconds_of(toleration) > _seconds_of(second):
            second = toleration
        self._groups[group] = (best, second)

    def covers_toleration(self, toleration: Toleration) -> bool:
        """Returns whether one of the stored tolerations covers the given one without being equal to it (`isSuperset` in
        the same file)."""
        needed = toleration.toleration_seconds if isinstance(toleration.toleration_seconds, int) else _NO_LIMIT
        for key, matches_all_keys in ((toleration.key, False), ("", True)):
            for effect in {"", toleration.effect}:
                for value in (
                    (None, toleration.value) if toleration.operator == "Equal" and not matches_all_keys else (None,)
                ):
                    for other in self._groups.get((key, effect, value), ()):
                        if other is not None and other != toleration and _seconds_of(other) >= needed:
                            return True
        return False


def _seconds_of(toleration: Toleration) -> float:
    """Returns the duration of a toleration in seconds. The field counts only for NoExecute; otherwise the duration is
    unlimited."""
    if toleration.effect != "NoExecute" or not isinstance(toleration.toleration_seconds, int):
        return _NO_LIMIT
    return toleration.toleration_seconds


RUNTIME_CLASS_PLUGIN = "RuntimeClass"
_OVERHEAD_MISMATCH = PodRejected(
    403, RUNTIME_CLASS_PLUGIN, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
)
_OVERHEAD_WITHOUT_CLASS = PodRejected(
    403, RUNTIME_CLASS_PLUGIN, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


def apply_runtime_class(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the pod with all fields that its RuntimeClass defines. It is unchanged if it names no class, or if
    classes have not been listed yet."""
    runtime_class = _find_class(pod, facts)
    if runtime_class is None or isinstance(runtime_class, PodRejected):
        return runtime_class or pod
    spec = _set_overhead(pod.spec, runtime_class)
    if not isinstance(spec, PodRejected):
        spec = _set_scheduling(spec, runtime_class.scheduling)
    return spec if isinstance(spec, PodRejected) else change(pod, spec=spec)


def with_class_overhead(pod_context: PodContext) -> Pod:
    """Returns the pod with all fields that its RuntimeClass defines, if the API server fills these in."""
    if pod_context.settings.overhead != "server" or not value_or(pod_context.pod.spec.runtime_class_name, ""):
        return pod_context.pod
    result = apply_runtime_class(pod_context.pod, pod_context.facts, pod_context.namespace)
    return pod_context.pod if isinstance(result, PodRejected) else result


def check_overhead(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the rejection of a pod whose overhead differs from that of its class; otherwise the pod. If the class has
    no overhead, the field must be absent; an empty map is not enough."""
    if "RuntimeClass" not in facts.listed_kinds:
        return pod
    runtime_class = _find_class(pod, facts)
    if isinstance(runtime_class, PodRejected):
        return runtime_class
    fixed = round_quantities(runtime_class.overhead.pod_fixed) if runtime_class else {}
    if fixed:
        return pod if is_same_list(value_or(pod.spec.overhead, {}), fixed) else _OVERHEAD_MISMATCH
    return pod if isinstance(pod.spec.overhead, UnsetType) else _OVERHEAD_WITHOUT_CLASS


def _find_class(pod: Pod, facts: ClusterFacts) -> RuntimeClass | PodRejected | None:
    name = pod.spec.runtime_class_name
    if isinstance(name, UnsetType) or "RuntimeClass" not in facts.listed_kinds:
        return None
    missing = PodRejected(403, RUNTIME_CLASS_PLUGIN, f'pod rejected: RuntimeClass "{name}" not found')
    return facts.runtime_classes.get(name, missing)


def _set_overhead(spec: PodSpec, runtime_class: RuntimeClass) -> PodSpec | PodRejected:
    fixed = round_quantities(runtime_class.overhead.pod_fixed)
    if not fixed:
        return spec
    current = value_or(spec.overhead, {})
    return _OVERHEAD_MISMATCH if current and not is_same_list(current, fixed) else change(spec, overhead=dict(fixed))


def _set_scheduling(spec: PodSpec, scheduling: Scheduling) -> PodSpec | PodRejected:
    if scheduling == Scheduling():
        return spec
    selector = value_or(spec.node_selector, {})
    for key, value in scheduling.node_selector.items():
        if selector.get(key, value) != value:
            return _conflict(key, value, selector[key])
    merged_selector = selector | scheduling.node_selector
    if merged_selector:
        spec = change(spec, node_selector=merged_selector)
    tolerations = merge_tolerations(value_or(spec.tolerations, ()), scheduling.tolerations)
    return change(spec, tolerations=tolerations) if tolerations else spec


def _conflict(key: str, class_value: str, pod_value: str) -> PodRejected:
    from_class, from_pod = (
        f"runtimeClass.scheduling.nodeSelector[{key}] = {class_value}",
        f"pod.spec.nodeSelector[{key}] = {pod_value}",
    )
    return PodRejected(403, RUNTIME_CLASS_PLUGIN, f"conflict: {from_class}; {from_pod}")
