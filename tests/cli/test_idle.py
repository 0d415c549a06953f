"""`trimtab idle` from files: the report, the manifests, and what is never read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.report_runs import read_report, run_verb
from tests.idle.cluster_with_orphans import PLANTED, cluster_objects, item, workload
from tests.reasons import has_facts
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

HOUR = 3600
PRICES = (
    "InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly\n,us-east-1,node,,m5.xlarge,0.05\n"
)
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


@pytest.mark.parametrize("namespace", ["trimtab-system", "platform"])
def test_nothing_that_trimtab_installs_or_writes_is_listed(tmp_path: Path, namespace: str) -> None:
    values = InstallValues(namespace=namespace, image="trimtab:1", metrics_api=True)
    written = [
        item("ConfigMap", namespace, "pool-web", data={}, metadata={"labels": {"trimtab.dev/pool": "web"}}),
        item("ConfigMap", namespace, "trimtab-state-web", data={}, metadata={"labels": {"trimtab.dev/state": "web"}}),
        item("ConfigMap", namespace, "trimtab-usage-0", data={}, metadata={"labels": {"trimtab.dev/usage": "0"}}),
        item("Secret", namespace, "trimtab-webhook-certificate"),
        workload("Deployment", "shop", "web", {"containers": [{"name": "app", "command": ["run"]}]}),
    ]
    objects = [*render_manifests(values), *written]
    (tmp_path / "installed.json").write_text(json.dumps({"kind": "List", "items": objects}))
    report = read_report("idle", "--cluster", tmp_path / "installed.json", "--secrets")
    named = [row["object"] for part in ("orphans", "unjudged", "sleepers", "claims") for row in report[part]]
    assert [name for name in named if name["namespace"] == namespace] == []


def test_a_kind_that_cannot_be_scaled_to_zero_is_not_asked_for_more_usage(tmp_path: Path) -> None:
    container = {"name": "app", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    agent = workload("DaemonSet", "shop", "agent", {"containers": [container]})
    rows = ["timestamp,namespace,workload,container,cpu"]
    rows += [
        f"{MONDAY + n * HOUR},shop,{who},app,0.1" for n in range(24) for who in ("DaemonSet/agent", "Deployment/web")
    ]
    (tmp_path / "day.csv").write_text("\n".join(rows))
    report = read_report("idle", "--cluster", shop(tmp_path, agent), "--usage", tmp_path / "day.csv")
    [unknown] = report["unknown"]
    assert "shop/web" in unknown["subject"]


def test_the_prices_that_users_pay_count(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(PRICES)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n",
            "labels": {"node.kubernetes.io/instance-type": "m5.xlarge", "topology.kubernetes.io/region": "us-east-1"},
        },
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        },
    }
    arguments = ("idle", "--cluster", shop(tmp_path, node), "--usage", usage(tmp_path))
    [by_list], [by_file] = (read_report(*arguments, *more)["sleepers"] for more in ((), ("--prices", prices)))
    assert by_file["dollarsPerMonth"] < by_list["dollarsPerMonth"] / 2
