"""`trimtab fleet` with five clusters captured from the test bed, and their usage in the real Prometheus.

`broken`'s capture is cut short, `karp` is Karpenter's, and of `shared` the Prometheus has two tenants, whose pods are
called the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.ports import free
from tests.e2e import real_prometheus
from tests.reasons import has_facts
from trimtab.cluster.timestamps import format_timestamp

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(real_prometheus.missing()), reason=real_prometheus.missing())]
pytest.importorskip("pyarrow", reason="the extra `fleet` is not installed: make e2e-fleet")

ROOT = Path(__file__).parents[2]
DAY, SCRAPE, DAYS = 86_400, 1800, 3
MIDNIGHT = int(time.time()) // DAY * DAY
"""The usage ends here, before the clusters begin: the histories have whole days only."""
LABELS = {
    "topology.kubernetes.io/region": "us-east-1",
    "node.kubernetes.io/instance-type": "m5.2xlarge",
    "nodepool": "web",
}
KARPENTER = {"karpenter.sh/nodepool": "default"}
NODE_COST = 0.384 * 730
"""Dollars a month of an m5.2xlarge."""


@dataclass(frozen=True)
class Work:
    """A Deployment of one pod."""

    name: str
    team: str
    requested: int
    """Cores."""
    used: float
    """Cores; half a GiB in addition."""


@dataclass(frozen=True)
class Planned:
    """A cluster as it is made."""

    nodes: int
    work: tuple[Work, ...]
    labels: dict[str, str]


CLUSTERS = {
    "east": Planned(3, (Work("web", "front", 4, 0.2), Work("api", "back", 2, 1.5)), LABELS),
    "west": Planned(1, (Work("web", "front", 1, 0.8),), LABELS),
    "karp": Planned(2, (Work("batch", "back", 1, 0.5),), {**LABELS, **KARPENTER}),
    "shared": Planned(1, (Work("web", "front", 2, 0.25),), LABELS),
    "broken": Planned(1, (Work("web", "front", 2, 0.25),), LABELS),
}
OTHER_TENANT_TIMES = 5
"""Tenant b of `shared` uses so many times as much as tenant a."""


@dataclass(frozen=True)
class Fleet:
    """What all tests read."""

    clusters: Path
    """The captures."""
    prometheus: str
    live: Cluster
    """The cluster `broken`, which runs on."""


@pytest.fixture(scope="module")
def fleet(built: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    captures = folder / "clusters"
    captures.mkdir()
    pods: dict[str, list[tuple[str, Work]]] = {}
    for name in CLUSTERS:
        with ControlPlane.start(built) as plane:
            cluster = furnish(Cluster(plane.kubeconfig, plane=plane), CLUSTERS[name])
            trimtab("capture", "-O", captures / f"{name}.json", kubeconfig=plane.kubeconfig)
            pods[name] = [
                (cluster.running(f"app={work.name}")[0]["metadata"]["name"], work) for work in CLUSTERS[name].work
            ]
            if name == "broken":
                whole = (captures / "broken.json").read_bytes()
                (captures / "broken.json").write_bytes(whole[: len(whole) // 2])
                write_usage(folder / "metrics.txt", pods)
                with real_prometheus.serving_file(folder, folder / "metrics.txt") as url:
                    yield Fleet(captures, url, cluster)


def furnish(whole: Cluster, planned: Planned) -> Cluster:
    """Its namespace `shop`, with all pods running."""
    whole.pool("node", planned.nodes, labels=planned.labels)
    cluster = whole.in_namespace("shop")
    for work in planned.work:
        cluster.deployment(work.name, cpu=str(work.requested), memory="1Gi", labels={"team": work.team})
    cluster.eventually(lambda: len(cluster.running()) == len(planned.work), what="all pods run")
    return cluster


def write_usage(path: Path, pods: dict[str, list[tuple[str, Work]]]) -> None:
    """Three days of every pod as cAdvisor's series, with the labels of a central Prometheus."""
    series = []
    for cluster, of_cluster in pods.items():
        for pod, work in of_cluster:
            own = f'cluster="{cluster}",namespace="shop",pod="{pod}",container="main",image="registry/app"'
            if cluster == "shared":
                series += [
                    (f'{own},tenant="{tenant}"', work.used * times)
                    for tenant, times in (("a", 1), ("b", OTHER_TENANT_TIMES))
                ]
            else:
                series.append((own, work.used))
    scrapes = range(MIDNIGHT - DAYS * DAY, MIDNIGHT + DAY // 12 + 1, SCRAPE)
    with path.open("w", encoding="ascii") as out:
        out.write("# TYPE container_cpu_usage_seconds counter\n")
        for labels, cores in series:
            for at in scrapes:
                out.write(f"container_cpu_usage_seconds_total{{{labels}}} {cores * (at - scrapes[0]):.3f} {at}\n")
        out.write("# TYPE container_memory_working_set_bytes gauge\n")
        for labels, _ in series:
            for at in scrapes:
                out.write(f"container_memory_working_set_bytes{{{labels}}} {2**29} {at}\n")
        out.write("# EOF\n")


@dataclass(frozen=True)
class Done:
    """What a command gave."""

    code: int
    out: str
    error: str

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self.out)
        return report


def trimtab(*arguments: str | Path, kubeconfig: Path | None = None) -> Done:
    """The command as a user runs it."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "COLUMNS": "160"}
    env |= {} if kubeconfig is None else {"KUBECONFIG": str(kubeconfig)}
    command = [sys.executable, "-m", "trimtab", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def ingest(fleet: Fleet, usage: Path, *more: str) -> Done:
    return trimtab(
        "fleet",
        "ingest",
        "--prometheus",
        fleet.prometheus,
        "--by",
        "cluster",
        "--usage",
        usage,
        "--days",
        str(DAYS),
        "--step",
        str(SCRAPE),
        "--rate",
        "2h",
        "--now",
        format_timestamp(MIDNIGHT + 7200),
        *more,
    )


def report(fleet: Fleet, usage: Path, *more: str) -> Done:
    return trimtab(
        "fleet",
        "report",
        "--clusters",
        fleet.clusters,
        "--usage",
        usage,
        "--now",
        format_timestamp(MIDNIGHT + 2 * DAY),
        *more,
    )


@pytest.fixture(scope="module")
def usage(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of all clusters, `shared` by tenant a."""
    folder = tmp_path_factory.mktemp("usage")
    ingest(fleet, folder)
    assert ingest(fleet, folder, "--matcher", 'tenant="a"').code == 0
    return folder


def test_two_tenants_in_one_prometheus_are_named_and_the_other_clusters_are_read(fleet: Fleet, tmp_path: Path) -> None:
    refused = ingest(fleet, tmp_path)
    assert refused.code == 3
    usage, summary = refused.error.splitlines()
    assert has_facts(usage, "shared", "more than one cluster", '"a", "b"', 'tenant="a"', "--matcher")
    assert has_facts(summary, "1 of 5 clusters", "not complete")
    assert days_of(tmp_path) == {"east": DAYS, "west": DAYS, "karp": DAYS, "broken": DAYS}
    chosen = ingest(fleet, tmp_path, "--matcher", 'tenant="a"')
    assert (chosen.code, chosen.error) == (0, "")
    assert [line.split(" ")[0] for line in chosen.out.splitlines()] == ["shared"] * DAYS
    assert days_of(tmp_path)["shared"] == DAYS


def days_of(usage: Path) -> dict[str, int]:
    names = [path.parent.name.removeprefix("cluster=") for path in usage.glob("dt=*/cluster=*/*.parquet")]
    return {name: names.count(name) for name in names}


def test_a_report_covers_four_clusters_and_names_the_one_that_cannot_be_read(fleet: Fleet, usage: Path) -> None:
    done = report(fleet, usage, "-o", "json")
    assert done.code == 3, done.error
    problem, summary = done.error.splitlines()
    assert problem.startswith(f"broken: {fleet.clusters / 'broken.json'}")
    assert has_facts(summary, "1 of 5 clusters", "left out")
    actual_report = done.report
    jsonschema.validate(actual_report, json.loads((ROOT / "deploy/schemas/fleet-report.schema.json").read_text()))
    assert [f"{one['cluster']}: {one['problem']}" for one in actual_report["failures"]] == [problem]
    by_name = {line["cluster"]: line for line in actual_report["clusters"]}
    assert actual_report["clusters"][0]["cluster"] == "east", "the worst is first"
    assert by_name.keys() == CLUSTERS.keys() - {"broken"}
    for name, line in by_name.items():
        work = CLUSTERS[name].work
        used, requested = sum(one.used for one in work), sum(one.requested for one in work)
        assert line["nodes"] == CLUSTERS[name].nodes
        assert line["monthlyCost"] == pytest.approx(CLUSTERS[name].nodes * NODE_COST, abs=0.01)
        assert line["requests"]["cpuNow"] == requested
        # Tenant b uses five times as much: with its usage, the request of `shared` would be larger than this.
        assert used <= line["requests"]["cpuProposed"] <= 1.5 * used, name
    # Both have an empty node, and pods that are the only replica; Karpenter's nodes are left to Karpenter.
    assert (by_name["karp"]["karpenterNodes"], by_name["karp"]["nodesToRemove"]) == (2, 0)
    assert (by_name["east"]["karpenterNodes"], by_name["east"]["nodesToRemove"]) == (0, 1)
    assert {team["value"]: team["containers"] for team in actual_report["teams"]} == {"front": 3, "back": 2}
    assert actual_report["monthlyCost"] == pytest.approx(7 * NODE_COST, abs=0.01)
    text = report(fleet, usage)
    assert text.code == 3
    assert "broken is left out" in text.out
    # With the damaged capture gone, nothing else in the report changes.
    others = [part for name in by_name for part in ("--clusters", str(fleet.clusters / f"{name}.json"))]
    whole = trimtab(
        "fleet", "report", *others, "--usage", usage, "--now", format_timestamp(MIDNIGHT + 2 * DAY), "-o", "json"
    )
    assert (whole.code, whole.error) == (0, "")
    assert whole.report["clusters"] == actual_report["clusters"]
    assert whole.report["merges"] == actual_report["merges"]


def test_a_context_that_does_not_answer_is_named_and_the_other_is_reported(fleet: Fleet, tmp_path: Path) -> None:
    config = yaml.safe_load(fleet.live.kubeconfig.read_text())
    (port,) = free(1)
    config["clusters"].append({"name": "gone", "cluster": {"server": f"https://127.0.0.1:{port}"}})
    context = {**config["contexts"][0]["context"], "cluster": "gone"}
    config["contexts"].append({"name": "gone", "context": context})
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    done = trimtab("fleet", "report", "--clusters", "testbed,gone", "--kubeconfig", kubeconfig, "-o", "json")
    assert done.code == 3
    problem, summary = done.error.splitlines()
    assert problem.startswith("gone: ")
    assert "refused" in problem
    assert has_facts(summary, "1 of 2 clusters", "left out")
    assert [line["cluster"] for line in done.report["clusters"]] == ["testbed"]
    assert [one["cluster"] for one in done.report["failures"]] == ["gone"]
    assert done.report["clusters"][0]["nodes"] == 1
