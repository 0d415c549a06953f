"""Where `trimtab recommend` finds usage: Prometheus, and the cluster itself."""

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.recommending import DAY, START, WEB, api, codes, kubeconfig, only, prometheus, usage, vpa, web, with_vpa
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, matrix, serving
from tests.usage.test_kubelet import summary
from trimtab.cluster.recommendation import ShardLayout
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.checkpoint import encode
from trimtab.histogram.live_history import LiveHistory


def test_history_comes_from_prometheus(tmp_path: Path) -> None:
    with serving(prometheus) as server:
        report = told(
            "recommend",
            "--prometheus",
            server.url,
            "--now",
            "2026-01-19T00:00:00Z",
            "--header",
            "Authorization: Bearer x",
            "--step",
            "3600",
            "--cluster",
            snapshot(tmp_path, web()),
        )
    (container,) = report["containers"]
    assert (container["cpu"]["proposed"], container["memory"]["proposed"]) == ("275m", "328Mi")
    assert container["cpu"]["days"] == 14
    assert all(headers["Authorization"] == "Bearer x" for _, _, headers in server.asked)


def test_a_saved_answer_of_prometheus_is_a_source(tmp_path: Path) -> None:
    query = {"query": "cpu", "start": str(START), "end": str(START + 2 * DAY), "step": "600"}
    saved = tmp_path / "answer.json"
    saved.write_text(json.dumps(prometheus(("/api/v1/query_range", query, {}))[1]))
    (container,) = told("recommend", "--usage", saved, "--quantity", "cores")["containers"]
    assert (container["workload"], container["cpu"]["p95"]) == ("web", "250m")


def test_a_prometheus_that_is_gone_fails_and_says_so(tmp_path: Path) -> None:
    with serving(lambda request: (401, {"error": "who are you?"})) as server:
        result = trimtab("recommend", "--prometheus", server.url)
    assert result.exit_code == 3
    assert "401: who are you?" in result.output


def test_what_a_start_takes_can_be_left_out_and_is_told(tmp_path: Path) -> None:
    def answer(request: Asked) -> Answer:
        status, result = prometheus(request)
        if request[0].endswith("query_range") and "cpu" in request[1]["query"]:
            rows = result["data"]["result"][0]["values"]
            if int(request[1]["start"]) == START:  # the pod began on the first day at noon
                result["data"]["result"][0]["values"] = [[rows[12][0], "9.0"], *rows[13:]]
        return status, result

    arguments = ("--now", "2026-01-19T00:00:00Z", "--step", "3600", "--start-up", "600")
    with serving(answer) as server:
        report = told("recommend", "--prometheus", server.url, *arguments)
    assert report["containers"][0]["cpu"]["max"] == "250m"
    assert any(has_facts(note, "9.00 cores", "start") for note in report["notes"])


def test_what_is_left_out_of_files_is_told(tmp_path: Path) -> None:
    file, saved = tmp_path / "usage.csv", tmp_path / "answer.json"
    file.write_text("timestamp,cpu\n1767571200,-1\n1767571260,0.1\n")
    points = [(START, float("nan")), (START + 60, -1.0), (START + 120, 0.1)]
    saved.write_text(json.dumps(matrix(({"namespace": "shop", "pod": WEB, "container": "app"}, points))))
    notes = told("recommend", "--usage", file, "--usage", saved, "--quantity", "answer.json=cores")["notes"]
    assert has_facts(notes, "2 samples", "ignored")
    assert has_facts(notes, file, "1 amount", "below zero", "first in line 2")


def test_a_window_too_short_for_the_scrapes_is_told(tmp_path: Path) -> None:
    def answer(request: Asked) -> Answer:
        cpu = request[0].endswith("query_range") and "cpu" in request[1]["query"]
        return (200, matrix()) if cpu else prometheus(request)

    with serving(answer) as server:
        report = told("recommend", "--prometheus", server.url, "--now", "2026-01-19T00:00:00Z", "--step", "3600")
    assert any(has_facts(note, "--rate 5m", "four scrapes") for note in report["notes"])


@pytest.mark.parametrize(
    ("answer", "words"),
    [((401, b"Unauthorized"), "--header-file"), ((302, b""), "log-in page"), ((200, b"<html>"), "http://")],
)
def test_a_prometheus_that_does_not_answer_says_what_to_do(answer: Answer, words: str) -> None:
    with serving(lambda request: answer) as server:
        result = trimtab("recommend", "--prometheus", server.url)
    assert (result.exit_code, words in result.output) == (3, True)


# ── the cluster itself ───────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("world", "share", "note"),
    [
        ({}, "p5", ""),
        ({"ready": False}, "p95", "cannot change pods"),
        ({"allowed": False}, "p95", "no permission to read whether"),
    ],
)
def test_a_live_clusters_vpa_takes_over_only_where_its_webhook_answers(
    tmp_path: Path, world: dict[str, bool], share: str, note: str
) -> None:
    with serving(lambda request: with_vpa(request, **world)) as server:
        config = kubeconfig(tmp_path, server.url)
        report = told(
            "recommend", "--usage", usage(tmp_path), "--cluster", "live", "--kubeconfig", config, "--rule", "p95"
        )
    (container,) = report["containers"]
    assert container["cpu"]["proposed"] == container["cpu"][share]
    assert any(note in text for text in report["notes"]) or not note


@pytest.mark.parametrize(
    ("metrics", "note"), [(True, "has one present sample (2 series)"), (False, "serves no metrics API")]
)
def test_a_cluster_alone_tells_one_moment_and_no_history(tmp_path: Path, metrics: bool, note: str) -> None:
    with serving(lambda request: api(request, metrics=metrics)) as server:
        report = told("recommend", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert any(note in text for text in report["notes"])
    (container,) = report["containers"]
    assert (container["workload"], container["cpu"]["samples"], container["cpu"]["proposed"]) == (
        "web",
        int(metrics),
        None,
    )


def kubelets(asked: Asked, *, allowed: bool = True) -> Answer:
    """The same, with a node whose kubelet may be asked, or not."""
    if asked[0] == "/api/v1/nodes":
        return 200, {
            "kind": "NodeList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "1"},
            "items": [{**node("a"), "apiVersion": "v1"}],
        }
    if asked[0] == "/api/v1/nodes/a/proxy/stats/summary":
        return (200, summary(WEB)) if allowed else (403, {"kind": "Status", "reason": "Forbidden", "message": "no"})
    return api(asked, metrics=False)


def test_kubelets_are_asked_where_that_is_wanted(tmp_path: Path) -> None:
    with serving(kubelets) as server:
        config = kubeconfig(tmp_path, server.url)
        report = told("recommend", "--cluster", "live", "--kubeconfig", config, "--kubelets")
    assert any(has_facts(text, "one present sample", "2 series") for text in report["notes"])
    assert report["containers"][0]["cpu"]["samples"] == 1


def test_kubelets_that_may_not_be_asked_say_which_right_it_takes(tmp_path: Path) -> None:
    with serving(lambda request: kubelets(request, allowed=False)) as server:
        config = kubeconfig(tmp_path, server.url)
        result = trimtab("recommend", "--cluster", "live", "--kubeconfig", config, "--kubelets")
    assert (result.exit_code, "nodes/proxy" in result.output) == (3, True)


def test_kubelets_beside_another_source_are_asked_wrongly(tmp_path: Path) -> None:
    result = trimtab("recommend", "--usage", usage(tmp_path), "--kubelets")
    assert (result.exit_code, "--cluster live" in result.output) == (2, True)


# ── what VPAs recommend ──────────────────────────────────────────────────
def advising(mode: str = "Off") -> Item:
    text = {"containerRecommendations": [{"containerName": "app", "target": {"cpu": "250m", "memory": "300Mi"}}]}
    actual_vpa = vpa(recommendation=text)
    return {**actual_vpa, "spec": {**actual_vpa["spec"], "updatePolicy": {"updateMode": mode}}}


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_vpas_recommend_is_a_source(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"vpa.{form}"
    path.write_text(json.dumps(advising()) if form == "json" else yaml.safe_dump(advising()))
    report = told("recommend", "--usage", path)
    (container,) = report["containers"]
    assert (container["workload"], container["cpu"]["proposed"], container["memory"]["proposed"]) == (
        "web",
        "250m",
        "300Mi",
    )
    assert codes(container["cpu"]) == ["from-vpa"]
    assert (container["cpu"]["p95"], container["cpu"]["confidence"], report["unknown"]) == (None, None, 0)
    assert not any("No usage was found" in note for note in report["notes"])


def test_what_was_seen_counts_before_what_a_vpa_recommends(tmp_path: Path) -> None:
    assert codes(only(tmp_path, web(), advising())["cpu"]) == ["from-usage"]
    early = only(tmp_path, web(), advising(), hours=2)
    assert (early["cpu"]["proposed"], codes(early["cpu"])) == ("250m", ["from-vpa"])
    assert has_facts(early["cpu"]["reasons"][0]["text"], "2 hours", "1 day")


def test_a_vpa_that_acts_decides_and_one_that_cannot_advises(tmp_path: Path) -> None:
    assert codes(only(tmp_path, web(), advising("Auto"), hours=2)["cpu"]) == ["vpa-decides"]
    down = only(tmp_path, web(), advising("Auto"), hours=2, options=("--vpa-down",))
    assert codes(down["cpu"]) == ["from-vpa"]


def test_what_the_recommender_keeps_is_a_history(tmp_path: Path) -> None:
    diary, app = LiveHistory(), ContainerKey("shop", "Deployment", "web", "app")
    for at in range(START, START + 2 * DAY, 600):
        diary.add_sample(app, WEB, "cpu", at, 0.25)
        diary.add_sample(app, WEB, "memory", at, (400.0 if at >= START + 2 * DAY - 3600 else 300.0) * (1 << 20))
    shard = {
        "metadata": {"name": "trimtab-usage-000", "namespace": "trimtab-system"},
        "data": {"usage.json": encode(diary, [app], ShardLayout())},
    }

    def kept(request: Asked) -> Answer:
        if request[0] == "/api/v1/namespaces/trimtab-system/configmaps":
            return 200, {
                "kind": "ConfigMapList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "1"},
                "items": [shard],
            }
        return api(request)

    with serving(kept) as server:
        report = told("recommend", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert has_facts(report["notes"], "recommender", "history of 1 container")
    assert (report["containers"][0]["cpu"]["p95"], report["containers"][0]["cpu"]["samples"]) == ("250m", 288)
    assert report["containers"][0]["memory"]["max"] == "400Mi"  # the peak of the interval that is not over


def test_what_prometheus_warns_of_is_a_note(tmp_path: Path) -> None:
    def warning(asked: Asked) -> Answer:
        status, body = prometheus(asked)
        return status, {**body, "warnings": ["store thanos-2 did not respond"]}

    with serving(warning) as server:
        report = told("recommend", "--prometheus", server.url, "--now", "2026-01-19T00:00:00Z")
    assert has_facts(report["notes"], "--prometheus", "warning", "thanos-2")
