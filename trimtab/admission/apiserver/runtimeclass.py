"""What does a runtime class bring to a pod, and what does it contradict?

The RuntimeClass plugin (plugin/pkg/admission/runtimeclass/admission.go, 1.36): it fills overhead, node selector and
tolerations of the class that a pod names, in both passes, and checks the overhead once more at the end.

Which tolerations are left when a class's join a pod's?

`MergeTolerations` (pkg/util/tolerations/tolerations.go, 1.36). Its idea of "covers" is narrower than what a toleration
means: one without operator covers `operator: Equal`, not the other way round.
"""

from dataclasses import dataclass, field

from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resource_sums import stored
from trimtab.cluster.api.core import RuntimeClass, Scheduling
from trimtab.cluster.api.meta import UnsetType, change, get
from trimtab.cluster.api.pod import Pod, PodSpec, Toleration
from trimtab.cluster.resources import same
from trimtab.policy.cluster_facts import ClusterFacts

_FOR_EVER = float("inf")
_Group = tuple[str, str, str | None]
"""Key, effect, and the value; None where the operator is Exists and no value counts."""


def merge(first: tuple[Toleration, ...], second: tuple[Toleration, ...]) -> tuple[Toleration, ...]:
    """Both, in order, without any that another one covers; of equal ones the first stays. Also among the pod's own.

    The server compares each with each. Here tolerations that differ in their seconds alone stand together, so that
    each is compared with eight groups: a pod may hold thousands.
    """
    every = first + second
    later, covered_later = _Longest(), []
    for one in reversed(every):
        covered_later.append(later.covers(one))
        later.add(one)
    merged: list[Toleration] = []
    before, present = _Longest(), set[Toleration]()
    for one, is_covered in zip(every, reversed(covered_later), strict=True):
        if not is_covered and one not in present and not before.covers(one):
            merged.append(one)
            before.add(one)
            present.add(one)
    return tuple(merged)


@dataclass(slots=True)
class _Longest:
    """Of each group the two that last longest and are not equal."""

    _groups: dict[_Group, tuple[Toleration, Toleration | None]] = field(default_factory=dict)

    def add(self, one: Toleration) -> None:
        if one.operator not in ("", "Equal", "Exists"):
            return  # covers nothing but its equal
        group = (one.key, one.effect, None if one.operator == "Exists" else one.value)
        best, second = self._groups.get(group, (one, None))
        if one == best:
            second = second if group in self._groups else None
        elif _seconds(one) > _seconds(best):
            best, second = one, best
        elif second is None or _seconds(one) > _seconds(second):
            second = one
        self._groups[group] = (best, second)

    def covers(self, one: Toleration) -> bool:
        """Does any of these that is not its equal cover it? (`isSuperset` in the same file.)"""
        needed = one.toleration_seconds if isinstance(one.toleration_seconds, int) else _FOR_EVER
        for key, everything in ((one.key, False), ("", True)):
            for effect in {"", one.effect}:
                for value in (None, one.value) if one.operator == "Equal" and not everything else (None,):
                    for other in self._groups.get((key, effect, value), ()):
                        if other is not None and other != one and _seconds(other) >= needed:
                            return True
        return False


def _seconds(one: Toleration) -> float:
    """For how long it tolerates; only for NoExecute do seconds count."""
    if one.effect != "NoExecute" or not isinstance(one.toleration_seconds, int):
        return _FOR_EVER
    return one.toleration_seconds


PLUGIN = "RuntimeClass"
_MISMATCH = PodRejected(403, PLUGIN, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
_STRAY = PodRejected(
    403, PLUGIN, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)  # fmt: skip


def admit(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """The pod with all that its class brings; as it came where it names none or no class was ever listed."""
    found = _class_of(pod, facts)
    if found is None or isinstance(found, PodRejected):
        return found or pod
    spec = _overhead(pod.spec, found)
    if not isinstance(spec, PodRejected):
        spec = _scheduling(spec, found.scheduling)
    return spec if isinstance(spec, PodRejected) else change(pod, spec=spec)


def validate(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Overhead is exactly the class's; without such a class there is none, not even an empty map."""
    if "RuntimeClass" not in facts.known:
        return pod
    found = _class_of(pod, facts)
    if isinstance(found, PodRejected):
        return found
    fixed = stored(found.overhead.pod_fixed) if found else {}
    if fixed:
        return pod if same(get(pod.spec.overhead, {}), fixed) else _MISMATCH
    return pod if isinstance(pod.spec.overhead, UnsetType) else _STRAY


def _class_of(pod: Pod, facts: ClusterFacts) -> RuntimeClass | PodRejected | None:
    name = pod.spec.runtime_class_name
    if isinstance(name, UnsetType) or "RuntimeClass" not in facts.known:
        return None
    missing = PodRejected(403, PLUGIN, f'pod rejected: RuntimeClass "{name}" not found')
    return facts.runtime_classes.get(name, missing)


def _overhead(spec: PodSpec, found: RuntimeClass) -> PodSpec | PodRejected:
    fixed = stored(found.overhead.pod_fixed)
    if not fixed:
        return spec
    own = get(spec.overhead, {})
    return _MISMATCH if own and not same(own, fixed) else change(spec, overhead=dict(fixed))


def _scheduling(spec: PodSpec, scheduling: Scheduling) -> PodSpec | PodRejected:
    if scheduling == Scheduling():
        return spec
    own = get(spec.node_selector, {})
    for key, wanted in scheduling.node_selector.items():
        if own.get(key, wanted) != wanted:
            return _conflict(key, wanted, own[key])
    selector = own | scheduling.node_selector
    if selector:
        spec = change(spec, node_selector=selector)
    merged = merge(get(spec.tolerations, ()), scheduling.tolerations)
    return change(spec, tolerations=merged) if merged else spec


def _conflict(key: str, wanted: str, have: str) -> PodRejected:
    ours, theirs = f"runtimeClass.scheduling.nodeSelector[{key}] = {wanted}", f"pod.spec.nodeSelector[{key}] = {have}"
    return PodRejected(403, PLUGIN, f"conflict: {ours}; {theirs}")
