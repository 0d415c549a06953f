"""What surrounds a pod, as objects that go through `facts`: classes, LimitRanges, quotas, VPAs, usage, nodes."""

from hypothesis import strategies as st

from tests.build import (
    NAMESPACE,
    container_usage,
    facts,
    limit_range,
    namespace,
    node,
    priority_class,
    quota,
    runtime_class,
    shard_of_usage,
    toleration,
    vpa,
    workload,
)
from tests.property.drawn_parts import CPU, CPUS, MEMORIES, MEMORY, sometimes
from trimtab.cluster.api.autoscaling import ContainerPolicy
from trimtab.cluster.api.core import ScopedRequirement, ScopeSelector

_KATA, _GVISOR = (toleration(name, operator="Exists") for name in ("kata", "gvisor"))
CLASSES = (
    runtime_class(
        "kata", overhead={"cpu": "250m", "memory": "160Mi"}, node_selector={"pool": "kata"}, tolerations=(_KATA,)
    ),
    runtime_class("gvisor", overhead={"cpu": "50m"}, tolerations=(_GVISOR,)),
    runtime_class("plain"),
    priority_class("low", 10),
    priority_class("high", 1000, preemption_policy="Never"),
    priority_class("usual", 100, global_default=True),
    workload("ReplicaSet/web-5d4f", owner="Deployment/web"),
    workload("Deployment/web"),
    namespace(NAMESPACE, team="a"),
)


def _parts():
    return st.fixed_dictionaries({}, optional={"cpu": CPUS, "memory": MEMORIES})


def _ratios():
    return st.fixed_dictionaries(
        {}, optional={"cpu": st.sampled_from(["1", "1.5", "4"]), "memory": st.sampled_from(["2", "10"])}
    )


@st.composite
def limit_ranges(draw, name):
    kind = draw(st.sampled_from(["Container", "Container", "Pod"]))
    part = sometimes(_parts(), {})
    bounds = {"max": draw(part), "min": draw(part), "max_limit_request_ratio": draw(sometimes(_ratios(), {}))}
    if kind == "Container":
        bounds |= {"default": draw(part), "default_request": draw(part)}
    return limit_range(name=name, kind=kind, **bounds)


_IMPORTANT = ScopedRequirement(scope_name="PriorityClass", operator="In", values=("high",))
_SCOPES = st.sampled_from(
    [
        {},
        {},
        {"scopes": ("BestEffort",)},
        {"scopes": ("NotBestEffort",)},
        {"scope_selector": ScopeSelector(match_expressions=(_IMPORTANT,))},
    ]
)


@st.composite
def quotas(draw, name):
    counted = draw(st.sets(st.sampled_from(["limits.cpu", "limits.memory", "requests.cpu", "pods"]), min_size=1))
    return quota(dict.fromkeys(sorted(counted), "100"), name=name, **draw(_SCOPES))


@st.composite
def vpas(draw, name):
    rules = ContainerPolicy(
        container_name=draw(st.sampled_from(["*", "app"])),
        mode=draw(st.sampled_from(["Auto", "Auto", "Off"])),
        min_allowed=draw(sometimes(_parts(), {})),
        max_allowed=draw(sometimes(_parts(), {})),
        controlled_values=draw(st.sampled_from(["RequestsAndLimits", "RequestsOnly"])),
    )
    return vpa(
        draw(st.sampled_from(["Deployment/web", "Job/work"])),
        name=name,
        mode=draw(st.sampled_from(["Recreate", "Initial", "Off"])),
        recommends=draw(sometimes(st.just({"app": {"cpu": "1", "memory": "1Gi"}}))),
        policies=(rules,),
    )


@st.composite
def worlds(draw, *, with_quotas=True):
    """Facts: fixed classes and owners; LimitRanges, quotas, VPAs, usage and nodes as drawn."""
    results = [*CLASSES]
    results += [draw(limit_ranges(f"bounds-{number}")) for number in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    if with_quotas:
        results += [draw(quotas(f"quota-{number}")) for number in range(draw(st.sampled_from([0, 0, 1])))]
    results += [draw(vpas(f"vpa-{number}")) for number in range(draw(st.sampled_from([0, 0, 1, 2])))]
    used = {}
    for name in sorted(draw(st.sets(st.sampled_from(["app", "proxy", "prepare"])))):
        low, high = sorted(draw(st.tuples(st.integers(0, 8), st.integers(0, 8))))
        observation = {"cpu": (CPU[low], CPU[high]), "memory": (MEMORY[low], MEMORY[high])}
        used[name] = container_usage(observation)
    results += [shard_of_usage(used)] if used else []
    if draw(st.booleans()):
        results.append(node(cpu="4", memory="8Gi"))
    return facts(*results, vpa_acts=draw(st.sampled_from([True, True, False])))
