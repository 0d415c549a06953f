"""What we ship is sound, and what we recommend is safe."""

import json
import os
import re
from dataclasses import replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
from tests.policies.examples import examples
from tests.policies.runner import SHIPPED, Run, pods, run, shipped, world
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.resources import QoS, all_containers, limits_of, qos_class, requests_of
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import CRITICAL

FILES = sorted(path for path in SHIPPED.glob("*/*.yaml"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
RECOMMENDED = shipped("recommended")
MANIFESTS = Path(os.environ.get("TRIMTAB_SHARED", str(SHIPPED.parents[1] / "shared"))) / "data" / "manifests"


# The files ------------------------------------------------------------------------------------------------------


def test_all_files_load_together_without_a_mistake_so_names_are_unique() -> None:
    loaded = load_policies((str(path), path.read_bytes()) for path in FILES)
    assert loaded.mistakes == ()
    assert len(loaded.policies.all) == len(FILES) >= 12


@each_file
def test_a_file_is_named_after_its_policy(path: Path) -> None:
    (policy,) = load_policies([(path.name, path.read_bytes())]).policies.all
    assert path.stem == policy.name


@each_file
def test_a_file_names_its_schema_and_says_when_not_to_use_it(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# yaml-language-server: $schema=../../deploy/schemas/podpolicy.schema.json\n#\n# ")
    assert re.search(r"^# (Not for you|Nothing speaks against|It changes nothing)", text, re.MULTILINE)
    (policy,) = load_policies([(path.name, text.encode())]).policies.all
    assert policy.spec.description.endswith(".")


def test_no_two_policies_share_a_priority_so_the_order_does_not_hang_on_names() -> None:
    priorities = [policy.spec.priority for policy in shipped()]
    assert len(set(priorities)) == len(priorities)


def test_the_readme_lists_every_policy_with_its_priority() -> None:
    text = (SHIPPED / "README.md").read_text()
    rows = dict(re.findall(r"^\| \[([a-z-]+)\]\([a-z]+/\1\.yaml\) \| (\d+)", text, re.MULTILINE))
    assert rows == {policy.name: str(policy.spec.priority) for policy in shipped()}


def test_the_files_can_be_read_from_the_installed_package() -> None:
    folder = files(policies) / "recommended"
    assert sorted(item.name for item in folder.iterdir()) == sorted(f"{policy.name}.yaml" for policy in RECOMMENDED)


# The recommended set --------------------------------------------------------------------------------------------

law = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
quantities = {
    "cpu": st.sampled_from(["0", "10m", "250m", "1", "2"]),
    "memory": st.sampled_from(["0", "32Mi", "256Mi", "1Gi"]),
}


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        amount = {name: draw(values) for name, values in quantities.items()}
        return {"requests": amount, "limits": amount}
    return {side: draw(some) for side in ("requests", "limits")}


some = st.fixed_dictionaries({}, optional=quantities)
extras: list[dict[str, Any]] = [{}, {"runtimeClassName": "kata"}, {"overhead": {"cpu": "250m"}}, {"nodeName": "n"}]


@st.composite
def manifests(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(["Pod", "Deployment", "StatefulSet", "DaemonSet", "Job"]))
    drawn = draw(st.lists(resources(), min_size=1, max_size=3))
    spec = {"containers": [{"name": f"c{i}", "image": "i", "resources": one} for i, one in enumerate(drawn)]}
    if draw(st.booleans()):
        spec["initContainers"] = [{"name": "i", "image": "i", "restartPolicy": "Always"}]
    if draw(st.booleans()):
        spec["volumes"] = [{"name": "tmp", "emptyDir": {}}]
    spec |= draw(st.sampled_from(extras))
    whole = spec if kind == "Pod" else {"template": {"metadata": {"labels": {"app": "a"}}, "spec": spec}}
    return written({"kind": kind, "metadata": {"name": "a", "namespace": "team"}, "spec": whole})


def written(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


CLASS = {"kind": "RuntimeClass", "metadata": {"name": "kata"}, "overhead": {"podFixed": {"cpu": "250m"}}}
sides = st.fixed_dictionaries({}, optional=dict.fromkeys(("default", "defaultRequest", "max", "min"), some))
counted = st.dictionaries(st.sampled_from(["limits.cpu", "requests.cpu", "limits.memory", "pods"]), st.just("4"))
scopes = st.sampled_from([[], ["BestEffort"], ["NotBestEffort"]])


@st.composite
def worlds(draw: st.DrawFn) -> bytes:
    item = {"type": draw(st.sampled_from(["Container", "Pod"])), **draw(sides)}
    specs = {
        "LimitRange": {"limits": [item]},
        "ResourceQuota": {"hard": draw(counted), "scopes": draw(scopes)},
        "HorizontalPodAutoscaler": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
        "VerticalPodAutoscaler": {"targetRef": {"kind": "StatefulSet", "name": "a"}},
    }
    chosen = draw(st.lists(st.sampled_from(sorted(specs)), unique=True))
    metadata = {"name": "x", "namespace": "team"}
    items = [{"kind": kind, "metadata": metadata, "spec": specs[kind]} for kind in chosen]
    return written({"apiVersion": "v1", "kind": "List", "items": [CLASS, *items]})


def with_and_without(manifest: bytes, cluster: bytes, *, second: bool = True) -> tuple[Run, Run]:
    ((pod, namespace),) = pods(manifest)
    facts = world(cluster)
    without = run(pod, namespace, (), facts)
    return run(pod, namespace, RECOMMENDED, facts, second_call_comes=second), without


@law
@given(manifests(), worlds(), st.booleans())
def test_recommended_refuses_no_pod_that_was_accepted(manifest: bytes, cluster: bytes, second: bool) -> None:
    ours, without = with_and_without(manifest, cluster, second=second)
    assert isinstance(ours.outcome, PodAdmitted) or isinstance(without.outcome, PodRejected)


@law
@given(manifests(), worlds(), st.booleans())
def test_recommended_changes_nobodys_class_of_service(manifest: bytes, cluster: bytes, second: bool) -> None:
    ours, without = with_and_without(manifest, cluster, second=second)
    if isinstance(ours.outcome, PodAdmitted) and isinstance(without.outcome, PodAdmitted):
        assert qos_class(ours.outcome.pod.spec) is qos_class(without.outcome.pod.spec)


@law
@given(manifests(), worlds(), st.booleans())
def test_recommended_changes_nothing_a_scheduler_or_hpa_reads(manifest: bytes, cluster: bytes, second: bool) -> None:
    ours, without = with_and_without(manifest, cluster, second=second)
    if isinstance(ours.outcome, PodAdmitted) and isinstance(without.outcome, PodAdmitted):
        assert scheduled_by(ours.outcome.pod) == scheduled_by(without.outcome.pod)
        assert memory_limits(ours.outcome.pod.spec) == memory_limits(without.outcome.pod.spec)


@law
@given(manifests(), worlds())
def test_recommended_leaves_guaranteed_pods_as_they_are(manifest: bytes, cluster: bytes) -> None:
    ours, without = with_and_without(manifest, cluster)
    if isinstance(without.outcome, PodAdmitted) and qos_class(without.outcome.pod.spec) is QoS.GUARANTEED:
        assert isinstance(ours.outcome, PodAdmitted)
        assert ours.outcome.pod.spec == without.outcome.pod.spec


def scheduled_by(pod: Pod) -> tuple[object, ...]:
    spec = pod.spec
    requests = [requests_of(c.resources) for c in all_containers(spec)]
    return (
        requests,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.runtime_class_name,
        spec.overhead,
        spec.priority_class_name,
        spec.priority,
    )


def memory_limits(spec: PodSpec) -> list[object]:
    return [limits_of(c.resources).get("memory") for c in all_containers(spec)]


def test_a_pod_with_copied_overhead_is_accepted_only_with_the_recommended_set() -> None:
    manifest = b"kind: Pod\nmetadata: {name: a}\nspec: {overhead: {cpu: 1}, containers: [{name: c, image: i}]}"
    ours, without = with_and_without(manifest, b"")
    assert isinstance(ours.outcome, PodAdmitted)
    assert isinstance(without.outcome, PodRejected)


# All together ---------------------------------------------------------------------------------------------------


def stored_twice(pod: Pod, namespace: str, cluster: bytes = b"") -> tuple[Pod, Pod]:
    first = run(pod, namespace, shipped(), world(cluster)).outcome
    assert isinstance(first, PodAdmitted)
    second = run(first.pod, namespace, shipped(), world(cluster)).outcome
    assert isinstance(second, PodAdmitted)
    return first.pod, second.pod


@pytest.mark.parametrize("name", ["online-boutique.yaml", "kube-prometheus.yaml"])
def test_all_policies_together_on_real_manifests_change_nothing_the_second_time(name: str) -> None:
    if not MANIFESTS.is_dir():
        pytest.skip(f"no manifests at {MANIFESTS}: set TRIMTAB_SHARED to the folder that holds data/manifests")
    objects = list(pods((MANIFESTS / name).read_bytes()))
    assert objects
    for pod, namespace in objects:
        first, second = stored_twice(pod, namespace)
        assert first == second
        critical = value_or(pod.spec.priority_class_name, "") in CRITICAL
        assert ("trimtab.dev/changed" in value_or(first.metadata.annotations, {})) is not critical


def test_all_policies_together_on_every_example_change_nothing_the_second_time() -> None:
    for example in examples():
        path = example.path("world")
        cluster = path.read_bytes() if path.exists() else b""
        for pod, namespace in pods(example.path("before").read_bytes()):
            if isinstance(run(pod, namespace, shipped(), world(cluster)).outcome, PodAdmitted):
                first, second = stored_twice(pod, namespace, cluster)
                assert first == second, str(example)


WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  template:
    spec: {containers: [{name: app, image: registry.example.com/web:1, resources: %s}]}
"""
SHOP = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {trimtab.dev/memory-limits: request}}
---
"""


def memory_of(resources: str, names: set[str], facts: str = "") -> tuple[object, object]:
    """The memory that `app` asks for and is limited to, by these of the shipped policies, rolled out to all owners."""
    chosen = [policy for policy in shipped() if policy.name in names]
    everywhere = [replace(p, spec=replace(p.spec, rollout=100)) for p in chosen]
    ((pod, namespace),) = pods((WEB % resources).encode())
    outcome = run(pod, namespace, everywhere, world((SHOP + facts).encode())).outcome
    assert isinstance(outcome, PodAdmitted)
    actual_resources = outcome.pod.spec.containers[0].resources
    return requests_of(actual_resources).get("memory"), limits_of(actual_resources).get("memory")


def test_a_limit_that_follows_usage_is_above_the_known_peak() -> None:
    """Both came out at 300Mi, although the container was seen to use 900Mi."""
    usage = {"memory": {"p5": "100Mi", "p50": "200Mi", "p95": "300Mi", "max": "900Mi"}, "days": 14, "confidence": 1}
    data = json.dumps({"schema": 1, "workloads": {"shop/Deployment/web": {"app": usage}}})
    metadata = {
        "name": "trimtab-recommendations-00",
        "namespace": "trimtab-system",
        "labels": {"trimtab.dev/recommendations": "v1"},
    }
    text = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"recommendations.json": data}}
    )
    names = {"memory-limit-equals-request", "requests-from-usage"}
    assert memory_of("{requests: {memory: 1Gi}}", names, text) == ("300Mi", "1035Mi")


def test_no_limit_follows_what_a_policy_gives_where_nothing_is_known() -> None:
    """It was a hard limit of 128Mi."""
    assert memory_of("{}", {"memory-limit-equals-request", "burstable-by-default"}) == ("128Mi", None)


def test_no_action_fails_on_any_example() -> None:
    runs = chain.from_iterable(example.run.decisions for example in examples())
    assert [decision.failures for decision in runs if decision.failures] == []
