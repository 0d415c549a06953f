"""Pods, policies and clusters by the thousand, as real ones look.

Pods are drawn as JSON values, with fields we do not read and nulls where clients write them; policies as documents
that go through the loader; the cluster as objects that go through `facts`. Names are few, so that things meet.
"""

import json
import os

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.build import (
    NAMESPACE,
    facts,
    limit_range,
    namespace,
    node,
    priority_class,
    quota,
    runtime_class,
    toleration,
    usage,
    vpa,
    workload,
)
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.rules import ScopedRequirement, ScopeSelector
from trimtab.cluster.api.scaling import ContainerPolicy
from trimtab.cluster.snapshot import without_nulls
from trimtab.policy.document import Policies
from trimtab.policy.load import load_policies

_ANY_PACE = [HealthCheck.too_slow]
"""A busy machine is no counterexample."""
settings.register_profile("usual", max_examples=30, deadline=None, suppress_health_check=_ANY_PACE)
settings.register_profile("thorough", max_examples=3000, deadline=None, suppress_health_check=_ANY_PACE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

CPU = ["10m", "50m", "0.1", "250m", "500m", "1", "1.5", "2", "4"]
MEMORY = ["16Mi", "64Mi", "100M", "0.5Gi", "512Mi", "1e9", "1Gi", "2Gi", "4G"]
_BY = {"cpu": CPU, "memory": MEMORY}


def sometimes(strategy, otherwise=None):
    """Mostly nothing."""
    return st.one_of(st.just(otherwise), st.just(otherwise), strategy)


def dropping(values: dict) -> dict:
    """Without what was not drawn."""
    return {key: value for key, value in values.items() if value is not None}


@st.composite
def resources(draw):
    """Often a request not above its limit; sometimes only one of them, devices, or nothing."""
    asked, limited, most = {}, {}, len(CPU)
    for name, known in _BY.items():
        low, high = sorted(draw(st.tuples(st.integers(0, most - 1), st.integers(0, most - 1))))
        shape = draw(st.sampled_from(["none", "request", "limit", "both", "equal"]))
        if shape in ("request", "both"):
            asked[name] = known[low]
        if shape in ("limit", "both", "equal"):
            limited[name] = known[high]
        if shape == "equal":
            asked[name] = known[high]
    if draw(st.integers(0, 9)) == 0:
        limited["nvidia.com/gpu"] = asked["nvidia.com/gpu"] = "1"
    return dropping({"requests": asked or draw(st.sampled_from([None, {}])), "limits": limited or None})


@st.composite
def containers(draw, name, *, init=False):
    return dropping(
        {
            "name": name,
            "image": draw(st.sampled_from(["web:1", "registry.example/team/proxy:2"])),
            "env": [{"name": "A", "value": "b"}],
            "resources": draw(sometimes(resources(), None) | resources()),
            "restartPolicy": draw(st.sampled_from([None, "Always"])) if init else None,
        }
    )


_KEYS = st.sampled_from(["pool", "zone", "kubernetes.io/hostname"])
_VALUES = st.sampled_from(["batch", "web", "a", "b"])
_EXPRESSIONS = st.one_of(
    st.builds(lambda k, v: {"key": k, "operator": "In", "values": v}, _KEYS, st.lists(_VALUES, min_size=1, max_size=2)),
    st.builds(lambda k, v: {"key": k, "operator": "NotIn", "values": [v]}, _KEYS, _VALUES),
    st.builds(lambda k, o: {"key": k, "operator": o}, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
)
_TERMS = st.one_of(
    st.just({}),
    st.builds(lambda e: {"matchExpressions": e}, st.lists(_EXPRESSIONS, min_size=1, max_size=2)),
    st.just({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}),
)
_REQUIRED = st.builds(lambda t: {"nodeSelectorTerms": t}, st.lists(_TERMS, min_size=1, max_size=3))
_PREFERRED = st.lists(
    st.builds(lambda w, t: {"weight": w, "preference": t}, st.sampled_from([1, 50]), _TERMS), max_size=2
)


@st.composite
def affinities(draw):
    inside = dropping(
        {
            "requiredDuringSchedulingIgnoredDuringExecution": draw(st.none() | _REQUIRED),
            "preferredDuringSchedulingIgnoredDuringExecution": draw(st.none() | _PREFERRED),
        }
    )
    return draw(st.sampled_from([{}, {"nodeAffinity": inside}, {"nodeAffinity": inside, "podAntiAffinity": {}}]))


_TOLERATIONS = st.builds(
    lambda key, value, effect: dropping(
        {"key": key, "operator": "Equal" if value else "Exists", "value": value, "effect": effect}
    ),
    st.sampled_from(["pool", "kata", "gvisor", "spot"]),
    st.sampled_from([None, "batch", "web"]),
    st.sampled_from([None, "NoSchedule", "NoExecute"]),
)
_SPREAD = st.just(
    {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
)
_LABELS = st.fixed_dictionaries(
    {}, optional={"app": _VALUES, "tier": st.sampled_from(["untrusted", "web"]), "pod-template-hash": st.just("5d4f")}
)
_ANNOTATIONS = st.fixed_dictionaries(
    {},
    optional={
        "note": st.just("x"),
        "vpaCpuStartupBoost/app": st.just("{}"),
        "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": st.just("data"),
        "trimtab.dev/changed": st.sampled_from(["{}", "junk", '{"pod":"0","by":{"p0":{"labels[cost]":"low"}}}']),
    },
)
_OWNERS = st.sampled_from(
    [
        [],
        [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "u", "controller": True}],
        [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}],
        [{"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "u", "controller": True}],
    ]
)


@st.composite
def manifests(draw):
    """A pod as JSON values."""
    names = draw(st.sampled_from([["app"], ["app", "proxy"], ["app", "proxy", "log"]]))
    inits = draw(st.sampled_from([[], [], ["prepare"], ["mesh", "prepare"]]))
    spec = {
        "containers": [draw(containers(name)) for name in names],
        "initContainers": [draw(containers(name, init=True)) for name in inits] or None,
        "serviceAccountName": "default",
        "securityContext": {},
        "affinity": draw(sometimes(affinities())),
        "tolerations": draw(sometimes(st.lists(_TOLERATIONS, max_size=3))),
        "nodeSelector": draw(
            sometimes(
                st.dictionaries(st.sampled_from(["pool", "zone"]), st.sampled_from(["batch", "kata", "a"]), max_size=2)
            )
        ),
        "runtimeClassName": draw(sometimes(st.sampled_from(["kata", "gvisor", "plain"]))),
        "overhead": draw(sometimes(sometimes(st.sampled_from([{}, {"cpu": "250m"}])))),
        "priorityClassName": draw(sometimes(st.sampled_from(["low", "high", "usual"]))),
        "nodeName": draw(sometimes(sometimes(st.just("n1")))),
        "resources": draw(sometimes(sometimes(resources()))),
        "os": draw(sometimes(sometimes(st.just({"name": "windows"})))),
        "topologySpreadConstraints": draw(sometimes(st.lists(_SPREAD, max_size=1))),
        "volumes": draw(
            sometimes(st.just([{"name": "data", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/x"}}]))
        ),
    }
    metadata = {
        **draw(st.sampled_from([{"name": "web-0"}, {"generateName": "web-5d4f-"}])),
        "labels": draw(st.none() | _LABELS),
        "annotations": draw(sometimes(_ANNOTATIONS)),
        "ownerReferences": draw(_OWNERS),
        "creationTimestamp": None,
    }
    nulls = draw(st.integers(0, 9)) == 0
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata if nulls else dropping(metadata),
        "spec": spec if nulls else dropping(spec),
    }


def read(manifest) -> Pod:
    """As the answer reads it."""
    return msgspec.convert(without_nulls(manifest), Pod)


def pods():
    return manifests().map(read)


def opted_out():
    """Pods that say they are not to be touched, in one of the ways there are."""
    marks = st.sampled_from(
        [
            ("labels", "trimtab.dev/opt-out"),
            ("annotations", "trimtab.dev/opt-out"),
            ("annotations", "kubernetes.io/config.mirror"),
        ]
    )

    def marked(manifest, mark):
        part, key = mark
        metadata = manifest["metadata"]
        return {**manifest, "metadata": {**metadata, part: {**(metadata.get(part) or {}), key: "true"}}}

    return st.builds(marked, manifests(), marks).map(read)


_CPU, _MEMORY = st.sampled_from(CPU), st.sampled_from(MEMORY)


@st.composite
def requests_rules(draw, resource):
    known = _BY[resource]
    origin = draw(st.sampled_from(["usage", "policy", "limit"]))
    low, middle, high = sorted(draw(st.tuples(*[st.integers(0, len(known) - 1)] * 3)))
    return dropping(
        {
            "from": origin,
            "otherwise": known[middle] if origin == "policy" else draw(st.sampled_from([None, known[middle]])),
            "min": draw(sometimes(st.just(known[low]))),
            "max": draw(sometimes(st.just(known[high]))),
            "percent": draw(st.sampled_from([None, 50, 80])),
            "when": draw(st.sampled_from([None, "always", "missing"])),
            "round": draw(sometimes(st.just("10m" if resource == "cpu" else "64Mi"))),
        }
    )


_STRAY = st.builds(lambda s: {"stray": s}, st.sampled_from(["warn", "strip", "keep", "deny"]))
_PRIORITIES = st.builds(
    lambda n, o: {"name": n, "override": o}, st.sampled_from(["low", "high", "nope"]), st.booleans()
)
_LIMIT_RULES = st.sampled_from([None, "remove", "remove", "keep", "request", "request x 1.5", "request x 2"])
_LIMITS = st.builds(lambda c, m: dropping({"cpu": c, "memory": m}), _LIMIT_RULES, _LIMIT_RULES)
_REQUIRES = st.one_of(
    st.builds(lambda k, v: {"label": k, "in": [v]}, _KEYS, _VALUES),
    st.builds(lambda k, v: {"label": k, "notIn": [v]}, _KEYS, _VALUES),
    st.builds(lambda k, o: {"label": k, o: True}, _KEYS, st.sampled_from(["exists", "absent"])),
)
_PREFERS = st.builds(lambda r, w: {**r, "weight": w}, _REQUIRES, st.sampled_from([1, 50, 100]))
_TOLERATES = st.builds(
    lambda k, v, e: dropping({"key": k, "value": v, "effect": e}),
    st.sampled_from(["pool", "spot", "kata"]),
    st.sampled_from([None, "batch"]),
    st.sampled_from([None, "NoSchedule"]),
)


@st.composite
def actions(draw):
    found = {
        "runtimeClass": draw(
            sometimes(
                st.builds(
                    lambda n, o: {"name": n, "override": o},
                    st.sampled_from(["kata", "gvisor", "plain", "nope"]),
                    st.booleans(),
                )
            )
        ),
        "overhead": draw(sometimes(_STRAY)),
        "requests": draw(
            sometimes(
                st.builds(
                    lambda c, m: dropping({"cpu": c, "memory": m}),
                    st.none() | requests_rules("cpu"),
                    st.none() | requests_rules("memory"),
                )
            )
        ),
        "limits": draw(sometimes(_LIMITS)),
        "placement": draw(
            sometimes(
                st.builds(
                    lambda r, p, s, t: {"require": r, "prefer": p, "nodeSelector": s, "tolerate": t},
                    st.lists(_REQUIRES, max_size=2),
                    st.lists(_PREFERS, max_size=2),
                    sometimes(st.just({"zone": "a"}), {}),
                    st.lists(_TOLERATES, max_size=2),
                )
            )
        ),
        "priorityClass": draw(sometimes(_PRIORITIES)),
        "topologySpread": draw(
            sometimes(
                st.builds(
                    lambda keys: {"constraints": [{"topologyKey": key} for key in keys]},
                    st.lists(
                        st.sampled_from(["topology.kubernetes.io/zone", "kubernetes.io/hostname"]),
                        min_size=1, max_size=2, unique=True,
                    ),
                )
            )
        ),
        "safeToEvictVolumes": draw(sometimes(st.sampled_from([{}, {"hostPaths": True}]))),
        "labels": draw(
            sometimes(
                st.builds(
                    lambda a, o: {"add": a, "override": o},
                    st.sampled_from([{"cost": "low"}, {"app": "web"}, {"tier": "untrusted"}]),
                    st.booleans(),
                )
            )
        ),
        "annotations": draw(sometimes(st.just({"add": {"note": "y"}}))),
    }  # fmt: skip
    kept = dropping(found)
    return kept or {"labels": {"add": {"cost": "low"}}}


_CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "namespaces": st.sampled_from([{"include": ["team-*"]}, {"exclude": ["team-b"]}]),
        "podLabels": st.sampled_from([{"tier": "untrusted"}, {"app": "*"}]),
        "owners": st.sampled_from([["Deployment"], ["DaemonSet", "Job"], ["Pod"], ["Deployment/w*"]]),
        "containers": st.sampled_from(
            [{"names": ["app"]}, {"roles": ["init"]}, {"roles": ["main", "sidecar"]}, {"images": ["web*"]}]
        ),
        "runtimeClasses": st.sampled_from([["none"], ["kata"]]),
        "priorityClasses": st.sampled_from([["none"], ["high"]]),
        "vpa": st.sampled_from(["managed", "unmanaged"]),
    },
)
_MATCHES = st.one_of(
    st.just({}),
    st.just({}),
    _CONDITIONS,
    st.builds(lambda c, e: {**c, "exclude": [e]}, _CONDITIONS, _CONDITIONS.filter(bool)),
)


@st.composite
def policy_documents(draw, name, modes=("apply",)):
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": name},
        "spec": {
            "priority": draw(st.integers(0, 2)),
            "mode": draw(st.sampled_from(modes)),
            "rollout": draw(st.sampled_from([100, 100, 50])),
            "guaranteed": draw(st.sampled_from(["leave", "leave", "change"])),
            "match": draw(_MATCHES),
            "actions": draw(actions()),
        },
    }


@st.composite
def documents(draw, modes=("apply", "apply", "apply", "warn", "audit")):
    return [draw(policy_documents(f"p{number}", modes)) for number in range(draw(st.integers(1, 4)))]


def load(found) -> Policies:
    loaded = load_policies([(f"{each['metadata']['name']}.json", json.dumps(each).encode()) for each in found])
    assert not loaded.mistakes, "\n".join(map(str, loaded.mistakes))
    return loaded.policies


def policies(modes=("apply", "apply", "apply", "warn", "audit")):
    return documents(modes).map(load)


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
    return st.fixed_dictionaries({}, optional={"cpu": _CPU, "memory": _MEMORY})


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
    found = [*CLASSES]
    found += [draw(limit_ranges(f"bounds-{number}")) for number in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    if with_quotas:
        found += [draw(quotas(f"quota-{number}")) for number in range(draw(st.sampled_from([0, 0, 1])))]
    found += [draw(vpas(f"vpa-{number}")) for number in range(draw(st.sampled_from([0, 0, 1, 2])))]
    for number, name in enumerate(draw(st.sets(st.sampled_from(["app", "proxy", "prepare"])))):
        low, high = sorted(draw(st.tuples(st.integers(0, 8), st.integers(0, 8))))
        seen = {"cpu": (CPU[low], CPU[high]), "memory": (MEMORY[low], MEMORY[high])}
        found.append(usage("Deployment/web", name, shard=f"{number:02}", **seen))
    if draw(st.booleans()):
        found.append(node(cpu="4", memory="8Gi"))
    return facts(*found, vpa_acts=draw(st.sampled_from([True, True, False])))
