"""`trimtab fleet`: five clusters, one unreadable, one of Karpenter's, one with two tenants in one Prometheus."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from click.testing import Result

from tests.cli.recommending import WEB, prometheus
from tests.cli.snapshots import trimtab
from tests.cluster_of import Item, node, pod
from tests.fleet.histories import FIRST_DAY, daily_rows, write_history
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, labels, serving
from trimtab.cluster.timestamps import format_timestamp
from trimtab.histogram.daily_rows import merge_rows
from trimtab.histogram.time_buckets import DAY
from trimtab.usage.daily_store import DailyStore

ROOT = Path(__file__).resolve().parents[2]
REGION = {"topology.kubernetes.io/region": "us-east-1", "node.kubernetes.io/instance-type": "m5.2xlarge"}
NOW = format_timestamp((FIRST_DAY + 3) * DAY)


def machine(name: str, **labels: str) -> Item:
    return node(name, "8", "32Gi", labels={**REGION, "nodepool": "web", **labels})


def workload(name: str, on: str, team: str, cpu: str = "1", **more: object) -> Item:
    """A pod of Deployment NAME by its name."""
    owner = f"{name}-7d4b9c6f5d"
    created_pod = pod(
        f"{owner}-x2x4k",
        on,
        cpu,
        "1Gi",
        app=owner,
        namespace="shop",
        labels={"pod-template-hash": "7d4b9c6f5d", "team": team},
        **more,
    )
    created_pod["spec"]["containers"][0]["name"] = "app"
    return created_pod


def cluster_file(folder: Path, name: str, *items: Item) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def five_clusters(folder: Path) -> Path:
    """`broken` is cut short; `karp` is Karpenter's; the others differ in size."""
    clusters = folder / "clusters"
    cluster_file(
        clusters,
        "east",
        *[machine(name) for name in "abc"],
        workload("web", "a", "front", "4"),
        workload("api", "b", "back", "2"),
    )
    cluster_file(clusters, "west", machine("a"), workload("web", "a", "front", "1"))
    cluster_file(
        clusters,
        "karp",
        machine("a", **{"karpenter.sh/nodepool": "default"}),
        machine("b", **{"karpenter.sh/nodepool": "default"}),
        workload("batch", "a", "back", "1"),
    )
    cluster_file(clusters, "shared", machine("a"), workload("web", "a", "front", "2"))
    (clusters / "broken.json").write_text('{"apiVersion": "v1", "kind": "List", "items": [')
    return clusters


def two_tenants(asked: Asked) -> Answer:
    """Tenant `b` uses five times as much as tenant `a`, and calls its pod the same."""
    path, query, _ = asked
    if path.endswith("/labels"):
        return 200, labels("namespace", "pod", "container", "tenant")
    if path.endswith("/label/tenant/values"):
        return 200, labels("a", "b")
    if path.endswith("/label/namespace/values") and 'tenant=""' in str(query):
        return 200, labels()
    actual_prometheus = prometheus(asked)
    if path.endswith("query_range") and 'tenant="b"' in query["query"]:
        for series in actual_prometheus[1]["data"]["result"]:
            series["values"] = [[at, str(5 * float(value))] for at, value in series["values"]]
    return actual_prometheus


def history(folder: Path) -> Path:
    rows = {
        "east": [*daily_rows("web", 3, cores=0.2), *daily_rows("api", 3, cores=3.0)],
        "west": daily_rows("web", 3, cores=0.9),
        "karp": daily_rows("batch", 3, cores=0.5),
    }
    return write_history(folder / "history", rows)  # type: ignore[arg-type]


def ingest(url: str, folder: Path, *options: str) -> Result:
    return trimtab(
        "fleet",
        "ingest",
        "--prometheus",
        url,
        "--usage",
        folder,
        "--days",
        "3",
        "--step",
        "1800",
        "--now",
        format_timestamp((FIRST_DAY + 3) * DAY + 7200),
        *options,
    )


def test_five_clusters_one_unreadable_one_of_karpenters_one_with_two_tenants(tmp_path: Path) -> None:
    clusters, folder = five_clusters(tmp_path), history(tmp_path)
    with serving(two_tenants) as server:
        refused = ingest(server.url, folder, "--cluster-name", "shared")
        chosen = ingest(server.url, folder, "--cluster-name", "shared", "--matcher", 'tenant="a"')
    assert (refused.exit_code, chosen.exit_code) == (3, 0)
    assert 'tenant: "a", "b"' in refused.stderr
    assert has_facts(refused.stderr, "1 of 1 cluster", "not complete")
    result = trimtab("fleet", "report", "--clusters", clusters, "--usage", folder, "--now", NOW, "-o", "json")
    assert result.exit_code == 3, (result.output, result.exception)
    assert "broken.json" in result.stderr
    assert has_facts(result.stderr, "1 of 5 clusters", "left out")
    report = json.loads(result.stdout)
    jsonschema.validate(report, json.loads((ROOT / "deploy/schemas/fleet-report.schema.json").read_text()))
    assert [failure["cluster"] for failure in report["failures"]] == ["broken"]
    by_name = {line["cluster"]: line for line in report["clusters"]}
    assert set(by_name) == {"east", "west", "karp", "shared"}
    assert report["clusters"][0]["cluster"] == "east"
    assert (by_name["karp"]["karpenterNodes"], by_name["karp"]["nodesToRemove"]) == (2, 0)
    # Tenant a uses a quarter of a core of two: the other tenant's use is not in its history.
    assert by_name["shared"]["requests"]["cpuNow"] == 2
    assert by_name["shared"]["requests"]["cpuProposed"] < 0.4
    assert [team["value"] for team in report["teams"]] == ["front", "back"]
    # 8 cores and 32 GiB for 0.384 dollars an hour.
    assert by_name["west"]["monthlyCost"] == pytest.approx(0.384 * 730)
    assert {merge["source"] for merge in report["merges"]} <= {"west", "shared", "karp"}
    assert report["machines"][0]["types"]


def test_a_table_names_what_is_left_out(tmp_path: Path) -> None:
    result = trimtab("fleet", "plan", "--clusters", five_clusters(tmp_path))
    assert result.exit_code == 3
    assert "broken is left out" in result.stdout
    assert "karp" in result.stdout


@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        ("recommend", "FleetRecommendReport"),
        ("plan", "FleetPlanReport"),
        ("machines", "FleetMachinesReport"),
        ("report", "FleetReport"),
    ],
)
@pytest.mark.parametrize("form", ["json", "yaml", "table"])
def test_every_verb_has_every_form(tmp_path: Path, verb: str, kind: str, form: str) -> None:
    clusters = tmp_path / "clusters"
    cluster_file(clusters, "west", machine("a"), workload("web", "a", "front", "1"))
    usage = ("--usage", history(tmp_path)) if verb in ("recommend", "report") else ()
    result = trimtab("fleet", verb, "--clusters", clusters, *usage, "-o", form)
    assert result.exit_code == 0, (result.output, result.exception)
    if form == "json":
        report, file = json.loads(result.stdout), f"fleet-{verb}-report" if verb != "report" else "fleet-report"
        jsonschema.validate(report, json.loads((ROOT / f"deploy/schemas/{file}.schema.json").read_text()))
        assert (report["kind"], report["apiVersion"]) == (kind, "trimtab.dev/v1alpha1")
    assert "west" in result.stdout


def test_ingest_reads_missing_days_only_and_apart_by_label(tmp_path: Path) -> None:
    with serving(two_tenants) as server:
        first = ingest(server.url, tmp_path / "h", "--by", "tenant", "--prefix", "shared-")
        before = len(server.asked)
        second = ingest(server.url, tmp_path / "h", "--by", "tenant", "--prefix", "shared-")
        paths = [path for path, _, _ in server.asked[before:] if path.endswith("query_range")]
    assert (first.exit_code, second.exit_code, paths) == (0, 0, [])
    store = DailyStore(str(tmp_path / "h"))
    days = store.list_days()
    assert [(one.cluster, one.day - FIRST_DAY) for one in days] == [
        (name, day) for name in ("shared-a", "shared-b") for day in range(3)
    ]
    percentiles = []
    for name in ("shared-a", "shared-b"):
        rows = [row for one in days if one.cluster == name for row in store.read_rows(one)]
        percentiles.append(merge_rows(rows, 14).windows["cpu"].compute_percentiles((0.95,))[0])
    assert percentiles[1] == pytest.approx(5 * percentiles[0], rel=0.05)


def test_ingest_reads_samples_of_files_and_keeps_clusters_apart(tmp_path: Path) -> None:
    rows = [
        f"{FIRST_DAY * DAY + n * 600},shop,{WEB},app,{cores},{cluster}"
        for n in range(300)
        for cluster, cores in (("prod", 1), ("dev", 0.1))
    ]
    (tmp_path / "usage.csv").write_text("timestamp,namespace,pod,container,cpu,cluster\n" + "\n".join(rows) + "\n")
    arguments = ("fleet", "ingest", "--samples", tmp_path / "usage.csv", "--usage", tmp_path / "h")
    mixed, apart = trimtab(*arguments, "--cluster-name", "prod"), trimtab(*arguments, "--by", "cluster")
    assert (mixed.exit_code, apart.exit_code) == (2, 0), (mixed.output, apart.output)
    assert 'cluster: "dev", "prod"' in mixed.stderr
    stored_days = DailyStore(str(tmp_path / "h")).list_days()
    assert [(one.cluster, one.day - FIRST_DAY) for one in stored_days] == [
        (name, day) for name in ("dev", "prod") for day in range(3)
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("recommend",), "--usage FOLDER|URL"),
        (("recommend", "--usage", "none-here"), "a history with files such as dt="),
        (("plan",), "--clusters FOLDER|CONTEXTS"),
        (("plan", "--clusters", "none/here"), "a folder that exists, or a context of the kubeconfig"),
        (("plan", "--clusters", "{empty}"), "a snapshot of each cluster"),
        (("plan", "--clusters", "{empty}", "--now", "soon"), "a time such as"),
        (("ingest", "--prometheus", "http://x", "--usage", "h"), "--cluster-name NAME for one cluster"),
        (("ingest", "--usage", "h", "--by", "cluster"), "--prometheus URL or --samples PATH"),
        (("ingest", "--prometheus", "x", "--usage", "h", "--by", "namespace"), "a label that distinguishes clusters"),
    ],
)
def test_a_wrong_question_is_answered_with_2_and_each_mistake(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    result = trimtab("fleet", *(option.format(empty=tmp_path) for option in options))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "nothing was done" in result.stderr


def test_an_engine_of_another_name_is_a_mistake(tmp_path: Path) -> None:
    cluster_file(tmp_path, "west", machine("a"), workload("web", "a", "front", "1"))
    result = trimtab("fleet", "plan", "--clusters", tmp_path, "--engine", "dask", "--spark-conf", "x")
    assert result.exit_code == 2
    assert "spark://host:7077" in result.stderr
    assert "NAME=VALUE" in result.stderr


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    block = (
        "import sys; sys.modules['pyarrow'] = None; sys.argv = ['trimtab', *{!r}]; from trimtab.cli import main; main()"
    )
    words = ["fleet", "recommend", "--usage", str(tmp_path)]
    process = subprocess.run([sys.executable, "-c", block.format(words)], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (3, "")
    assert has_facts(process.stderr.strip(), "extra `fleet`", "Parquet", "not installed", "pip install '.[fleet]'")


def test_a_history_of_other_workloads_than_those_of_the_snapshot_is_said(tmp_path: Path) -> None:
    cluster_file(tmp_path / "clusters", "east", machine("a"), workload("web", "a", "front"))
    usage = write_history(tmp_path / "history", {"east": daily_rows("api", 3, cores=0.2)})
    result = trimtab(
        "fleet", "recommend", "--clusters", tmp_path / "clusters", "--usage", usage, "--now", NOW, "-o", "json"
    )
    (note,) = [note for note in json.loads(result.stdout)["notes"] if "cluster east" in note]
    assert has_facts(note, "usage of 1 container", "none of them", "snapshot")
