"""`trimtab vpa simulate` and `trimtab vpa propose` from files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.report_runs import read_report, run_verb
from tests.cluster_of import node
from tests.idle.cluster_with_orphans import item, workload

START = 1_767_571_200
FAST = "--cpu-histogram-decay-half-life=15m --recommendation-lower-bound-cpu-percentile=0.7"


@pytest.fixture
def usage(tmp_path: Path) -> Path:
    """Four days of two pods of web: 100m, and on the last day one core."""
    rows = ["timestamp,namespace,workload,pod,container,cpu,memory"]
    for n in range(4 * 288):
        cores = 1.0 if n >= 3 * 288 else 0.1
        rows += [f"{START + n * 300},shop,Deployment/web,web-{pod},app,{cores},300Mi" for pod in "ab"]
    (tmp_path / "usage.csv").write_text("\n".join(rows))
    return tmp_path / "usage.csv"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    container = {"name": "app", "resources": {"requests": {"cpu": "150m", "memory": "200Mi"}}}
    objects = [node("n", cpu="4", memory="16Gi"), workload("Deployment", "shop", "web", {"containers": [container]})]
    return write(tmp_path, *objects)


def write(path: Path, *objects: dict[str, Any]) -> Path:
    (path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    return path / "cluster.json"


def test_flags_are_compared_with_the_defaults(usage: Path, cluster: Path) -> None:
    report = read_report("vpa", "simulate", "--usage", usage, "--cluster", cluster, "--flags", FAST)
    (container,) = report["containers"]
    slow, fast = container["results"]
    starved = [
        next(part["starvedMinutes"] for part in result["resources"] if part["resource"] == "cpu")
        for result in (slow, fast)
    ]
    assert (slow["flags"], fast["flags"]) == ("default", FAST)
    assert starved[1] < starved[0] / 5
    assert fast["evictions"] > 0
    assert fast["requests"][0]["requests"] == {"cpu": "150m", "memory": "200Mi"}
    assert [row["riseYoungPodMinutes"] for row in report["reaction"]] == [720.0, 7.7]


def test_in_place_nothing_is_evicted(usage: Path, cluster: Path) -> None:
    report = read_report(
        "vpa", "simulate", "--usage", usage, "--cluster", cluster, "--update-mode", "InPlaceOrRecreate"
    )
    (result,) = report["containers"][0]["results"]
    assert result["evictions"] == 0
    assert result["resizes"] > 0


def test_the_table_has_a_row_for_each_set_of_flags(usage: Path) -> None:
    result = run_verb("vpa", "simulate", "--usage", usage, "--flags", FAST)
    assert result.exit_code == 0, result.output
    assert "DROP" in result.stdout


def test_every_wrong_flag_is_named(usage: Path) -> None:
    result = run_verb("vpa", "simulate", "--usage", usage, "--flags", "--half-life=1h --target-cpu-percentile=90")
    assert result.exit_code == 2
    assert "--half-life" in result.stderr
    assert "--target-cpu-percentile=90" in result.stderr


def test_a_varying_workload_gets_a_vpa_with_bounds(usage: Path, cluster: Path) -> None:
    result = run_verb(
        "vpa", "propose", "--usage", usage, "--cluster", cluster, "--server-version", "1.34", "--manifests"
    )
    (manifest,) = yaml.safe_load_all(result.stdout)
    policy = manifest["spec"]["resourcePolicy"]["containerPolicies"][0]
    assert manifest["spec"]["updatePolicy"] == {"updateMode": "InPlaceOrRecreate"}
    assert policy == {
        "containerName": "app",
        "controlledResources": ["cpu"],
        "controlledValues": "RequestsOnly",
        "minAllowed": {"cpu": "126m"},
        "maxAllowed": {"cpu": "4"},
    }


def test_two_workloads_of_one_name_get_vpas_of_two_names(usage: Path, tmp_path: Path) -> None:
    """An object that is applied replaces its namesake."""
    rows = usage.read_text().splitlines()
    usage.write_text(
        "\n".join([*rows, *(row.replace("Deployment/", "DaemonSet/").replace("web-", "log-") for row in rows[1:])])
    )
    container = {"name": "app", "resources": {"requests": {"cpu": "150m", "memory": "200Mi"}}}
    kinds = ("Deployment", "DaemonSet")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}
    foreign = item("VerticalPodAutoscaler", "shop", "web", version="autoscaling.k8s.io/v1", spec={"targetRef": target})
    workloads = [workload(kind, "shop", "web", {"containers": [container]}) for kind in kinds]
    for others, names in (([], {"web", "web-deployment"}), ([foreign], {"web-deployment", "web-daemonset"})):
        cluster = write(tmp_path, node("n", cpu="4", memory="16Gi"), *workloads, *others)
        printed = run_verb("vpa", "propose", "--usage", usage, "--cluster", cluster, "--manifests").stdout
        assert {manifest["metadata"]["name"] for manifest in yaml.safe_load_all(printed)} == names


OPERATOR = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "Prometheus",
    "name": "web",
    "uid": "u",
    "controller": True,
}


@pytest.mark.parametrize(
    ("template", "owners", "kind"),
    [("Job", [], "Job"), ("StatefulSet", [OPERATOR], "Prometheus.monitoring.coreos.com")],
)
def test_a_workload_for_which_no_vpa_is_proposed_is_named_with_the_reason(
    template: str, owners: list[Any], kind: str, usage: Path, tmp_path: Path
) -> None:
    owned = workload(template, "shop", "web", {"containers": [{"name": "app"}]})
    owned["metadata"]["ownerReferences"] = owners
    owned["apiVersion"] = "batch/v1" if template == "Job" else "apps/v1"
    # A pod's owner is known by the shape of its name: that of a Job's pod ends with five random characters.
    rows = usage.read_text().replace("workload,", "").replace("Deployment/web,", "")
    usage.write_text(rows.replace("web-a", "web-bcdfg" if template == "Job" else "web-0").replace("web-b,", "web-1,"))
    cluster = write(tmp_path, owned)
    report = read_report("vpa", "propose", "--usage", usage, "--cluster", cluster)
    printed = run_verb("vpa", "propose", "--usage", usage, "--cluster", cluster, "--manifests")
    notes = [note for note in report["notes"] if kind in note and "shop/web" in note]
    assert (report["proposals"], len(notes), kind in printed.stderr) == ([], 1, True)


def test_lint_has_nothing_to_fix_in_a_proposed_vpa_of_one_replica(usage: Path, cluster: Path, tmp_path: Path) -> None:
    """A VPA acts on a single replica only with minReplicas 1 (L26), and on a StatefulSet only to raise (L28)."""
    for kind in ("Deployment", "StatefulSet"):
        text = usage.read_text().replace("Deployment/", f"{kind}/")
        usage.write_text(text)
        one = cluster.read_text().replace('"replicas": 2', '"replicas": 1')
        cluster.write_text(one.replace('"Deployment"', f'"{kind}"'))
        terms = ("--usage", usage, "--cluster", cluster, "--server-version", "1.34", "--manifests")
        (tmp_path / "vpa.yaml").write_text(run_verb("vpa", "propose", *terms).stdout)
        linted = run_verb("lint", "-f", tmp_path / "vpa.yaml", "-f", cluster, "-o", "json")
        findings = json.loads(linted.stdout)["findings"]
        assert [finding for finding in findings if finding["kind"] == "VerticalPodAutoscaler"] == []


def test_a_vpa_that_is_not_worth_it_is_to_be_removed(tmp_path: Path) -> None:
    rows = ["timestamp,namespace,workload,container,cpu"]
    rows += [f"{START + n * 300},shop,Deployment/web,app,0.01" for n in range(600)]
    (tmp_path / "usage.csv").write_text("\n".join(rows))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    vpa = item("VerticalPodAutoscaler", "shop", "web-vpa", version="autoscaling.k8s.io/v1", spec={"targetRef": target})
    cluster = write(tmp_path, workload("Deployment", "shop", "web", {}), vpa)
    (row,) = read_report("vpa", "propose", "--usage", tmp_path / "usage.csv", "--cluster", cluster)["proposals"]
    assert (row["action"], row["existing"], row["reason"]["code"]) == ("remove", "web-vpa", "vpa-too-small")
    printed = run_verb("vpa", "propose", "--usage", tmp_path / "usage.csv", "--cluster", cluster, "--manifests")
    assert printed.stderr.strip() == "kubectl delete vpa --namespace shop web-vpa"


def test_an_hpa_on_cpu_utilization_keeps_the_vpa_away_from_cpu(tmp_path: Path, usage: Path) -> None:
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "metrics": [metric], "maxReplicas": 5}
    hpa = item("HorizontalPodAutoscaler", "shop", "web", version="autoscaling/v2", spec=spec)
    cluster = write(tmp_path, workload("Deployment", "shop", "web", {}), hpa)
    (row,) = read_report("vpa", "propose", "--usage", usage, "--cluster", cluster)["proposals"]
    assert (row["action"], row["reason"]["code"]) == ("none", "vpa-owned-by-hpa")


def test_a_wrong_version_is_named(usage: Path) -> None:
    assert run_verb("vpa", "propose", "--usage", usage, "--server-version", "new").exit_code == 2


def bounded(path: Path, kind: str, limit: str, level: dict[str, Any] | None = None, **bounds: Any) -> Path:
    """A snapshot of web with a cpu request of 1500m and a limit, under a LimitRange."""
    amounts = {"requests": {"cpu": "1500m", "memory": "200Mi"}, "limits": {"cpu": limit, "memory": "1Gi"}}
    pod = {"containers": [{"name": "app", "resources": amounts}], **({"resources": level} if level else {})}
    limits = item("LimitRange", "shop", "ratio", spec={"limits": [{"type": kind, **bounds}]})
    return write(path, node("n", cpu="4", memory="16Gi"), workload("Deployment", "shop", "web", pod), limits)


def test_the_minimum_of_a_vpa_keeps_the_ratio_of_a_limit_range(tmp_path: Path, usage: Path) -> None:
    cluster = bounded(tmp_path, "Container", "2", maxLimitRequestRatio={"cpu": "4"})
    (row,) = read_report("vpa", "propose", "--usage", usage, "--cluster", cluster)["proposals"]
    printed = run_verb("vpa", "propose", "--usage", usage, "--cluster", cluster, "--manifests").stdout
    (manifest,) = yaml.safe_load_all(printed)
    (policy,) = manifest["spec"]["resourcePolicy"]["containerPolicies"]
    assert (policy["minAllowed"], "LimitRange ratio" in row["reason"]["text"]) == ({"cpu": "500m"}, True)
    low = {
        **manifest,
        "spec": {
            **manifest["spec"],
            "resourcePolicy": {"containerPolicies": [{**policy, "minAllowed": {"cpu": "100m"}}]},
        },
    }
    objects = json.loads(cluster.read_text())["items"]
    (row,) = read_report("vpa", "propose", "--usage", usage, "--cluster", write(tmp_path, *objects, low))["proposals"]
    assert (row["action"], row["reason"]["code"]) == ("change", "vpa-differs")


def test_no_vpa_is_proposed_with_which_the_api_server_refuses_pods(tmp_path: Path, usage: Path) -> None:
    of_pods = bounded(tmp_path, "Pod", "2", maxLimitRequestRatio={"cpu": "1500m"})
    (row,) = read_report("vpa", "propose", "--usage", usage, "--cluster", of_pods)["proposals"]
    assert (row["action"], row["reason"]["code"]) == ("none", "vpa-requests-refused")
    whole = bounded(tmp_path, "Container", "2", level={"requests": {"cpu": "2"}}, max={"cpu": "4"})
    (row,) = read_report("vpa", "propose", "--usage", usage, "--cluster", whole)["proposals"]
    assert (row["action"], row["reason"]["code"]) == ("none", "vpa-pod-level-resources")


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (("-n", "shop"), 1),
        (("-n", "shop", "-l", "app=cart"), 0),
        (("-n", "ops", "-A"), 1),
        (("-l", "app=web"), 1),
        (("-l", "app=cart"), 0),
    ],
)
def test_workloads_are_selected_by_namespace_and_label(
    usage: Path, cluster: Path, selection: tuple[str, ...], count: int
) -> None:
    report = read_report("vpa", "propose", "--usage", usage, "--cluster", cluster, *selection)
    assert len(report["proposals"]) == count
