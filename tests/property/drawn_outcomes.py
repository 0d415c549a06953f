"""Clusters in which a pod may find no room: few nodes of several kinds, tight quotas, known peaks."""

from hypothesis import strategies as st

from tests.build import NAMESPACE, container_usage, facts, namespace, node, quota, shard_of_usage, workload
from tests.property.drawn_parts import CPU, MEMORY, dropping, sometimes
from tests.property.drawn_worlds import CLASSES, limit_ranges, vpas
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Metadata, Revised, change
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.api.workload import DaemonSet, DaemonSetSpec, PodTemplateSpec, WorkloadStatus
from trimtab.cluster.snapshot import ConfigMap

_TAINTS = st.sampled_from(
    [(), (), (), (("pool", "batch", "NoSchedule"),), (("kata", "", "NoSchedule"),), (("spot", "", "PreferNoSchedule"),)]
)


@st.composite
def nodes(draw, name):
    labels = dropping(
        {
            "pool": draw(st.sampled_from([None, "batch", "web", "kata"])),
            "zone": draw(st.sampled_from([None, "a", "b"])),
            "kubernetes.io/hostname": name,
        }
    )
    cpu, memory = draw(st.sampled_from([("1", "2Gi"), ("4", "8Gi"), ("16", "4Gi"), ("2", "64Gi")]))
    taints = tuple(Taint(key=key, value=value, effect=effect) for key, value, effect in draw(_TAINTS))
    provider = draw(sometimes(st.just(f"gce://p/z/{name}"), ""))
    more = draw(sometimes(_MORE, {}))
    described_node = node(
        name, labels=labels, taints=taints, provider=provider, cpu=cpu, memory=memory, pods="110", **more
    )
    is_cordoned = draw(st.sampled_from([False, False, False, True]))
    return change(described_node, spec=change(described_node.spec, unschedulable=is_cordoned))


_MORE = st.sampled_from([{"ephemeral-storage": "50Gi"}, {"ephemeral-storage": "512Mi", "example.com/license": "4"}])


def _daemon(cpu, tolerations=()):
    agent = Container(name="agent", resources=Resources(requests={"cpu": cpu}))
    return DaemonSet(
        kind="DaemonSet",
        metadata=Revised(name="agent", namespace="kube-system"),
        spec=DaemonSetSpec(template=PodTemplateSpec(spec=PodSpec(containers=(agent,), tolerations=tolerations))),
        status=WorkloadStatus(observed_generation=1, desired_number_scheduled=1),
    )


HARD = {
    "requests.cpu": ["500m", "2", "6", "40"],
    "limits.cpu": ["1", "8", "40"],
    "requests.memory": ["256Mi", "2Gi", "40Gi"],
    "limits.memory": ["512Mi", "8Gi", "40Gi"],
    "pods": ["4", "100"],
    "requests.ephemeral-storage": ["2Gi", "100Gi"],
    "requests.example.com/license": ["1", "20"],
}


@st.composite
def tight_quotas(draw, name):
    counted = sorted(draw(st.sets(st.sampled_from(sorted(HARD)), min_size=1, max_size=2)))
    hard = {resource: draw(st.sampled_from(HARD[resource])) for resource in counted}
    scope = draw(st.sampled_from([{}, {}, {}, {"scopes": ("NotBestEffort",)}, {"scopes": ("NotTerminating",)}]))
    used = dict.fromkeys(counted, "0") | draw(sometimes(st.just({counted[0]: "1"}), {}))
    return quota(hard, used=used, name=name, **scope)


def _status(groups):
    """The cluster autoscaler's; (name, nodes that are there)."""
    text = "".join(
        f"- {{name: {name}, health: {{nodeCounts: {{registered: {{total: {n}}}}}}}}}\n" for name, n in groups
    )
    metadata = Metadata(name="cluster-autoscaler-status", namespace="kube-system")
    return ConfigMap(metadata=metadata, data={"status": f"clusterWide: {{}}\nnodeGroups:\n{text}"})


@st.composite
def crowded_worlds(draw):
    """(facts, nodes, replicas of Deployment web with its surge, what a container was seen to use at most, what a daemon
    takes, how many groups may get their first node, or None where nobody tells)."""
    replicas = draw(st.sampled_from([1, 3, 8]))
    web = workload("Deployment/web", replicas=replicas)
    result = [one for one in CLASSES if getattr(one, "kind", "") != "Deployment"] + [web, namespace(NAMESPACE)]
    result += [draw(limit_ranges(f"bounds-{number}")) for number in range(draw(st.sampled_from([0, 0, 1])))]
    result += [draw(vpas(f"vpa-{number}")) for number in range(draw(st.sampled_from([0, 0, 1])))]
    result += [draw(tight_quotas(f"quota-{number}")) for number in range(draw(st.sampled_from([0, 1, 1, 2])))]
    machines = [draw(nodes(f"n{number}")) for number in range(draw(st.integers(0, 4)))]
    daemon = draw(sometimes(st.sampled_from(["100m", "900m"])))
    result += machines + ([_daemon(daemon)] if daemon else [])
    groups = draw(st.sampled_from([None, [("web", 2)], [("web", 2), ("batch", 0)]]))
    result += [_status(groups)] if groups is not None else []
    growing = None if groups is None else sum(there == 0 for _, there in groups)
    peaks, used = {}, {}
    for name in sorted(draw(st.sets(st.sampled_from(["app", "proxy"])))):
        low, high, most = sorted(draw(st.tuples(*[st.integers(0, len(CPU) - 1)] * 3)))
        observation = {"cpu": (CPU[low], CPU[high], CPU[most]), "memory": (MEMORY[low], MEMORY[high], MEMORY[most])}
        used[name] = container_usage(observation)
        peaks[name] = MEMORY[most]
    result += [shard_of_usage(used)] if used else []
    surge = -(-replicas * 25 // 100)
    world = facts(*result, vpa_acts=draw(st.sampled_from([True, True, False])))
    return world, tuple(machines), replicas + surge, peaks, daemon, growing
