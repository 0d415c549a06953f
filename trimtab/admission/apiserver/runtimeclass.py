"""What does a runtime class bring to a pod, and what does it contradict?

The RuntimeClass plugin (plugin/pkg/admission/runtimeclass/admission.go, 1.36): it fills overhead, node selector and
tolerations of the class that a pod names, in both passes, and checks the overhead once more at the end.
"""

from trimtab.admission.apiserver.outcome import Refused
from trimtab.admission.apiserver.rounding import stored
from trimtab.admission.apiserver.tolerations import merge
from trimtab.cluster.api.meta import UnsetType, change, get
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.api.rules import RuntimeClass, Scheduling
from trimtab.cluster.resources import same
from trimtab.policy.facts import Facts

PLUGIN = "RuntimeClass"
_MISMATCH = Refused(403, PLUGIN, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
_STRAY = Refused(
    403, PLUGIN, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)  # fmt: skip


def admit(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """The pod with all that its class brings; as it came where it names none or no class was ever listed."""
    found = _class_of(pod, facts)
    if found is None or isinstance(found, Refused):
        return found or pod
    spec = _overhead(pod.spec, found)
    if not isinstance(spec, Refused):
        spec = _scheduling(spec, found.scheduling)
    return spec if isinstance(spec, Refused) else change(pod, spec=spec)


def validate(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """Overhead is exactly the class's; without such a class there is none, not even an empty map."""
    if "RuntimeClass" not in facts.known:
        return pod
    found = _class_of(pod, facts)
    if isinstance(found, Refused):
        return found
    fixed = stored(found.overhead.pod_fixed) if found else {}
    if fixed:
        return pod if same(get(pod.spec.overhead, {}), fixed) else _MISMATCH
    return pod if isinstance(pod.spec.overhead, UnsetType) else _STRAY


def _class_of(pod: Pod, facts: Facts) -> RuntimeClass | Refused | None:
    name = pod.spec.runtime_class_name
    if isinstance(name, UnsetType) or "RuntimeClass" not in facts.known:
        return None
    missing = Refused(403, PLUGIN, f'pod rejected: RuntimeClass "{name}" not found')
    return facts.runtime_classes.get(name, missing)


def _overhead(spec: PodSpec, found: RuntimeClass) -> PodSpec | Refused:
    fixed = stored(found.overhead.pod_fixed)
    if not fixed:
        return spec
    own = get(spec.overhead, {})
    return _MISMATCH if own and not same(own, fixed) else change(spec, overhead=dict(fixed))


def _scheduling(spec: PodSpec, scheduling: Scheduling) -> PodSpec | Refused:
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


def _conflict(key: str, wanted: str, have: str) -> Refused:
    ours, theirs = f"runtimeClass.scheduling.nodeSelector[{key}] = {wanted}", f"pod.spec.nodeSelector[{key}] = {have}"
    return Refused(403, PLUGIN, f"conflict: {ours}; {theirs}")
