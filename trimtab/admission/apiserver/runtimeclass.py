"""Simulates the RuntimeClass plugin, and merges the tolerations of a class into those of a pod.

The plugin (plugin/pkg/admission/runtimeclass/admission.go, 1.36) sets overhead, node selector and tolerations of the
class that a pod names, in both passes, and checks the overhead once more at the end.

Tolerations are merged by `MergeTolerations` (pkg/util/tolerations/tolerations.go, 1.36). That function does not treat
an absent operator and `operator: Equal` alike: a toleration without an operator covers one with `operator: Equal`, but
not the other way round.
"""

from dataclasses import dataclass, field

from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resource_sums import round_quantities
from trimtab.cluster.api.core import RuntimeClass, Scheduling
from trimtab.cluster.api.meta import UnsetType, change, value_or
from trimtab.cluster.api.pod import Pod, PodSpec, Toleration
from trimtab.cluster.resources import is_same_list
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import PodContext

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
    preceding, merged_set = _LongestTolerations(), set[Toleration]()
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


PLUGIN = "RuntimeClass"
_OVERHEAD_MISMATCH = PodRejected(
    403, PLUGIN, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
)
_OVERHEAD_WITHOUT_CLASS = PodRejected(
    403, PLUGIN, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
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
    missing = PodRejected(403, PLUGIN, f'pod rejected: RuntimeClass "{name}" not found')
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
    return PodRejected(403, PLUGIN, f"conflict: {from_class}; {from_pod}")
