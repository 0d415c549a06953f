"""Is a pod held for planning the one that a plan from a capture would see?"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tests.bench.population import pod as full_pod
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.kube import decode
from trimtab.kube.reflector import Reflector
from trimtab.kube.resources import LIST_SOURCES
from trimtab.kube.transform import FieldPruner, PlannerPodTransform

Told = dict[str, Any]
MANAGED = [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}, "f:spec": {}}, "subresource": "status"}]


def shape(value: Told) -> Any:
    api_object = decode.decode_item("Pod", Raw(json.dumps(value).encode()))
    assert not isinstance(api_object, decode.UndecodableObject), api_object
    return api_object


def captured(value: Told) -> PodInfo:
    """As a plan reads it from a capture."""
    return PodReader().read_pod(FieldPruner()(shape(value)))  # type: ignore[arg-type]


def said(pod: PodInfo) -> Told:
    """All of it but its number, which only tells pods of one reader apart."""
    own = {name: getattr(pod, name) for name in pod.__struct_fields__ if name not in ("requirements", "likeness")}
    return own | {
        f"requirements.{name}": getattr(pod.requirements, name) for name in pod.requirements.__struct_fields__
    }


def line(what: str, value: Told) -> bytes:
    return json.dumps({"type": what, "object": value}, separators=(",", ":")).encode() + b"\n"


def a_pod(name: str = "web-1", **metadata: Any) -> Told:
    pod = full_pod(3, "node-1", {})
    pod["metadata"] |= {"name": name, "namespace": "shop", "resourceVersion": "7", **metadata}
    pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return pod


def test_a_pod_held_for_planning_is_the_one_its_capture_would_give() -> None:
    value = a_pod(annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "true", "example.com/x": "y"})
    assert said(PlannerPodTransform()(shape(value))) == said(captured(value))


def test_pods_that_are_not_alike_never_share_a_number_also_after_sharing_began_anew() -> None:
    """Owners come and go (a Job a minute): what is remembered of them has an end, and no number comes twice."""
    planned, observation = PlannerPodTransform(max_parts=5), []
    for number in range(40):
        owner = {"kind": "Job", "name": f"job-{number}", "uid": "u", "controller": True}
        value = a_pod(f"job-{number}", annotations={}, ownerReferences=[owner])
        value["spec"]["volumes"] = []
        observation.append(planned(shape(value)).likeness)
        assert len(planned._reader.likeness_numbers) <= 6
    assert min(observation) >= 0
    assert len(set(observation)) == 40


def few(*values: Any) -> st.SearchStrategy[Any]:
    """One of them, or nothing at all."""
    return st.sampled_from((None, *values))


def mapping(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Told]:
    """What is not None."""
    item = st.fixed_dictionaries(parts)
    return item.map(lambda result: {name: value for name, value in result.items() if value is not None})


ZONE = "topology.kubernetes.io/zone"
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
METADATA = mapping(
    uid=few("u-1", "u-2"),
    creationTimestamp=few("2026-01-01T00:00:00Z"),
    deletionTimestamp=few("2026-01-02T00:00:00Z"),
    labels=few({"app": "a"}, {"app": "b"}, {"app": "a", ZONE: "z"}),
    annotations=few(
        {"trimtab.dev/do-not-disrupt": "true"}, {"trimtab.dev/do-not-disrupt": "no"}, {"example.com/token": "x"}
    ),
    ownerReferences=few(
        [{"kind": "ReplicaSet", "name": "web", "controller": True}],
        [{"kind": "ReplicaSet", "name": "web", "uid": "2", "controller": True}],
    ),
    managedFields=few(MANAGED),
)
CONTAINERS = st.sampled_from(
    [
        [{"name": "main", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80, "hostPort": 80}]}],
        [{"name": "main", "resources": {"requests": {"cpu": 1}}}],
        [{"name": "main", "resources": {"requests": {"cpu": "2"}}}],
    ]
)
SPEC = mapping(
    containers=CONTAINERS,
    nodeName=few("node-1", "node-2"),
    priority=few(7),
    terminationGracePeriodSeconds=few(0, 45),
    volumes=few([{"name": "d", "emptyDir": {}}], [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]),
    tolerations=few([{"operator": "Exists"}]),
    topologySpreadConstraints=few([SPREAD]),
)
STATUS = mapping(
    phase=few("Pending", "Running", "Succeeded"),
    startTime=few("2026-01-01T00:00:01Z"),
    conditions=few([{"type": "Ready", "status": "True"}], [{"type": "Ready", "status": "False"}]),
    nominatedNodeName=few("node-2"),
)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ADDED", "MODIFIED", "MODIFIED", "DELETED"]),
        st.sampled_from("abc"),
        mapping(metadata=METADATA, spec=SPEC, status=STATUS),
    ),
    max_size=12,
)


@given(EVENTS, st.integers(0, 4))
def test_whatever_happened_to_pods_before_they_are_held_as_if_seen_for_the_first_time(
    events: list[tuple[str, str, Told]], most: int
) -> None:
    it: Reflector[PodInfo] = Reflector(None, LIST_SOURCES["Pod"], PlannerPodTransform(max_parts=most))  # type: ignore[arg-type]
    there: dict[str, Told] = {}
    for number, (what, name, value) in enumerate(events):
        value["metadata"] = {"name": name, "namespace": "shop", "resourceVersion": str(number), **value["metadata"]}
        it._apply_lines(line(what, value), None)
        there[name] = value
        if what == "DELETED":
            del there[name]
    pods = {pod.name: pod for pod in it.store.list_values()}
    assert {name: said(pod) for name, pod in pods.items()} == {n: said(captured(v)) for n, v in there.items()}
    alike: dict[int, PodInfo] = {}
    for pod in pods.values():
        other = alike.setdefault(pod.likeness, pod) if pod.likeness >= 0 else pod
        assert (pod.requirements, pod.owner, pod.is_ready, pod.phase) == (
            other.requirements,
            other.owner,
            other.is_ready,
            other.phase,
        )
