"""What a report comes to, what it is about, and how far off each container is."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import DAY, START, codes, only, usage, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node
from tests.reasons import has_facts

HOUR = 3600


def workload(
    namespace: str, name: str, kind: str = "StatefulSet", pods: int = 1, cpu: str = "1", **labels: str
) -> list[Item]:
    """Its pods, named by number; each asks for so much cpu and a gibibyte."""
    owner = {"kind": kind, "name": name, "controller": True, "apiVersion": "batch/v1" if kind == "Job" else "apps/v1"}
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{n}", "namespace": namespace, "labels": labels, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "app", "resources": resources}]},
            "status": {"phase": "Running"},
        }
        for n in range(pods)
    ]


def series(folder: Path, *pods: tuple[str, str], cpu: float = 0.1, memory: int = 200) -> Path:
    """Two weeks of several pods, a value every ten minutes."""
    path = folder / "usage.csv"
    rows = [
        f"{START + n * 600},{namespace},{pod},app,{cpu},{memory}Mi" for n in range(14 * 144) for namespace, pod in pods
    ]
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


def shop_and_ops(folder: Path, *options: str) -> dict[str, Any]:
    items = [
        *workload("shop", "cart", pods=2, team="red"),
        *workload("shop", "till", team="blue"),
        *workload("ops", "log", kind="DaemonSet"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops", "labels": {"team": "blue"}}},
    ]
    pods = (("shop", "cart-0"), ("shop", "cart-1"), ("shop", "till-0"), ("ops", "log-0"))
    return told("recommend", "--usage", series(folder, *pods), "--cluster", snapshot(folder, *items), *options)


def test_totals_by_namespace_add_up_to_the_total(tmp_path: Path) -> None:
    report = shop_and_ops(tmp_path)
    assert [(one["value"], one["containers"], one["cpuNow"]) for one in report["totals"]] == [
        ("shop", 2, 3.0),
        ("ops", 1, 1.0),
    ]
    whole = report["total"]
    assert (whole["by"], whole["containers"], whole["cpuNow"], whole["memoryNow"]) == (None, 3, 4.0, 4.0)
    for name in (
        "cpuNow",
        "cpuProposed",
        "memoryNow",
        "memoryProposed",
        "monthlyNow",
        "monthlyProposed",
        "monthlySaved",
    ):
        assert sum(one[name] for one in report["totals"]) == pytest.approx(whole[name], abs=0.021), name
    assert whole["cpuProposed"] < 1
    assert whole["monthlySaved"] == pytest.approx(report["saved"], abs=0.01)


def test_totals_by_a_label_take_the_pods_own_or_else_their_namespaces(tmp_path: Path) -> None:
    totals = shop_and_ops(tmp_path, "--total-by", "team", "--total-by", "kind", "--total-by", "owner")["totals"]
    assert [(one["by"], one["value"], one["cpuNow"]) for one in totals] == [
        ("team", "blue", 2.0),
        ("team", "red", 2.0),
        ("kind", "StatefulSet", 3.0),
        ("kind", "DaemonSet", 1.0),
        ("owner", "", 4.0),
    ]


def test_the_table_and_the_page_have_the_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    items = [*workload("shop", "cart", pods=2), *workload("ops", "log")]
    arguments = (
        "recommend",
        "--usage",
        series(tmp_path, ("shop", "cart-0"), ("ops", "log-0")),
        "--cluster",
        snapshot(tmp_path, *items),
    )
    text = trimtab(*arguments).output
    assert has_facts(text, "all pods", "3.00 → 0.33 cores", "3.00 → 0.67 GiB", "78 → 10 dollars")
    assert has_facts(text, "shop", 1, "2.00 → 0.22", "2.00 → 0.45")
    page = trimtab(*arguments, "-o", "html").output
    assert "<td>shop</td>" in page
    assert "2.00 → 0.22" in page


def test_a_narrow_terminal_has_the_reasons_below_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    arguments = ("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()))
    lines = trimtab(*arguments).output.splitlines()
    assert any(line.startswith("│ shop/web/app │") for line in lines)
    assert "shop/web/app" in lines
    assert all(len(line) <= 80 for line in lines)


def test_without_a_snapshot_nothing_is_added_up(tmp_path: Path) -> None:
    report = told("recommend", "--usage", usage(tmp_path))
    assert (report["total"]["containers"], report["total"]["cpuNow"], report["total"]["monthlyNow"]) == (1, None, None)
    assert {row["severity"] for row in report["containers"]} == {"unknown"}


# ── what it is about ─────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("options", "workloads"),
    [
        (("-n", "ops"), {"log"}),
        (("-n", "ops", "-n", "shop"), {"cart", "till", "log"}),
        (("--kind", "statefulset"), {"cart", "till"}),
        (("--kind", "StatefulSet,DaemonSet", "-n", "ops"), {"log"}),
        (("-l", "team=blue"), {"till", "log"}),
        (("-l", "team in (red),!x"), {"cart"}),
        (("--severity", "medium"), {"cart", "till", "log"}),
        (("--severity", "high"), set()),
    ],
)
def test_namespaces_kinds_labels_and_severity_select(
    tmp_path: Path, options: tuple[str, ...], workloads: set[str]
) -> None:
    report = shop_and_ops(tmp_path, *options)
    assert {row["workload"] for row in report["containers"]} == workloads
    assert report["total"]["containers"] == len(workloads)


def test_a_selection_of_nothing_says_so_and_what_there_is(tmp_path: Path) -> None:
    notes = shop_and_ops(tmp_path, "--kind", "Job")["notes"]
    there = "the namespaces are ops, shop, the kinds DaemonSet, StatefulSet."
    assert has_facts(notes, "--namespace, --kind", "--selector", "no container", there)


def test_the_headline_of_a_selection_of_nothing_counts_nothing(tmp_path: Path) -> None:
    arguments = ("--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web()), "--kind", "Job")
    (headline, *_) = trimtab("recommend", *arguments).output.splitlines()
    assert has_facts(headline, "no container")
    assert "0" not in headline


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-l", "team=a b"), "--selector: expected a label selector such as"),
        (("-l", "team=red"), "--selector: expected --cluster, got none"),
        (("--kind", "deployments"), "did you mean 'Deployment'?"),
        (("--severity", "worst"), "'worst' is not one of"),
    ],
)
def test_a_selection_that_cannot_be_is_named(options: tuple[str, ...], words: str) -> None:
    result = trimtab("recommend", "--usage", "x.csv", *options)
    assert result.exit_code == 2
    assert words in result.output


# ── money ────────────────────────────────────────────────────────────────
def test_a_saving_has_no_sign_and_a_cost_a_minus_in_every_form(tmp_path: Path) -> None:
    for cpu, sign in (("4", 1), ("10m", -1)):
        workload_objects = web(requests={"cpu": cpu, "memory": "346Mi"})
        arguments = ("recommend", "--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, workload_objects))
        report = told(*arguments)
        saved = report["containers"][0]["monthlySaved"]
        assert saved * sign > 0
        (row,) = csv.DictReader(io.StringIO(trimtab(*arguments, "-o", "csv").stdout))
        assert float(row["monthly_saved"]) == saved
        for form in ("table", "html"):
            printed = trimtab(*arguments, "-o", form).output
            cell = re.search(r"(?<=[ >])[-+]?[0-9]+\.[0-9]{2}(?= +(?:low|medium|high)|</td>)", printed)
            assert cell is not None
            assert float(cell[0]) == saved
            assert not cell[0].startswith("+")


def nightly(folder: Path, *, phase: str = "Succeeded") -> tuple[Path, list[Item]]:
    """Twelve minutes each night for two weeks, 1.5 cores; it asks for 100m. Beside it a pod that always runs."""
    path = folder / "nightly.csv"
    rows = [f"{START + n * 600},shop,web-0,app,0.1,200Mi" for n in range(14 * 144)]
    for day in range(14):
        at = START + day * DAY + 2 * HOUR
        rows += [f"{at + n * 60},shop,dump-{29_500_000 + day * 1440}-x2x4k,app,1.5,500Mi" for n in range(12)]
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "dump-29518720",
            "namespace": "shop",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "dump", "controller": True}],
        },
    }
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "dump", "namespace": "shop"}}
    pod = workload("shop", "dump-29518720", kind="Job", cpu="100m")[0]
    pod["metadata"]["name"] = "dump-29518720-x2x4k"
    pod["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1"
    pod["status"]["phase"] = phase
    return path, [pod, job, cron, *workload("shop", "web")]


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_cron_job_is_charged_for_the_hours_that_it_runs(tmp_path: Path, phase: str) -> None:
    path, items = nightly(tmp_path, phase=phase)
    report = told("recommend", "--usage", path, "--cluster", snapshot(tmp_path, *items))
    rows = {row["workload"]: row for row in report["containers"]}
    dump = rows["dump"]
    assert (dump["kind"], dump["cpu"]["now"], rows["web"]["hoursPerMonth"]) == ("CronJob", "100m", None)
    assert dump["hoursPerMonth"] == pytest.approx(730 / 120, rel=0.02)
    assert -0.5 < dump["monthlySaved"] < -0.1
    assert report["total"]["cpuNow"] == pytest.approx(1 + 0.1 / 120, abs=0.001)
    assert any(has_facts(note, "only the hours", "run") for note in report["notes"])


def test_of_a_cron_job_without_usage_no_money_is_told(tmp_path: Path) -> None:
    _, items = nightly(tmp_path)
    (tmp_path / "web.csv").write_text("timestamp,namespace,pod,container,cpu\n2026-01-05,shop,web-0,app,0.1\n")
    report = told("recommend", "--usage", tmp_path / "web.csv", "--cluster", snapshot(tmp_path, *items))
    dump = next(row for row in report["containers"] if row["workload"] == "dump")
    assert (dump["hoursPerMonth"], dump["monthlyNow"], dump["monthlySaved"]) == (None, None, None)


# ── the nodes that a pod may use ─────────────────────────────────────────
def test_a_node_that_the_pod_may_not_use_holds_nothing_for_it(tmp_path: Path) -> None:
    small, large = node("small", cpu="4", labels={"pool": "web"}), node("large", cpu="64", labels={"pool": "big"})
    item = web()
    assert only(tmp_path, item, small, large, cpu=9.0)["cpu"]["proposed"].startswith(("9", "10"))
    item["spec"]["nodeSelector"] = {"pool": "web"}
    cpu = only(tmp_path, item, small, large, cpu=9.0)["cpu"]
    assert (cpu["proposed"], codes(cpu)[-1]) == ("4", "usage-above-node")


def test_a_taint_keeps_out_who_does_not_tolerate_it(tmp_path: Path) -> None:
    small, large = node("small", cpu="4"), node("large", cpu="64")
    large["spec"] = {**large.get("spec", {}), "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}
    item = web()
    assert only(tmp_path, item, small, large, cpu=9.0)["cpu"]["proposed"] == "4"
    item["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    assert only(tmp_path, item, small, large, cpu=9.0)["cpu"]["proposed"].startswith(("9", "10"))


def test_the_rest_of_the_pod_needs_room_beside_it(tmp_path: Path) -> None:
    item = web()
    item["spec"]["containers"].append({"name": "proxy", "resources": {"requests": {"cpu": "1500m"}}})
    report = told(
        "recommend", "--usage", usage(tmp_path, cpu=9.0), "--cluster", snapshot(tmp_path, item, node("a", cpu="4"))
    )
    actual_row = next(row for row in report["containers"] if row["container"] == "app")
    assert actual_row["cpu"]["proposed"] == "2500m"


def test_where_no_node_takes_the_pod_nothing_bounds_it(tmp_path: Path) -> None:
    item = web()
    item["spec"]["nodeSelector"] = {"pool": "made-when-needed"}
    assert only(tmp_path, item, node("a", cpu="4"), cpu=9.0)["cpu"]["proposed"].startswith(("9", "10"))
