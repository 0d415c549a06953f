"""`trimtab recommend`: usage and a snapshot in, proposals out."""

from pathlib import Path

import pytest

from tests.cli.recommending import START, codes, deployment, hpa, only, usage, vpa, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import node, pod
from tests.reasons import has_facts


def test_a_static_container_is_offered_a_request_and_what_that_saves(tmp_path: Path) -> None:
    row = only(tmp_path)
    assert (row["kind"], row["workload"], row["replicas"]) == ("Deployment", "web", 1)
    assert (row["cpu"]["proposed"], row["cpu"]["p95"]) == ("208m", "195m")
    assert row["memory"]["proposed"] == "346Mi"
    assert row["monthlySaved"] == pytest.approx(row["monthlyNow"] - row["monthlyProposed"], abs=0.011)
    assert row["monthlySaved"] > 15
    assert row["cpu"]["confidence"] == 1.0


def test_under_a_vpa_it_is_offered_its_p5(tmp_path: Path) -> None:
    row = only(tmp_path, web(), deployment(), vpa())
    assert row["cpu"]["proposed"] == row["cpu"]["p5"]
    assert has_facts(row["cpu"]["reasons"][0]["text"], "VPA web", "later")


def test_with_the_vpas_webhook_down_it_is_offered_a_static_request(tmp_path: Path) -> None:
    row = only(tmp_path, web(), vpa(), options=("--vpa-down",))
    assert (row["cpu"]["proposed"], codes(row["cpu"])) == ("208m", ["from-usage", "vpa-webhook-down"])


def test_a_vpa_that_recommends_decides(tmp_path: Path) -> None:
    text = {"containerRecommendations": [{"containerName": "app", "target": {"cpu": "100m", "memory": "200Mi"}}]}
    row = only(tmp_path, web(), vpa(recommendation=text))
    assert codes(row["cpu"]) == codes(row["memory"]) == ["vpa-decides"]


def test_an_hpa_keeps_cpu_and_lets_memory_change(tmp_path: Path) -> None:
    row = only(tmp_path, web(), hpa(80))
    assert (codes(row["cpu"]), row["memory"]["proposed"]) == (["hpa-uses-request"], "346Mi")
    allowed = only(tmp_path, web(), hpa(80), options=("--allow-hpa",))
    assert has_facts(allowed["cpu"]["reasons"][-1]["text"], "1 replica becomes", "about 5")


def test_less_than_an_hour_of_history_proposes_nothing_and_say_what_is_missing(tmp_path: Path) -> None:
    row = only(tmp_path, hours=1)
    assert row["cpu"]["proposed"] is None
    assert row["cpu"]["missing"]["reason"]["code"] == "insufficient-history"
    assert (row["cpu"]["missing"]["have"], row["cpu"]["missing"]["need"]) == (
        "0.8 hours, 6 samples",
        "an hour, 10 samples",
    )


def test_the_table_says_what_there_is_and_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = trimtab("recommend", "--usage", usage(tmp_path, hours=1), "--cluster", snapshot(tmp_path, web()))
    text = "too little cpu usage of the container is known (have 0.8 hours, 6 samples; need an hour, 10 samples)"
    assert text in result.output


def test_a_container_that_was_never_seen_says_so(tmp_path: Path) -> None:
    other = pod("api-1", on="a")
    report = told("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web(), other))
    by_name = {container["workload"]: container for container in report["containers"]}
    assert by_name["api"]["cpu"]["missing"]["reason"]["code"] == "no-usage"
    assert report["unknown"] == 1


def test_pods_that_are_gone_count_for_the_workload_that_stands(tmp_path: Path) -> None:
    gone = usage(tmp_path, pod_name="web-5c9f8d7b66-b7k2m", cpu=0.8)
    report = told("recommend", "--usage", usage(tmp_path), "--usage", gone, "--cluster", snapshot(tmp_path, web()))
    (container,) = report["containers"]
    assert container["cpu"]["samples"] == 2 * 14 * 144
    assert container["cpu"]["max"] == "800m"


def test_usage_of_what_no_longer_stands_is_left_out_and_told(tmp_path: Path) -> None:
    old = usage(tmp_path, pod_name="old-7d4b9c6f5d-x2x4k")
    report = told("recommend", "--usage", old, "--cluster", snapshot(tmp_path, web()))
    assert [container["workload"] for container in report["containers"]] == ["web"]
    (note,) = [note for note in report["notes"] if "1 container left out" in note]
    assert has_facts(note, "known", "shop/Deployment/old/app")


def test_nothing_is_proposed_that_no_node_holds(tmp_path: Path) -> None:
    row = only(tmp_path, web(), node("a", cpu="4"), cpu=9.0)
    assert codes(row["cpu"])[-1] == "usage-above-node"


def test_old_history_makes_less_sure(tmp_path: Path) -> None:
    row = only(tmp_path, options=("--now", "2026-01-22T00:00:00Z"))
    assert row["cpu"]["confidence"] == 0.25


def test_a_deployment_without_pods_is_read_from_its_manifest(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3, "template": template},
    }
    row = only(tmp_path, deployment)
    assert (row["replicas"], row["cpu"]["now"], row["cpu"]["proposed"]) == (3, "1", "208m")


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
    assert has_facts(result.output, "columns", "timestamp", "cpu, memory or value")


def test_a_header_without_a_colon_is_named(tmp_path: Path) -> None:
    result = trimtab("recommend", "--usage", usage(tmp_path), "--header", "secret")
    assert result.exit_code == 2
    assert "NAME: VALUE" in result.output


def test_a_folder_of_usage_is_read(tmp_path: Path) -> None:
    usage(tmp_path)
    assert [container["workload"] for container in told("recommend", "--usage", tmp_path)["containers"]] == ["web"]


def test_an_address_without_its_scheme_is_asked_wrongly() -> None:
    result = trimtab("recommend", "--prometheus", "prometheus:9090")
    assert (result.exit_code, "https://prometheus:9090" in result.output) == (2, True)


def test_where_nothing_was_found_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "usage.csv").write_text("timestamp,cpu\n")
    report = told("recommend", "--usage", tmp_path)
    assert any("No usage was found" in note for note in report["notes"])


def test_a_rule_of_ones_own_says_what_it_took_for_each_resource(tmp_path: Path) -> None:
    arguments = ("recommend", "--usage", usage(tmp_path), "--rule", "p70", "--memory-rule", "max +15%")
    report = told(*arguments)
    (container,) = report["containers"]
    assert report["rule"] == "cpu p70, memory max +15%"
    assert has_facts(container["cpu"]["reasons"][0]["text"], "P70", "14 days", "170m")
    assert has_facts(container["memory"]["reasons"][0]["text"], "largest peak", "15%", "14 days", "348Mi")


@pytest.mark.parametrize(("option", "text"), [("--rule", "steady"), ("--rule", "p0"), ("--memory-rule", "p99 +9999%")])
def test_a_rule_outside_the_grammar_is_named_with_what_is_in_it(option: str, text: str) -> None:
    result = trimtab("recommend", "--usage", "-", option, text)
    assert result.exit_code == 2
    assert f"{option}: expected " in result.output
    assert repr(text) in result.output


def leader_csv(folder: Path) -> Path:
    """Thirty pods, one of which uses 15 times the cpu and 8 times the memory of the others."""
    rows = [
        f"{START + n * 3600},shop,web-{pod},app,{3.0 if pod == 7 else 0.2},{8192 if pod == 7 else 1024}Mi"
        for pod in range(30)
        for n in range(14 * 24)
    ]
    path = folder / "leader.csv"
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


def test_the_pod_that_uses_far_more_is_covered_where_that_is_asked_for(tmp_path: Path) -> None:
    usage = leader_csv(tmp_path)
    (typical,), (largest,) = (
        told("recommend", "--usage", usage, *more)["containers"] for more in ((), ("--pods", "largest"))
    )
    assert ("pods-differ" in codes(typical["cpu"]), typical["cpu"]["confidence"]) == (True, 0.45)
    assert (largest["cpu"]["proposed"], largest["memory"]["proposed"]) == ("3", "8Gi")
    assert (codes(largest["cpu"]), largest["cpu"]["confidence"]) == (["from-usage", "from-usage"], 1.0)


@pytest.mark.parametrize("rule", ["p95", "max", "adaptive"])
def test_whatever_the_rule_what_makes_it_doubtful_is_said(tmp_path: Path, rule: str) -> None:
    (container,) = told("recommend", "--usage", leader_csv(tmp_path), "--rule", rule)["containers"]
    assert ("pods-differ" in codes(container["cpu"]), container["cpu"]["confidence"]) == (
        (False, 1.0) if rule == "max" else (True, 0.45)
    )
