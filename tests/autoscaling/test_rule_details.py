"""Details of single rules that their manifests do not show."""

import json
from typing import Any

import pytest

from tests.reasons import assert_reason, has_facts
from trimtab.autoscaling.lint import NotChecked, check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import REMOVED, LintSeverity, ManifestChange, Needs, RuleFinding
from trimtab.autoscaling.rules import RULES_BY_CODE
from trimtab.cluster.yaml_documents import read_documents

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def workload(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    container = {"name": "web", "image": "web:1", "resources": {"requests": {"cpu": "20m", "memory": "300Mi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {**spec, "template": template}}


def vpa(mode: str = "Recreate", containers: tuple[dict[str, Any], ...] = (), **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": TARGET,
            "updatePolicy": {"updateMode": mode},
            "resourcePolicy": {"containerPolicies": list(containers)},
            **spec,
        },
    }


def budget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def find(code: str, *manifests: dict[str, Any]) -> tuple[RuleFinding, ...]:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    snapshot = read_lint_snapshot(read_documents("web.json", text.encode()).documents).snapshot
    return check_snapshot(snapshot, [RULES_BY_CODE[code]]).findings


def values_of(findings: tuple[RuleFinding, ...]) -> list[Any]:
    return [change.value for f in findings for change in f.changes if isinstance(change, ManifestChange)]


@pytest.mark.parametrize(
    ("owner", "value"),
    [(workload(replicas=3), 2), (workload(), 0), (workload("DaemonSet"), "50%"), (workload(replicas=0), "50%")],
    ids=["three", "one", "unknown", "asleep"],
)
def test_a_budget_of_all_pods_is_opened_by_one_pod_at_least(owner: dict[str, Any], value: Any) -> None:
    """99 % of three pods are three, rounded up as the disruption controller rounds."""
    assert values_of(find("L30", owner, budget(minAvailable="100%"))) == [value]


def test_a_vpa_sizes_no_sidecar() -> None:
    """Its recommender and its webhook leave out init containers, so the pod's minimum is that of one container."""
    sidecar = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
    sized = workload(replicas=3)
    sized["spec"]["template"]["spec"]["initContainers"] = [sidecar]
    sized["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "20m"
    (finding,) = find("L18", sized, vpa())
    assert has_facts(str(finding), "25m")


def test_a_new_budget_replaces_no_other_one() -> None:
    """An object that is applied replaces its namesake, whatever that selects."""
    foreign = {**budget(minAvailable=1), "spec": {"selector": {"matchLabels": {"app": "other"}}, "minAvailable": 1}}
    stateful = workload("StatefulSet", replicas=3)
    stateful["spec"]["template"]["metadata"]["labels"] = {"app": "store"}
    findings = find("L29", workload(replicas=2), stateful, foreign)
    names = [change.manifest["metadata"]["name"] for one in findings for change in one.changes]  # type: ignore[union-attr]
    assert names == ["web-deployment", "web-statefulset"]


def hpa(metric: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [{"type": metric}], **spec},
    }


@pytest.mark.parametrize(
    ("metric", "is_found"), [("Resource", True), ("Pods", True), ("Object", False), ("External", False)]
)
def test_a_metric_of_pods_wakes_up_nothing(metric: str, is_found: bool) -> None:
    """The API server refuses a minimum of 0 without an Object or External metric (ValidateHorizontalPodAutoscaler)."""
    assert bool(find("L09", hpa(metric, minReplicas=0))) is is_found


@pytest.mark.parametrize(
    ("replicas", "facts"),
    [(1, ("at peak load", "2 pods", "until", "new pods are ready")), (3, ("Each time", "to 3 at once"))],
)
def test_a_written_count_says_what_applying_it_does(replicas: int, facts: tuple[str, ...]) -> None:
    [finding] = find("L07", workload(replicas=replicas), hpa("Resource"))
    assert has_facts(finding.outcome, *facts)


def test_a_request_that_is_the_limits_stays_without_the_limit() -> None:
    owner = workload(replicas=2)
    owner["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "500m"}}
    assert values_of(find("L35", owner)) == [REMOVED, "500m"]


def test_a_vpa_that_leaves_a_single_pod_alone_does_not_evict_it_either() -> None:
    bounded = vpa(containers=({"containerName": "*", "minAllowed": {"cpu": "50m"}},))
    [alone], [evicted] = (find("L18", workload(replicas=count), bounded) for count in (1, 2))
    assert (alone.severity, evicted.severity) == ("warning", "error")
    assert has_facts(alone.outcome, "not evict", "so few replicas")


def test_a_maximum_of_one_resource_leaves_the_other_without_one() -> None:
    [finding] = find("L19", workload(), vpa(containers=({"containerName": "*", "maxAllowed": {"cpu": "4"}},)))
    assert_reason(finding, "L19", field="maxAllowed", resource="memory", container="container web")


def test_a_target_is_named_with_the_version_of_its_controller() -> None:
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "controller": True}
    rollout = {**workload("Rollout", replicas=2), "apiVersion": "argoproj.io/v1alpha1"}
    replica_set = workload("ReplicaSet")
    replica_set["metadata"] = {"name": "web-1", "ownerReferences": [owner]}
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1"}
    findings = find("L25", rollout, replica_set, vpa(targetRef=target))
    assert values_of(findings) == ["argoproj.io/v1alpha1", "Rollout", "web"]


def test_a_target_whose_controller_is_not_among_the_objects_claims_no_fix() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone", "controller": True}
    replica_set = workload("ReplicaSet")
    replica_set["metadata"] = {"name": "web-1", "ownerReferences": [owner]}
    target = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1"}
    [finding] = find("L25", replica_set, vpa(targetRef=target))
    assert finding.changes == ()


def test_pods_that_cannot_grow_in_place_are_one_finding_for_each_resource() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "100m", "memory": "64Gi"}},
    }
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"web-{n}", "ownerReferences": [owner]},
            "spec": {**workload()["spec"]["template"]["spec"], "nodeName": "n"},
        }
        for n in range(3)
    ]
    recommended = {"containerRecommendations": [{"containerName": "web", "target": {"cpu": "1", "memory": "1Gi"}}]}
    wanting = {**vpa("InPlaceOrRecreate"), "status": {"recommendation": recommended}}
    [finding] = find("N03", workload(replicas=3), wanting, node, *pods)
    assert_reason(finding, "N03", pod="pod web-0", node="node n", free="40m", others="2 more pods")


@pytest.mark.parametrize(
    ("match", "is_found"),
    [
        ({}, True),
        ({"owners": ["Deployment"]}, True),
        ({"owners": ["Deployment/we*"]}, True),
        ({"owners": ["Deploy*"]}, True),
        ({"owners": ["ReplicaSet/web-*"]}, True),
        ({"podLabels": {"app": "w*"}}, True),
        ({"podLabels": {"app": "*"}}, True),
        ({"owners": ["Deployment/other"]}, False),
        ({"owners": ["StatefulSet"]}, False),
        ({"owners": ["ReplicaSet/we"]}, False),
        ({"podLabels": {"tier": "*"}}, False),
        ({"podLabels": {"app": "x*"}}, False),
    ],
)
def test_a_policys_owners_and_labels_are_patterns_as_for_the_webhook(match: dict[str, Any], is_found: bool) -> None:
    owner = workload()
    container = owner["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "1"}
    actions = {"requests": {"cpu": {"from": "usage", "otherwise": "50m"}}}
    policy = {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": "sized"},
        "spec": {"match": match, "actions": actions},
    }
    assert bool(find("L15", owner, vpa(), policy)) is is_found


@pytest.mark.parametrize(
    ("class_name", "outcome"),
    [
        ("system-cluster-critical", "the kernel kills it first"),
        ("system-node-critical", "evicts other pods"),
        ("", "among the first that the kubelet evicts"),
    ],
)
def test_what_happens_to_a_pod_without_requests_depends_on_its_priority(class_name: str, outcome: str) -> None:
    manifest = workload(replicas=2)
    spec = {"priorityClassName": class_name, "containers": [{"name": "web", "image": "web:1"}]}
    manifest["spec"]["template"]["spec"] = spec
    (finding,) = find("L33", manifest)
    assert outcome in finding.outcome


def test_a_windows_pod_without_requests_has_no_kernel_that_kills_it() -> None:
    manifest = workload(replicas=2)
    manifest["spec"]["template"]["spec"] = {
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "windows"},
        "containers": [{"name": "web", "image": "web:1"}],
    }
    (finding,) = find("L33", manifest)
    assert "slows down" in finding.outcome
    assert "kernel" not in finding.outcome


def limited(**container: Any) -> dict[str, Any]:
    owner = workload()
    [app] = owner["spec"]["template"]["spec"]["containers"]
    app |= {"resources": {**app["resources"], "limits": {"cpu": "1", "memory": "1Gi"}}, **container}
    return owner


@pytest.mark.parametrize("code", ["L35", "L36"])
@pytest.mark.parametrize(
    "container",
    [
        {"image": "eclipse-temurin:21"},
        {"env": [{"name": "JAVA_OPTS", "value": "-XX:MaxRAMPercentage=75"}]},
        {"command": ["java", "-jar", "app.jar"]},
        {
            "env": [
                {"name": name, "valueFrom": {"resourceFieldRef": {"resource": f"limits.{name}"}}}
                for name in ("cpu", "memory")
            ]
        },
    ],
    ids=["image", "env", "command", "reference"],
)
def test_no_rule_advises_to_remove_a_limit_that_the_container_reads(code: str, container: dict[str, Any]) -> None:
    [found] = find(code, limited(**container))
    assert (found.severity, found.changes, "Keep the limit" in found.fix) == (LintSeverity.INFO, (), True)


def with_volume(empty_dir: dict[str, Any]) -> dict[str, Any]:
    owner = limited()
    owner["spec"]["template"]["spec"]["volumes"] = [{"name": "shm", "emptyDir": empty_dir}]
    return owner


@pytest.mark.parametrize(
    ("empty_dir", "severity"),
    [
        ({"medium": "Memory"}, LintSeverity.INFO),
        ({"medium": "Memory", "sizeLimit": "1Gi"}, LintSeverity.WARNING),
        ({}, LintSeverity.WARNING),
    ],
)
def test_a_memory_limit_that_sizes_a_volume_stays(empty_dir: dict[str, Any], severity: LintSeverity) -> None:
    findings = [find(code, with_volume(empty_dir))[0] for code in ("L35", "L36")]
    assert [one.severity for one in findings] == [LintSeverity.WARNING, severity]


def test_a_limit_that_sizes_a_volume_has_the_outcome_of_the_volume() -> None:
    (finding,) = find("L36", with_volume({"medium": "Memory"}))
    assert "the volume could grow" in finding.outcome
    assert has_facts(finding.fix, "sizeLimit", "emptyDir shm")


def test_a_jvm_with_sizes_of_its_own_may_lose_its_limits() -> None:
    free = limited(env=[{"name": "JAVA_OPTS", "value": "-Xmx1g -XX:ActiveProcessorCount=1"}])
    assert [find(code, free)[0].severity for code in ("L35", "L36")] == [LintSeverity.WARNING] * 2


def test_a_guaranteed_pod_that_reads_its_cpu_limit_needs_no_other_reason() -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    resources = {"requests": amounts, "limits": amounts}
    assert find("L34", limited(resources=resources, image="eclipse-temurin:21")) == ()
    assert len(find("L34", limited(resources=resources))) == 1


def test_a_pod_that_its_own_resources_make_guaranteed_is_reported() -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    owner = workload()
    owner["spec"]["template"]["spec"]["resources"] = {"requests": amounts, "limits": amounts}
    assert len(find("L34", owner)) == 1


@pytest.mark.parametrize("code", ["L34", "L35", "L36"])
@pytest.mark.parametrize("system", [{"os": {"name": "windows"}}, {"nodeSelector": {"kubernetes.io/os": "windows"}}])
def test_no_rule_advises_to_remove_a_limit_on_windows(code: str, system: dict[str, Any]) -> None:
    """There a request guarantees no share of the cpu, and the documentation advises to set limits."""
    linux, windows = limited(), limited()
    for owner in (linux, windows):
        [app] = owner["spec"]["template"]["spec"]["containers"]
        app["resources"]["requests"] = app["resources"]["limits" if code == "L34" else "requests"]
    windows["spec"]["template"]["spec"] |= system
    assert (len(find(code, linux)), len(find(code, windows))) == (1, 0)


def test_one_rule_that_was_not_checked_is_one_rule() -> None:
    assert has_facts(str(NotChecked(Needs.REPLICAS, ("L08",))), "1 rule was", "(L08)")


def scaled(target: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {**hpa("Resource"), "spec": {"scaleTargetRef": {**target, "name": "web"}, "maxReplicas": 5, **spec}}


@pytest.mark.parametrize(
    ("target", "changes"),
    [
        ({"kind": "Deployment"}, ["apps/v1"]),
        ({"kind": "Deployment", "apiVersion": "v1"}, ["apps/v1"]),
        ({"kind": "StatefulSet"}, []),
        ({"kind": "Rollout"}, []),
        ({"kind": "Deployment", "apiVersion": "extensions/v1beta1"}, ["apps/v1"]),
        ({"kind": "ReplicaSet", "apiVersion": "extensions/v1beta1"}, []),
    ],
)
def test_an_hpa_without_a_group_gets_that_of_the_workload_it_means(target: dict[str, str], changes: list[str]) -> None:
    findings = find("L46", workload(), scaled(target))
    assert (len(findings), values_of(findings)) == (1, changes)


@pytest.mark.parametrize("kind", ["deployment", "statefulSet", "REPLICASET"])
def test_an_hpa_finds_a_kind_by_its_exact_name_only(kind: str) -> None:
    findings = find("L46", workload(), scaled({"kind": kind, "apiVersion": "apps/v1"}))
    assert [value.lower() for value in values_of(findings)] == [kind.lower()]
    assert find("L46", scaled({"kind": kind, "apiVersion": "example.com/v1"})) == ()


def test_only_a_replication_controller_is_scaled_without_a_group() -> None:
    assert find("L46", scaled({"kind": "ReplicationController"})) == ()
    assert find("L46", scaled({"kind": "Deployment", "apiVersion": "apps/v1"})) == ()
    assert find("L46", scaled({"kind": "Deployment", "apiVersion": "apps/v1beta1"})) == ()


def test_an_hpa_of_a_former_group_scales_nothing() -> None:
    former = scaled({"kind": "Deployment", "apiVersion": "extensions/v1beta1"})
    assert find("L07", workload(replicas=2), former) == ()
    assert find("L07", workload(replicas=2), scaled({"kind": "Deployment", "apiVersion": "apps/v1"})) != ()


@pytest.mark.parametrize(("target", "words"), [(TARGET, "at least 2 replicas"), ({"kind": "Deployment"}, "3 replicas")])
def test_a_count_that_is_an_hpas_minimum_is_not_called_the_manifests(target: dict[str, str], words: str) -> None:
    (finding,) = find("L29", workload(replicas=3), scaled(target, minReplicas=2))
    assert f"has {words}" in str(finding)


def owned(pdb: dict[str, Any], **reference: Any) -> dict[str, Any]:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "vm", "uid": "u", **reference}
    return {**pdb, "metadata": {**pdb["metadata"], "ownerReferences": [owner]}}


@pytest.mark.parametrize("reference", [{"controller": True}, {}])
def test_a_budget_that_a_controller_writes_gets_no_advice_to_change_it(reference: dict[str, Any]) -> None:
    blocking = budget(maxUnavailable=0)
    assert len(find("L31", workload(replicas=2), blocking)) == 1
    assert find("L31", workload(replicas=2), owned(blocking, **reference)) == ()
    (finding,) = find("L30", workload(replicas=2), owned(blocking, **reference))
    assert finding.changes == ()
    assert has_facts(finding.fix, "VirtualMachineInstance vm", "undo")


def test_two_budgets_over_one_pod_are_one_finding_that_names_both() -> None:
    other = {**budget(maxUnavailable=1), "metadata": {"name": "other"}}
    (finding,) = find("L48", workload(replicas=2), budget(maxUnavailable=1), other)
    assert has_facts(finding.sentence, "2 PodDisruptionBudgets", "other", "web")
    assert find("L48", workload(replicas=2), budget(maxUnavailable=1)) == ()


@pytest.mark.parametrize(("kind", "count"), [("CloneSet", 1), ("DaemonSet", 0)])
def test_two_budgets_over_the_pods_of_an_owner_of_another_project_are_one_finding(kind: str, count: int) -> None:
    version = "apps/v1" if kind == "DaemonSet" else "apps.kruise.io/v1alpha1"
    owner = {"apiVersion": version, "kind": kind, "name": "web", "uid": "u", "controller": True}
    metadata = {"labels": {"app": "web"}, "ownerReferences": [owner]}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"web-{n}", **metadata},
            "spec": {"containers": [{"name": "c"}]},
        }
        for n in range(2)
    ]
    other = {**budget(maxUnavailable=1), "metadata": {"name": "other"}}
    assert len(find("L48", *pods, budget(maxUnavailable=1), other)) == count
    assert find("L48", *pods, budget(maxUnavailable=1)) == ()
