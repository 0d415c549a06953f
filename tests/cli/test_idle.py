"""`trimtab idle` from files: the report, the manifests, and what is never read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.report_runs import read_report, run_verb
from tests.idle.cluster_with_orphans import PLANTED, cluster_objects, item, workload
from tests.reasons import has_facts

HOUR = 3600
MONDAY = 1_767_571_200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": cluster_objects()}))
    return tmp_path


def usage(path: Path, busy: range = range(8, 18)) -> Path:
    """Two weeks of web in the shop, busy on weekdays in these hours."""
    rows = ["timestamp,namespace,workload,container,cpu"]
    for n in range(14 * 24):
        at_work = n % 24 in busy and n // 24 % 7 < 5
        rows.append(f"{MONDAY + n * HOUR},shop,Deployment/web,app,{0.5 if at_work else 0.001}")
    (path / "usage.csv").write_text("\n".join(rows))
    return path / "usage.csv"


def shop(path: Path, *more: dict[str, Any]) -> Path:
    container = {"name": "app", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    objects = [workload("Deployment", "shop", "web", {"containers": [container]}), *more]
    (path / "shop.json").write_text(json.dumps({"kind": "List", "items": objects}))
    return path / "shop.json"


def test_the_report_has_every_planted_orphan(folder: Path) -> None:
    report = read_report("idle", "--cluster", folder / "cluster.json", "--secrets")
    names = {(row["object"]["kind"], row["object"]["namespace"], row["object"]["name"]) for row in report["orphans"]}
    assert names == PLANTED


def test_secrets_are_judged_only_when_asked_for(folder: Path) -> None:
    report = read_report("idle", "--cluster", folder / "cluster.json")
    assert "Secret" not in {row["object"]["kind"] for row in report["orphans"]}
    assert "Secret" not in report["checked"]
    assert any("--secrets" in note for note in report["notes"])


def test_what_could_sleep_has_hours_and_money(tmp_path: Path) -> None:
    (row,) = read_report("idle", "--cluster", shop(tmp_path), "--usage", usage(tmp_path))["sleepers"]
    assert (row["hoursPerWeek"], row["weeks"]) == (118, 2)
    assert row["windows"][0] == "mon 18:00 – tue 08:00"
    # Two pods of one core and 2 GiB at the general-purpose price, for 118 of 168 hours.
    assert row["dollarsPerMonth"] == pytest.approx(2 * (22.85 + 2 * 3.05) * 118 / 168, rel=0.01)


def test_the_proposed_manifests_are_kube_greens(tmp_path: Path) -> None:
    result = run_verb(
        "idle", "--cluster", shop(tmp_path), "--usage", usage(tmp_path), "--manifests", "--time-zone", "Europe/Berlin"
    )
    (manifest,) = yaml.safe_load_all(result.stdout)
    assert manifest["kind"] == "SleepInfo"
    assert manifest["spec"] == {"weekdays": "1-5", "sleepAt": "19:00", "wakeUpAt": "09:00", "timeZone": "Europe/Berlin"}


def test_a_schedule_that_misses_the_weekend_is_told(tmp_path: Path) -> None:
    nights = item("SleepInfo", "shop", "nights", spec={"weekdays": "*", "sleepAt": "18:00", "wakeUpAt": "08:00"})
    (row,) = read_report("idle", "--cluster", shop(tmp_path, nights), "--usage", usage(tmp_path))["missedSleep"]
    assert row["awakeAndQuiet"] == ["sat 08:00 – sat 18:00", "sun 08:00 – sun 18:00"]
    assert row["asleepAndBusy"] == []


def test_a_claim_that_is_mostly_empty_is_found_in_a_kubelets_summary(tmp_path: Path) -> None:
    volume = {
        "name": "v",
        "usedBytes": 1 << 30,
        "capacityBytes": 100 << 30,
        "pvcRef": {"namespace": "shop", "name": "d"},
    }
    (tmp_path / "node.json").write_text(
        json.dumps({"pods": [{"podRef": {"name": "p"}, "volume": [volume, {"name": "w"}]}]})
    )
    (row,) = read_report("idle", "--cluster", shop(tmp_path), "--summary", tmp_path / "node.json")["claims"]
    assert row["reason"]["code"] == "claim-mostly-empty"


def test_mistakes_in_options_are_named_together(tmp_path: Path) -> None:
    result = run_verb("idle", "--cluster", shop(tmp_path), "--time-zone", "Mars/X", "--server-version", "new")
    assert result.exit_code == 2
    assert "--time-zone" in result.stderr
    assert "--server-version" in result.stderr


def test_without_a_cluster_nothing_is_done() -> None:
    assert run_verb("idle").exit_code == 2


def test_the_table_says_no_pod_names_it_and_never_unused(folder: Path) -> None:
    result = run_verb("idle", "--cluster", folder / "cluster.json", "--secrets")
    assert has_facts(result.stdout, "no pod names")
    assert "unused" not in result.stdout
