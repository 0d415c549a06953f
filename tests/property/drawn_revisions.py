"""Pods that nearly share a decision: revisions of one owner, some of them with one more difference; and policies that
read what such pods differ in."""

from hypothesis import strategies as st

from tests.property.drawn_parts import VALUES, sometimes
from tests.property.drawn_pods import VARIABLES, manifests, with_token
from tests.property.drawn_policies import documents, load

_HASHES = st.sampled_from(["5d4f", "5d4f", "6b7c", "aaaa", "w"])
_JOBS = st.sampled_from(["work-28000001", "work-28000002"])
_HASH_LABELS = st.sampled_from(["pod-template-hash", "pod-template-hash", "rollouts-pod-template-hash"])
_TOKENS = st.sampled_from(["aaaaa", "zz9zz"])
_BASES = st.sampled_from(["web", "web", "web", 'w"b'])
"""The API server does not check the names in owner references."""
_IMAGES = st.sampled_from(
    [
        "web:1",
        "web:1",
        "web:2",
        "web",
        "web:1-jdk21",
        "web@sha256:ab",
        "docker.io/web:1",
        "registry.example/web:1",
        "web@a/b",
        "web@a.b/b",
    ]
)
_LABELS = {
    "app": VALUES,
    "tier": st.sampled_from(["untrusted", "untrusted", "web", "kube-api-access-aaaaa", "not a value"]),
    "cost": st.sampled_from(["low", "high"]),
    "app.kubernetes.io/runtime": st.sampled_from(["java", "nodejs", "x"]),
    "trimtab.dev/opt-out": st.sampled_from(["false", "false", "true"]),
}
_ANNOTATIONS = {
    "note": st.sampled_from(["x", "x", "y", "kube-api-access-zz9zz"]),
    "vpaUpdates": st.sampled_from(
        ["Pod resources updated by web: container 0: cpu request", "container 0: memory request", "nothing"]
    ),
    "vpaCpuStartupBoost/app": st.sampled_from(["{}", "1"]),
    "kubernetes.io/limit-ranger": st.sampled_from(
        [
            "LimitRanger plugin set: cpu request for container app",
            "LimitRanger plugin set: memory request for container app; cpu limit for container app",
        ]
    ),
    "compiled.trimtab.dev/p0": st.sampled_from(["containers[app].requests.cpu=250m", "containers[app].requests.cpu=1"]),
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": st.sampled_from(["data", "data,host", ""]),
    "cluster-autoscaler.kubernetes.io/safe-to-evict": st.sampled_from(["true", "false"]),
    "kubectl.kubernetes.io/last-applied-configuration": st.sampled_from(["{}", '{"spec":{"tolerations":[{}]}}']),
}


def _with_fields(fields):
    return lambda pod: {**pod, "spec": {**pod["spec"], **fields}}


def _with_container(part, fields):
    """The first container of this part with these fields."""

    def changed(pod):
        first, *others = pod["spec"].get(part) or [{"name": "one-more"}]
        return _with_fields({part: [{**first, **fields}, *others]})(pod)

    return changed


def _with_metadata(fields):
    return lambda pod: {**pod, "metadata": {**pod["metadata"], **fields}}


def _with_owner(**fields):
    other = {"apiVersion": "v1", "kind": "DaemonSet", "name": "other", "uid": "o"}

    def changed(pod):
        references = pod["metadata"].get("ownerReferences", [])
        return _with_metadata({"ownerReferences": [*references, {**other, **fields}]})(pod)

    return changed


_READS_LIMIT = {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
_FILE = {"resourceFieldRef": {"containerName": "app", "resource": "limits.cpu"}}
_TERM = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["web"]}]}
_HARD = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
_STRICT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
DIFFERENCES = [
    *map(
        _with_fields,
        [
            {"activeDeadlineSeconds": 60},
            {"affinity": {"nodeAffinity": _HARD}},
            {"enableServiceLinks": False},
            {"hostNetwork": True},
            {"nodeName": "n1"},
            {"nodeSelector": {"pool": "web"}},
            {"os": {"name": "windows"}},
            {"overhead": {"cpu": "250m"}},
            {"preemptionPolicy": "Never"},
            {"priority": 10},
            {"priorityClassName": "high"},
            {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
            {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}},
            {"restartPolicy": "Never"},
            {"runtimeClassName": "kata"},
            {"schedulerName": "packs"},
            {"schedulingGates": [{"name": "g"}]},
            {"schedulingGroup": {"podGroupName": "g"}},
            {"securityContext": {"runAsUser": 1}},
            {"serviceAccountName": "ci-1"},
            {"terminationGracePeriodSeconds": 30},
            {"tolerations": [{"key": "pool", "operator": "Exists"}]},
            {"volumes": None},
            {"topologySpreadConstraints": [_STRICT]},
            {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "scratch", "emptyDir": {"medium": "Memory"}}]},
            {"volumes": [{"name": "own", "downwardAPI": {"items": [_FILE]}}]},
            {"volumes": [{"name": "own", "projected": {"sources": [{"downwardAPI": {"items": [_FILE]}}]}}]},
            {"workloadRef": {"name": "w", "podGroup": "g"}},
        ],
    ),
    *(
        _with_container(part, fields)
        for part in ("containers", "containers", "initContainers")
        for fields in [
            {"args": ["x"]},
            {"env": [{"name": "A", "value": "c"}]},
            {"env": [{"name": "A", **_READS_LIMIT}]},
            {"args": ["-XX:MaxRAMPercentage=75"]},
            {"args": ["-Xmx1g"]},
            {"command": ["node", "x.js"]},
            {"command": None},
            {"env": [{"name": "JAVA_OPTS", "value": "-Xmx1g"}]},
            {"env": [{"name": "JAVA_OPTS", "value": "-XX:MaxRAMPercentage=75"}]},
            {"name": "proxy-2"},
            {"ports": [{"containerPort": 80, "hostPort": 80}]},
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            {"resources": {"claims": [{"name": "gpu"}]}},
            {"resources": {"limits": {"cpu": "250m"}}},
            {"resources": None},
            {"resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}},
            {"restartPolicy": "Always"},
        ]
    ),
    *map(
        _with_metadata,
        [
            {"finalizers": ["example.com/x"]},
            {"namespace": "team-a"},
            {"namespace": "team-b"},
            {"uid": "u"},
            {"managedFields": [{"operation": "Apply", "manager": "m", "fieldsV1": {"f:spec": {}}}]},
            {"managedFields": [{"operation": "Update", "manager": "m", "fieldsV1": {"f:spec": {}}}]},
            {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        ],
    ),
    _with_owner(),
    _with_owner(controller=True),
]
"""Functions that give a pod one more difference. Nearly each of them is one that some decision reads."""


@st.composite
def _metadata(draw, metadata, kind, hash_label, base):
    """The metadata as one revision of the owner has it: the same keys, names and values as drawn."""
    name = f"{base}-{draw(_HASHES)}" if kind == "ReplicaSet" else draw(_JOBS) if kind == "Job" else "web"
    labels = {key: draw(_LABELS.get(key, VALUES)) for key in metadata.get("labels") or {}}
    labels |= {hash_label: name.partition("-")[2]} if kind == "ReplicaSet" else {"controller-uid": draw(_HASHES)}
    owner = {"kind": kind, "name": name, "uid": draw(_HASHES), "controller": True}
    own = {"name": f"{name}-0"} if "name" in metadata else {"generateName": f"{name}-"}
    annotations = metadata.get("annotations") or {}
    annotations = {key: draw(_ANNOTATIONS.get(key, st.just(value))) for key, value in annotations.items()}
    left = {key: value for key, value in metadata.items() if key not in ("name", "generateName", "annotations")}
    return {**left, **own, "labels": labels, "ownerReferences": [owner]} | (
        {"annotations": annotations} if annotations else {}
    )


def _more_keys(draw, metadata, part, values):
    present = metadata.get(part) or {}
    return {**present, **dict.fromkeys(sorted(draw(st.sets(st.sampled_from(sorted(values)), max_size=2))), "x")}


@st.composite
def revisions(draw):
    """Pods of one spec, as several revisions of their owner send them. Some pods have one more difference."""
    manifest = draw(manifests())
    kind, hash_label = draw(st.sampled_from(["ReplicaSet", "ReplicaSet", "Job", "StatefulSet"])), draw(_HASH_LABELS)
    base, are_weird = draw(_BASES), draw(sometimes(st.just(True), False))
    keys = {
        part: _more_keys(draw, manifest["metadata"], part, values)
        for part, values in (
            ("labels", _LABELS),
            ("annotations", draw(sometimes(st.just(_ANNOTATIONS), {"note": None}))),
        )
    }
    metadata = {**manifest["metadata"], **keys}
    pods = []
    for _ in range(draw(st.integers(2, 4))):
        spec = dict(manifest["spec"])
        for part in ("containers", "initContainers"):
            if spec.get(part):
                images = _IMAGES if are_weird else st.sampled_from(["web:1", "web:2"])
                spec[part] = [{**one, "image": draw(images)} for one in spec[part]]
        pod = {**manifest, "metadata": draw(_metadata(metadata, kind, hash_label, base)), "spec": spec}
        for changed in draw(sometimes(st.lists(st.sampled_from(DIFFERENCES), min_size=1, max_size=2), [])):
            pod = changed(pod)
        pods.append(with_token(pod, draw(_TOKENS)))
    return pods


_TEXTS = st.fixed_dictionaries(
    {},
    optional={
        "env": st.lists(VARIABLES, max_size=2, unique_by=lambda variable: variable["name"]),
        "args": st.sampled_from([["-XX:MaxRAMPercentage=75"], ["-Xmx1g"], ["-XX:ActiveProcessorCount=2"], ["--x"]]),
        "command": st.sampled_from([["java", "Main"], ["node", "x.js"], ["web"]]),
        "image": st.sampled_from(["web:1", "web:2", "web:1-jdk21", "web:2-jdk21"]),
    },
)


@st.composite
def runtime_revisions(draw):
    """Pods of one owner with limits that differ in nothing but what may show a container's runtime."""
    amounts = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    pods = []
    for text in draw(st.lists(_TEXTS, min_size=2, max_size=4)):
        name, runtime = f"web-{draw(_HASHES)}", draw(st.sampled_from(["java", "nodejs", "x", "x"]))
        owner = {"kind": "ReplicaSet", "name": name, "uid": "o", "controller": True}
        labels = {"app": "web", "app.kubernetes.io/runtime": runtime}
        metadata = {"generateName": f"{name}-", "labels": labels, "ownerReferences": [owner]}
        container = {"name": "app", "image": "web:1", "resources": amounts, **text}
        pods.append({"metadata": metadata, "spec": {"containers": [container]}})
    return pods


def removing_policies():
    """Policies that remove limits, whatever runs in the container or not where that is not known."""
    removal = {"cpu": "remove", "memory": "remove"}
    return st.sampled_from(["remove", "keep"]).map(
        lambda unknown: load(
            [
                {
                    "apiVersion": "trimtab.dev/v1alpha1",
                    "kind": "PodPolicy",
                    "metadata": {"name": "r"},
                    "spec": {"actions": {"limits": {**removal, "unknownRuntime": unknown}}},
                }
            ]
        )
    )


_FILL = {"requests": {"cpu": {"from": "usage", "otherwise": "10m"}}}
_READERS = st.sampled_from(
    [
        {"match": {"podSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}}},
        {"match": {"podSelector": {"matchLabels": {"cost": "low"}}}},
        {"match": {"podLabels": {"tier": "kube-api-access-a*"}}},
        {"match": {"exclude": [{"podLabels": {"cost": "hi*"}}]}},
        {"match": {"exclude": [{"annotations": {"note": "y"}}, {"owners": ["ReplicaSet/*c"]}]}},
        {"match": {"owners": ["ReplicaSet/web-5d4f"]}},
        {"match": {"containers": {"images": ["docker.io/*"]}}},
        {"match": {"containers": {"notImages": ["web:*"]}}},
        {"match": {"containers": {"images": ["web"]}}},
        {"optOut": "pod"},
        {"actions": {"requests": {"containers": [{"images": ["web:1"], "cpu": {"otherwise": "2"}}]}}},
        {"actions": {"requests": {"cpu": {"from": "request", "percent": 50, "otherwise": "1"}}}},
        {"actions": {"limits": {"cpu": "remove", "memory": "remove"}}},
        {"actions": {"limits": {"cpu": "remove", "memory": "remove", "unknownRuntime": "keep"}}},
        {"actions": {"labels": {"add": {"cost": "low", "tier": "c"}, "override": True}}},
        {"actions": {"labels": {"add": {"cost": "low"}, "required": True}}},
        {"actions": {"annotations": {"add": {"note": "y"}, "override": True, "required": True}}},
        {"actions": {"safeToEvictVolumes": {"hostPaths": True, "required": True}}},
        {"actions": {"placement": {"nodeSelector": {"pool": "batch"}}}},
        {"actions": {"placement": {"require": [{"label": "pool", "inPodLabel": "app", "among": ["web", "batch"]}]}}},
        {
            "actions": {
                "topologySpread": {
                    "constraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
                    "by": ["pod-template-hash", "app"],
                }
            }
        },
    ]
)


@st.composite
def reading_policies(draw):
    """Policies as `documents` draws them, with others that read what revisions differ in."""
    # Required actions and labels of pods need a match by namespace.
    here = {"namespaces": {"include": ["team-*"]}}
    specs = [
        {"actions": _FILL, **spec, "match": {**here, **spec.get("match", {})}}
        for spec in draw(st.lists(_READERS, max_size=2))
    ]
    readers = [
        {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": f"r{number}"}, "spec": spec}
        for number, spec in enumerate(specs)
    ]
    return load([*readers, *(draw(documents()) if not readers or draw(st.booleans()) else [])])
