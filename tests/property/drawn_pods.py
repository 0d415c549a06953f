"""Pods as clients write them: with fields we do not read, and nulls."""

import msgspec
from hypothesis import strategies as st

from tests.property.drawn_parts import BY, CPU, KEYS, VALUES, dropping, sometimes
from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.api.pod import Pod


@st.composite
def resources(draw):
    """Often a request not above its limit; sometimes only one of them, devices, or nothing."""
    requests, limited, most = {}, {}, len(CPU)
    for name, facts in BY.items():
        low, high = sorted(draw(st.tuples(st.integers(0, most - 1), st.integers(0, most - 1))))
        shape = draw(st.sampled_from(["none", "request", "limit", "both", "equal"]))
        if shape in ("request", "both"):
            requests[name] = facts[low]
        if shape in ("limit", "both", "equal"):
            limited[name] = facts[high]
        if shape == "equal":
            requests[name] = facts[high]
    if draw(st.integers(0, 9)) == 0:
        limited["nvidia.com/gpu"] = requests["nvidia.com/gpu"] = "1"
    return dropping({"requests": requests or draw(st.sampled_from([None, {}])), "limits": limited or None})


VARIABLES = st.builds(
    lambda name, value: {"name": name, **value},
    st.sampled_from(["JAVA_OPTS", "GOMAXPROCS", "NODE_OPTIONS", "A"]),
    st.sampled_from(
        [
            {"value": "-XX:MaxRAMPercentage=75"},
            {"value": "-Xmx1g"},
            {"value": "2"},
            {"value": "x"},
            {"value": None},
            {"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
        ]
    ),
)
_ENVIRONMENTS = st.lists(VARIABLES, max_size=3, unique_by=lambda variable: variable["name"])


@st.composite
def containers(draw, name, *, init=False):
    return dropping(
        {
            "name": name,
            "image": draw(st.sampled_from(["web:1", "registry.example/team/proxy:2"])),
            "env": draw(sometimes(_ENVIRONMENTS, [{"name": "A", "value": "b"}])),
            "command": draw(sometimes(st.sampled_from([["java", "Main"], ["sh", "-c", "exec node x.js"]]), None)),
            "args": draw(sometimes(st.sampled_from([["-XX:MaxRAMPercentage=75"], ["-Xmx1g", "--x"], ["--x"]]), None)),
            "resources": draw(sometimes(resources(), None) | resources()),
            "restartPolicy": draw(st.sampled_from([None, "Always"])) if init else None,
        }
    )


_EXPRESSIONS = st.one_of(
    st.builds(lambda k, v: {"key": k, "operator": "In", "values": v}, KEYS, st.lists(VALUES, min_size=1, max_size=2)),
    st.builds(lambda k, v: {"key": k, "operator": "NotIn", "values": [v]}, KEYS, VALUES),
    st.builds(lambda k, o: {"key": k, "operator": o}, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
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
    {}, optional={"app": VALUES, "tier": st.sampled_from(["untrusted", "web"]), "pod-template-hash": st.just("5d4f")}
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
            sometimes(
                st.sampled_from(
                    [
                        [{"name": "data", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/x"}}],
                        [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
                        [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
                    ]
                )
            )
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


def with_token(manifest, token):
    """As the ServiceAccount plugin leaves it."""
    volume = {"name": f"kube-api-access-{token}", "projected": {"sources": []}}
    volumes = [*(manifest["spec"].get("volumes") or []), volume]
    return {**manifest, "spec": {**manifest["spec"], "volumes": volumes}}


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
