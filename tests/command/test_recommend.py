"""`trimtab recommend`: usage and a snapshot in, proposals out."""

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster_of import Item, node, pod
from tests.command.snapshots import snapshot, told, trimtab
from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, serving, vector
from trimtab.cluster import quantity
from trimtab.sketch.book import Container
from trimtab.sketch.diary import Diary
from trimtab.sketch.stored import encode

START = 1767571200
"""2026-01-05."""
DAY = 86400
WEB = "web-7d4b9c6f5d-x2x4k"


def usage(folder: Path, *, hours: int = 14 * 24, pod_name: str = WEB, cpu: float = 0.2, memory: int = 300) -> Path:
    """Every ten minutes; P95 a little above `cpu`."""
    drawn = random.Random(7)
    rows = [
        f"{START + n * 600},shop,{pod_name},app,{cpu * (0.5 + drawn.random() / 2):.4f},{memory + n % 3}Mi"
        for n in range(hours * 6)
    ]
    path = folder / f"usage-{pod_name}.csv"
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


def web(name: str = WEB, **more: Any) -> Item:
    """A pod of Deployment web that asks for a core and a gibibyte."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, **more}
    owner = {"kind": "ReplicaSet", "name": "web-7d4b9c6f5d", "controller": True, "apiVersion": "apps/v1"}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"pod-template-hash": "7d4b9c6f5d"},
                     "ownerReferences": [owner]},
        "spec": {"nodeName": "a", "containers": [{"name": "app", "resources": resources}]},
        "status": {"phase": "Running"},
    }  # fmt: skip


def vpa(**status: Any) -> Item:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    policy = {"containerPolicies": [{"containerName": "*", "controlledValues": "RequestsOnly"}]}
    return {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"targetRef": target, "resourcePolicy": policy}, "status": status}  # fmt: skip


def hpa(target: int) -> Item:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"},
                     "metrics": [{"type": "Resource", "resource": cpu}]}}  # fmt: skip


def only(folder: Path, *items: Item, options: tuple[str, ...] = (), **given: Any) -> dict[str, Any]:
    """The one container's report."""
    standing = items or (web(),)
    report = told("recommend", "--usage", usage(folder, **given), "--cluster", snapshot(folder, *standing), *options)
    (found,) = report["containers"]
    assert isinstance(found, dict)
    return found


def codes(part: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in part["reasons"]]


# ── what is proposed ─────────────────────────────────────────────────────
def test_a_static_container_is_offered_its_p95_and_what_that_saves(tmp_path: Path) -> None:
    found = only(tmp_path)
    assert (found["kind"], found["workload"], found["replicas"]) == ("Deployment", "web", 1)
    assert found["cpu"]["proposed"] == found["cpu"]["p95"] == "195m"
    assert found["memory"]["proposed"] == "302Mi"
    assert found["monthlySaved"] == pytest.approx(found["monthlyNow"] - found["monthlyProposed"], abs=0.011)
    assert found["monthlySaved"] > 15
    assert found["cpu"]["confidence"] == 1.0


def test_under_a_vpa_it_is_offered_its_p5(tmp_path: Path) -> None:
    found = only(tmp_path, web(), vpa())
    assert found["cpu"]["proposed"] == found["cpu"]["p5"]
    assert "VPA web takes over" in found["cpu"]["reasons"][0]["text"]


def test_with_the_vpas_webhook_down_it_is_offered_its_p95(tmp_path: Path) -> None:
    found = only(tmp_path, web(), vpa(), options=("--vpa-down",))
    assert (found["cpu"]["proposed"], codes(found["cpu"])) == (found["cpu"]["p95"], ["from-usage", "vpa-webhook-down"])


def test_a_vpa_that_recommends_decides(tmp_path: Path) -> None:
    said = {"containerRecommendations": [{"containerName": "app", "target": {"cpu": "100m", "memory": "200Mi"}}]}
    found = only(tmp_path, web(), vpa(recommendation=said))
    assert codes(found["cpu"]) == codes(found["memory"]) == ["vpa-decides"]


def test_an_hpa_keeps_cpu_and_lets_memory_change(tmp_path: Path) -> None:
    found = only(tmp_path, web(), hpa(80))
    assert (codes(found["cpu"]), found["memory"]["proposed"]) == (["hpa-counts-by-request"], "302Mi")
    allowed = only(tmp_path, web(), hpa(80), options=("--allow-hpa",))
    assert "1 replicas become about 6" in allowed["cpu"]["reasons"][-1]["text"]


def test_two_hours_of_history_propose_nothing_and_say_what_is_missing(tmp_path: Path) -> None:
    found = only(tmp_path, hours=2)
    assert found["cpu"]["proposed"] is None
    assert found["cpu"]["missing"]["reason"]["code"] == "insufficient-history"
    assert (found["cpu"]["missing"]["have"], found["cpu"]["missing"]["need"]) == (
        "1.8 hours, 12 samples", "24 hours, 100 samples")  # fmt: skip


def test_a_container_that_was_never_seen_says_so(tmp_path: Path) -> None:
    other = pod("api-1", on="a")
    report = told("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web(), other))
    by_name = {found["workload"]: found for found in report["containers"]}
    assert by_name["api"]["cpu"]["missing"]["reason"]["code"] == "no-usage"
    assert report["unknown"] == 1


def test_pods_that_are_gone_count_for_the_workload_that_stands(tmp_path: Path) -> None:
    gone = usage(tmp_path, pod_name="web-5c9f8d7b66-b7k2m", cpu=0.8)
    report = told("recommend", "--usage", usage(tmp_path), "--usage", gone, "--cluster", snapshot(tmp_path, web()))
    (found,) = report["containers"]
    assert found["cpu"]["samples"] == 2 * 14 * 144
    assert found["cpu"]["max"] == "800m"


def test_usage_of_what_no_longer_stands_is_left_out_and_told(tmp_path: Path) -> None:
    old = usage(tmp_path, pod_name="old-7d4b9c6f5d-x2x4k")
    report = told("recommend", "--usage", old, "--cluster", snapshot(tmp_path, web()))
    assert [found["workload"] for found in report["containers"]] == ["web"]
    assert any("1 container left out" in note for note in report["notes"])


def test_nothing_is_proposed_that_no_node_holds(tmp_path: Path) -> None:
    found = only(tmp_path, web(), node("a", cpu="4"), cpu=9.0)
    assert codes(found["cpu"])[-1] == "usage-above-node"


def test_old_history_makes_less_sure(tmp_path: Path) -> None:
    found = only(tmp_path, options=("--now", "2026-01-22T00:00:00Z"))
    assert found["cpu"]["confidence"] == 0.25


def test_a_deployment_without_pods_is_read_from_its_manifest(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}}
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 3, "template": template}}  # fmt: skip
    found = only(tmp_path, made)
    assert (found["replicas"], found["cpu"]["now"], found["cpu"]["proposed"]) == (3, "1", "195m")


# ── forms ────────────────────────────────────────────────────────────────
def test_the_table_begins_with_what_it_comes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    result = trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()))
    assert result.output.startswith("1 of 1 container would ask for something else: that saves $")
    assert "1 → 195m" in result.output
    assert "P95 of peaks" in result.output


def test_the_csv_has_a_row_for_each_container(tmp_path: Path) -> None:
    text = trimtab("recommend", "--usage", usage(tmp_path), "-o", "csv").stdout
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["workload"], row["cpu_proposed"], row["memory_proposed"], row["monthly_saved"]) == (
        "web", "195m", "302Mi", "")  # fmt: skip


def test_the_page_draws_every_curve_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    evil = usage(tmp_path, pod_name="<script>")
    text = trimtab("recommend", "--usage", evil, "-o", "html").stdout
    assert text.count("<svg") == 2
    assert "<script" not in text
    assert "http" not in text


def test_yaml_tells_the_same_as_json(tmp_path: Path) -> None:
    path = usage(tmp_path)
    assert yaml.safe_load(trimtab("recommend", "--usage", path, "-o", "yaml").stdout) == told(
        "recommend", "--usage", path
    )


def test_patches_are_written_for_kustomize(tmp_path: Path) -> None:
    folder = tmp_path / "patches"
    given = ("--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()), "--patch", folder)
    assert trimtab("recommend", *given).exit_code == 0
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (name,) = [patch["path"] for patch in kustomization["patches"]]
    patch = yaml.safe_load((folder / name).read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "app", "resources": {"requests": {"cpu": "195m", "memory": "302Mi"}}}
    assert (patch["kind"], patch["metadata"]) == ("Deployment", {"name": "web", "namespace": "shop"})


def test_a_sidecars_patch_stands_among_the_init_containers(tmp_path: Path) -> None:
    item = web()
    item["spec"]["initContainers"] = [{**item["spec"]["containers"][0], "restartPolicy": "Always"}]
    item["spec"]["containers"] = [{"name": "other"}]
    folder = tmp_path / "patches"
    trimtab("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, item), "--patch", folder)
    patch = yaml.safe_load((folder / "shop-deployment-web.yaml").read_text())
    assert [found["name"] for found in patch["spec"]["template"]["spec"]["initContainers"]] == ["app"]
    assert "containers" not in patch["spec"]["template"]["spec"]


def test_a_single_series_gives_a_single_number(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("".join(f"{START + n * 600},{0.1 + n % 10 / 1000}\n" for n in range(200)))
    given = ("recommend", "--usage", path, "--number")
    assert float(trimtab(*given).output) == pytest.approx(0.109, rel=0.016)
    assert float(trimtab(*given, "--rule", "steady").output) == pytest.approx(0.109 * 1.05, rel=0.016)


# ── Prometheus ───────────────────────────────────────────────────────────
def prometheus(asked: Asked) -> Answer:
    path, query, _ = asked
    if path.endswith("/label/namespace/values"):
        return 200, labels("shop")
    if path.endswith("/label/pod/values"):
        return 200, labels(WEB)
    if path.endswith("/query"):
        return 200, vector()
    value = 0.25 if "cpu" in query["query"] else 3e8
    times = range(int(query["start"]), int(query["end"]) + 1, int(query["step"]))
    metric = {"namespace": "shop", "pod": WEB, "container": "app"}
    return 200, matrix((metric, [(float(at), value) for at in times]))


def test_history_comes_from_prometheus(tmp_path: Path) -> None:
    with serving(prometheus) as server:
        report = told("recommend", "--prometheus", server.url, "--now", "2026-01-19T00:00:00Z", "--header",
                      "Authorization: Bearer x", "--step", "3600", "--cluster", snapshot(tmp_path, web()))  # fmt: skip
    (found,) = report["containers"]
    assert (found["cpu"]["proposed"], found["memory"]["proposed"]) == ("250m", "287Mi")
    assert found["cpu"]["days"] == 14
    assert all(headers["Authorization"] == "Bearer x" for _, _, headers in server.asked)


def test_a_saved_answer_of_prometheus_is_a_source(tmp_path: Path) -> None:
    query = {"query": "cpu", "start": str(START), "end": str(START + 2 * DAY), "step": "600"}
    saved = tmp_path / "answer.json"
    saved.write_text(json.dumps(prometheus(("/api/v1/query_range", query, {}))[1]))
    (found,) = told("recommend", "--usage", saved)["containers"]
    assert (found["workload"], found["cpu"]["p95"]) == ("web", "250m")


def test_a_prometheus_that_is_gone_fails_and_says_so(tmp_path: Path) -> None:
    with serving(lambda asked: (401, {"error": "who are you?"})) as server:
        result = trimtab("recommend", "--prometheus", server.url)
    assert result.exit_code == 3
    assert "401: who are you?" in result.output


def test_what_a_start_takes_can_be_left_out_and_is_told(tmp_path: Path) -> None:
    def answer(asked: Asked) -> Answer:
        status, found = prometheus(asked)
        if asked[0].endswith("query_range") and "cpu" in asked[1]["query"]:
            rows = found["data"]["result"][0]["values"]
            if int(asked[1]["start"]) == START:  # the pod began on the first day at noon
                found["data"]["result"][0]["values"] = [[rows[12][0], "9.0"], *rows[13:]]
        return status, found

    given = ("--now", "2026-01-19T00:00:00Z", "--step", "3600", "--start-up", "600")
    with serving(answer) as server:
        report = told("recommend", "--prometheus", server.url, *given)
    assert report["containers"][0]["cpu"]["max"] == "250m"
    assert any("its start took up to 9.00 cores" in note for note in report["notes"])


# ── asked wrongly ────────────────────────────────────────────────────────
def test_all_mistakes_of_the_options_are_named_together() -> None:
    result = trimtab("recommend", "--now", "later", "--least-cpu", "lots")
    assert result.exit_code == 2
    for word in ("--now", "--least-cpu", "--usage PATH"):
        assert word in result.output


def test_a_file_that_is_no_usage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    path.write_text("when,what\n1,2\n")
    result = trimtab("recommend", "--usage", path)
    assert result.exit_code == 2
    assert "expected columns timestamp and cpu, memory or value" in result.output


def test_a_header_without_a_colon_is_named(tmp_path: Path) -> None:
    result = trimtab("recommend", "--usage", usage(tmp_path), "--header", "secret")
    assert result.exit_code == 2
    assert "NAME: VALUE" in result.output


def test_a_folder_of_usage_is_read(tmp_path: Path) -> None:
    usage(tmp_path)
    assert [found["workload"] for found in told("recommend", "--usage", tmp_path)["containers"]] == ["web"]


def test_an_address_without_its_scheme_is_asked_wrongly() -> None:
    result = trimtab("recommend", "--prometheus", "prometheus:9090")
    assert (result.exit_code, "https://prometheus:9090" in result.output) == (2, True)


def test_where_nothing_was_found_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "usage.csv").write_text("timestamp,cpu\n")
    report = told("recommend", "--usage", tmp_path)
    assert any("No usage was found" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("answer", "words"),
    [((401, b"Unauthorized"), "--header 'Authorization"), ((302, b""), "log-in page"), ((200, b"<html>"), "http://")],
)
def test_a_prometheus_that_does_not_answer_says_what_to_do(answer: Answer, words: str) -> None:
    with serving(lambda asked: answer) as server:
        result = trimtab("recommend", "--prometheus", server.url)
    assert (result.exit_code, words in result.output) == (3, True)


# ── the cluster itself ───────────────────────────────────────────────────
def api(asked: Asked, *, metrics: bool = True) -> Answer:
    """A cluster with one pod, its metrics and no history."""
    path = asked[0]
    if path.startswith("/apis/metrics.k8s.io") and metrics:
        usage = [{"name": "app", "usage": {"cpu": "250000000n", "memory": "131072Ki"}}]
        meta = {"name": WEB, "namespace": "shop"}
        return 200, {"items": [{"metadata": meta, "timestamp": "2026-01-05T00:00:00Z", "containers": usage}]}
    if path == "/api/v1/pods":
        return 200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [web()]}
    if path.startswith(("/apis/metrics", "/apis/autoscaling.k8s.io")):
        return 404, {"kind": "Status", "reason": "NotFound", "message": "not served"}
    return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}


def kubeconfig(folder: Path, url: str) -> Path:
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    named = {"clusters": [{"name": "c", "cluster": {"server": url}}], "users": [{"name": "u", "user": {}}],
             "contexts": [context], "current-context": "x"}  # fmt: skip
    (folder / "kubeconfig").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **named}))
    return folder / "kubeconfig"


def with_vpa(asked: Asked, *, ready: bool = True, allowed: bool = True) -> Answer:
    """The same, with a VPA that has nothing to say yet, and its webhook."""
    path = asked[0]
    service = {"namespace": "kube-system", "name": "vpa-webhook"}
    hook = {"name": "vpa.k8s.io", "clientConfig": {"service": service, "caBundle": "Q0E="},
            "admissionReviewVersions": ["v1"], "sideEffects": "None"}  # fmt: skip
    slice_ = {"metadata": {"name": "s", "namespace": "kube-system",
                           "labels": {"kubernetes.io/service-name": "vpa-webhook"}},
              "addressType": "IPv4",
              "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}]}  # fmt: skip
    said = {"verticalpodautoscalers": vpa(), "endpointslices": slice_,
            "mutatingwebhookconfigurations": {"metadata": {"name": "vpa"}, "webhooks": [hook]}}  # fmt: skip
    plural = path.rsplit("/", 1)[-1]
    if plural in said:
        if plural.startswith("mutating") and not allowed:
            return 403, {"kind": "Status", "reason": "Forbidden", "message": "no"}
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": [said[plural]]}
    return api(asked)


@pytest.mark.parametrize(
    ("world", "share", "note"),
    [({}, "p5", ""), ({"ready": False}, "p95", "cannot act"), ({"allowed": False}, "p95", "may not be looked at")],
)
def test_a_live_clusters_vpa_takes_over_only_where_its_webhook_answers(
    tmp_path: Path, world: dict[str, bool], share: str, note: str
) -> None:
    with serving(lambda asked: with_vpa(asked, **world)) as server:
        config = kubeconfig(tmp_path, server.url)
        report = told("recommend", "--usage", usage(tmp_path), "--cluster", "live", "--kubeconfig", config)
    (found,) = report["containers"]
    assert found["cpu"]["proposed"] == found["cpu"][share]
    assert any(note in text for text in report["notes"]) or not note


@pytest.mark.parametrize(("metrics", "note"), [(True, "tells one moment (2 series)"), (False, "serves no metrics API")])
def test_a_cluster_alone_tells_one_moment_and_no_history(tmp_path: Path, metrics: bool, note: str) -> None:
    with serving(lambda asked: api(asked, metrics=metrics)) as server:
        report = told("recommend", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert any(note in text for text in report["notes"])
    (found,) = report["containers"]
    assert (found["workload"], found["cpu"]["samples"], found["cpu"]["proposed"]) == ("web", int(metrics), None)


def test_what_the_recommender_keeps_is_a_history(tmp_path: Path) -> None:
    diary, app = Diary(), Container("shop", "Deployment", "web", "app")
    for at in range(START, START + 2 * DAY, 600):
        diary.see(app, WEB, "cpu", at, 0.25)
    shard = {"metadata": {"name": "trimtab-usage-000", "namespace": "trimtab-system"},
             "data": {"usage.json": encode(diary, [app], 1)}}  # fmt: skip

    def kept(asked: Asked) -> Answer:
        if asked[0] == "/api/v1/namespaces/trimtab-system/configmaps":
            return 200, {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"},
                         "items": [shard]}  # fmt: skip
        return api(asked)

    with serving(kept) as server:
        report = told("recommend", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert "The recommender keeps the history of 1 containers." in report["notes"]
    assert (report["containers"][0]["cpu"]["p95"], report["containers"][0]["cpu"]["samples"]) == ("250m", 288)


def test_a_history_is_exported_for_a_fresh_vpa_and_read_again(tmp_path: Path) -> None:
    before = only(tmp_path, options=("--export-vpa", str(tmp_path / "vpa.yaml")))
    [document] = yaml.safe_load_all((tmp_path / "vpa.yaml").read_text())
    assert (document["metadata"], document["spec"]) == (
        {"name": "web-app", "namespace": "shop"}, {"vpaObjectName": "web", "containerName": "app"})  # fmt: skip
    (after,) = told("recommend", "--usage", tmp_path / "vpa.yaml")["containers"]
    assert after["cpu"]["samples"] == pytest.approx(before["cpu"]["samples"], abs=10)
    assert quantity.of("cpu", after["cpu"]["p95"]) == pytest.approx(quantity.of("cpu", before["cpu"]["p95"]), rel=0.1)
