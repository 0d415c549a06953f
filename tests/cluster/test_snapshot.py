import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import owner_key, usage
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, Recommendations, decode, encode
from trimtab.cluster.snapshot import load_snapshot
from trimtab.policy.cluster_facts import from_snapshot

POD = {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "app"}]}}


def test_kinds_that_nobody_reads_are_counted():
    reading = load_snapshot(
        [("s.json", json.dumps({"kind": "List", "items": [POD, {"kind": "Secret"}, {"kind": "Secret"}]}).encode())]
    )
    assert (len(reading.snapshot.objects_of(Pod)), reading.snapshot.ignored, reading.mistakes) == (1, {"Secret": 2}, ())


def named(name, **more):
    return json.dumps({**POD, "metadata": {"name": name}, **more}).encode()


def test_several_files_are_one_snapshot():
    files = [(f"{n}.json", named(f"web-{n}")) for n in range(3)]
    assert len(load_snapshot(files).snapshot.objects_of(Pod)) == 3


def test_what_two_files_tell_of_one_object_counts_once_only_where_they_agree():
    one, other = named("web"), named("web", status={"phase": "Failed"})
    assert len(load_snapshot([("a.json", one), ("b.json", one)]).snapshot.objects_of(Pod)) == 1
    assert len(load_snapshot([("a.json", one), ("b.json", other), ("c.json", one)]).snapshot.objects_of(Pod)) == 2


def test_a_null_is_absence():
    reading = load_snapshot(
        [("s.json", json.dumps(POD | {"spec": {"containers": None, "nodeSelector": None}}).encode())]
    )
    assert reading.mistakes == ()


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"kind": "Pod", "spec": {"containers": [{"name": 1}]}}, "spec.containers[0].name"),
        ({"kind": "Pod", "spec": {"containers": "x"}}, "spec.containers"),
        ({"kind": "Pod", "spec": {"priority": "high"}}, "spec.priority"),
        ({"metadata": {}}, ""),
    ],
)
def test_what_makes_no_sense_is_told_with_its_place(document, field):
    reading = load_snapshot([("s.json", json.dumps([document, POD]).encode())])
    assert ([m.field for m in reading.mistakes], len(reading.snapshot.objects_of(Pod))) == ([field], 1)


@given(
    st.dictionaries(
        st.sampled_from(["n/Deployment/a", "n/Job/b"]),
        st.dictionaries(
            st.sampled_from(["app", "proxy"]),
            st.builds(
                ContainerUsage,
                cpu=st.none()
                | st.builds(
                    Percentiles,
                    p5=st.just("1m"),
                    p95=st.sampled_from(["2m", 3, 0.5]),
                    young=st.booleans(),
                    request=st.none() | st.just("7m"),
                    signs=st.just(()) | st.just(("grows",)),
                    confidence=st.none() | st.floats(0, 1),
                ),
                computed_at=st.none() | st.integers(0, 10**10),
                last_sample_at=st.none() | st.integers(0, 10**10),
                ends_at=st.none() | st.integers(0, 10**10),
                days=st.none() | st.integers(0, 30) | st.floats(0, 30),
                samples=st.none() | st.integers(0, 10**6),
            ),
        ),
    )
)
def test_recommendations_come_back_as_they_were_published(workloads):
    assert msgspec.to_builtins(decode("here", encode(workloads))) == msgspec.to_builtins(workloads)


@pytest.mark.parametrize(
    ("old", "new"), [('"p95":"900m"', '"p95":"901m"'), ('"schema":2', '"schema":3'), ("}", ""), ('"900m"', '"much"')]
)
def test_a_shard_that_is_damaged_is_unreadable(old, new):
    payload = usage(cpu=("1m", "900m")).data["recommendations.json"]
    assert isinstance(decode("here", payload.replace(old, new)), Unreadable)


@pytest.mark.parametrize(
    "odd",
    [
        {"cpu": {"p5": "900m", "p95": "1m"}},
        {"cpu": {"p5": "-1m", "p95": "1m"}},
        {"memory": {"p5": "1Mi", "p95": "1k"}},
        {"cpu": {"p5": "1m", "p50": "3m", "p95": "2m"}},
        {"cpu": {"p5": "1m", "p95": "2m", "max": "1m"}},
        {"cpu": {"p5": "1m", "p95": "2m", "max": "much"}},
        {"days": -1},
        {"samples": -1},
        {"confidence": 1.5},
        {"cpu": {"p5": "1m", "p90": "3m", "p95": "2m"}},
        {"cpu": {"p5": "1m", "p95": "3m", "p99": "2m"}},
        {"cpu": {"p5": "1m", "p95": "2m", "request": "-1m"}},
        {"cpu": {"p5": "1m", "p95": "2m", "share": 2}},
        {"memory": {"p5": "1Mi", "p95": "2Mi", "floor": "much"}},
        {"memory": {"p5": "1Mi", "p95": "2Mi", "kills": -1}},
        {"cpu": {"p5": "1m", "p95": "2m", "confidence": -1}},
        {"last": -5},
        {"until": 10**12},
    ],
)
def test_a_shard_that_says_what_nobody_can_have_seen_is_unreadable(odd):
    payload = json.dumps({"schema": 1, "workloads": {"n/Deployment/a": {"app": odd}}})
    assert "n/Deployment/a, container app" in decode("here", payload).problem


def test_a_damaged_shard_is_a_problem_and_not_a_recommendation():
    metadata = {"name": "r", "namespace": "trimtab-system", "labels": {"trimtab.dev/recommendations": "v1"}}
    text = json.dumps({"kind": "ConfigMap", "metadata": metadata})
    result = from_snapshot(load_snapshot([("s.json", text.encode())]).snapshot)
    assert (len(result.problems), result.recommendations.workloads) == (1, {})


def test_only_our_own_namespace_is_believed():
    metadata = {"name": "r", "namespace": "evil", "labels": {"trimtab.dev/recommendations": "v1"}}
    result = from_snapshot(
        load_snapshot([("s.json", json.dumps({"kind": "ConfigMap", "metadata": metadata}).encode())]).snapshot
    )
    assert (result.problems, result.recommendations.workloads) == ((), {})


def test_what_is_not_known_has_a_name():
    assert isinstance(Recommendations().find_usage(owner_key("Deployment/a"), "app"), NotYet)


@pytest.mark.parametrize(
    ("field", "expected", "got", "todo"),
    [
        (
            "kind: Pod\nspec: {priorityClassName: off}",
            "text",
            "a bare off, which Kubernetes reads as false",
            'write "off"',
        ),
        ("kind: Pod\nspec: {priorityClassName: 17}", "text", "17", 'write "17"'),
        ("kind: Pod\nspec: {priorityClassName: [a]}", "text", "a list", ""),
        ("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: '3'}", "a whole number", "'3'", ""),
        (
            "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: yes}",
            "a whole number",
            "a bare yes, which Kubernetes reads as true",
            "",
        ),
        ("kind: Pod\nspec: {containers: {name: app}}", "a list", "a mapping", ""),
        ("kind: Pod\nspec: web", "a mapping", "'web'", ""),
    ],
)
def test_a_value_of_a_wrong_type_is_told_in_words(field, expected, got, todo):
    (mistake,) = load_snapshot([("f.yaml", f"{field}\n".encode())]).mistakes
    assert (mistake.expected, mistake.got, mistake.todo) == (expected, got, todo)
