"""Which priority does a pod get, and what may it not say itself?

The Priority plugin (plugin/pkg/admission/priority/admission.go, 1.36). The number is the plugin's: a pod may carry
it only if it is the same. So whoever changes `priorityClassName` removes `priority` and `preemptionPolicy` with it.

How long does a pod stay on a node that is lost?

The DefaultTolerationSeconds plugin (plugin/pkg/admission/defaulttolerationseconds/admission.go, 1.36), with the
server's default of 300 s for both.
"""

from collections.abc import Mapping

from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.core import PriorityClass
from trimtab.cluster.api.meta import Metadata, UnsetType, change, get
from trimtab.cluster.api.pod import Pod, PodSpec, Toleration
from trimtab.policy.cluster_facts import ClusterFacts

PLUGIN = "Priority"
BUILT_IN = {
    name: PriorityClass(metadata=Metadata(name=name), value=value)
    for name, value in (("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000))
}
"""Every cluster has them (pkg/apis/scheduling/v1/helpers.go)."""
_NO_CLASS = PriorityClass()


def admit(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """The pod with its class (the cluster's default where it names none), number and preemption policy."""
    if "PriorityClass" not in facts.known:
        return pod
    wanted = get(pod.spec.priority_class_name, "")
    found = facts.priority_classes.get(wanted) or BUILT_IN.get(wanted) if wanted else _default(facts.priority_classes)
    if found is None:
        return PodRejected(403, PLUGIN, f"no PriorityClass with name {wanted} was found")
    return _contradiction(pod.spec, found) or change(pod, spec=_filled(pod.spec, found))


def _default(classes: Mapping[str, PriorityClass]) -> PriorityClass:
    """The global default; the lowest one should a race have made several; priority 0 where there is none."""
    return min((c for c in classes.values() if c.global_default), key=lambda c: c.value, default=_NO_CLASS)


def _contradiction(spec: PodSpec, found: PriorityClass) -> PodRejected | None:
    field = "must not be provided in pod spec; priority admission controller computed"
    if not isinstance(spec.priority, UnsetType) and spec.priority != found.value:
        told = f"the integer value of priority ({spec.priority}) {field} {found.value}"
        return PodRejected(403, PLUGIN, f"{told} from the given PriorityClass name")
    if not isinstance(spec.preemption_policy, UnsetType) and spec.preemption_policy != found.preemption_policy:
        told = f"the string value of PreemptionPolicy ({spec.preemption_policy}) {field} {found.preemption_policy}"
        return PodRejected(403, PLUGIN, f"{told} from the given PriorityClass name")
    return None


def _filled(spec: PodSpec, found: PriorityClass) -> PodSpec:
    filled = change(spec, priority=found.value, preemption_policy=found.preemption_policy)
    return change(filled, priority_class_name=found.metadata.name) if found.metadata.name else filled


TOLERATION_SECONDS = "DefaultTolerationSeconds"
LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_toleration_seconds(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """The pod tolerating both taints for 300 s, unless it says something of that taint itself. Never refuses."""
    present = get(pod.spec.tolerations, ())
    missing = tuple(_five_minutes(key) for key in LOST if not any(_speaks_of(t, key) for t in present))
    return change(pod, spec=change(pod.spec, tolerations=present + missing)) if missing else pod


def _speaks_of(toleration: Toleration, key: str) -> bool:
    return toleration.key in ("", key) and toleration.effect in ("", "NoExecute")


def _five_minutes(key: str) -> Toleration:
    return Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=300)
