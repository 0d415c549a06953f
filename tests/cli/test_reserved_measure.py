"""`trimtab reserved measure` as its users call it: live kubelets, saved summaries, and Prometheus."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.recommending import kubeconfig
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, labels, matrix, serving
from tests.usage.summaries import node_summary

MIB = 1 << 20
AT = 1767571200
CONFIGZ = {
    "kubeletconfig": {
        "kubeReserved": {"cpu": "80m", "memory": "1Gi"},
        "evictionHard": {"memory.available": "100Mi"},
        "maxPods": 110,
    }
}


def worker(name: str, pool: str = "web", runtime: str = "containerd", reserved: int = 4096) -> Item:
    """Eight cores and 32 GiB, of which so many MiB and 100m are reserved; 0.4 dollars an hour."""
    item = node(
        name,
        cpu="7900m",
        memory=f"{32768 - reserved - 100}Mi",
        labels={"nodepool": pool, "trimtab.dev/price": "400000"},
    )
    item["status"]["capacity"] = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    item["status"]["nodeInfo"] = {"containerRuntimeVersion": f"{runtime}://2.1"}
    return item


def busy(name: str, pods: int, **more: Any) -> Any:
    """A node whose kubelet and runtime use 20 + pods millicores, and ten times as many MiB."""
    return node_summary(name, pods, kubelet=10 + pods * 0.4, runtime=10 + pods * 0.6, **more)


class Cluster:
    """An API server with nodes whose kubelets answer."""

    def __init__(self, nodes: list[Item], summaries: dict[str, Any], configz: Answer = (200, CONFIGZ)) -> None:
        self.nodes, self.summaries, self.configz = nodes, summaries, configz

    def __call__(self, request: Asked) -> Answer:
        path = request[0]
        if path == "/api/v1/nodes":
            return 200, {
                "kind": "NodeList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "1"},
                "items": self.nodes,
            }
        name = path.removeprefix("/api/v1/nodes/").partition("/")[0]
        if path.endswith("/proxy/configz"):
            return self.configz
        if name not in self.summaries:
            return 503, {"kind": "Status", "reason": "ServiceUnavailable", "message": "no route to host"}
        return 200, self.summaries[name]


def measured(folder: Path, cluster: Cluster, *options: str) -> tuple[dict[str, Any], list[str]]:
    """The report, and the paths that were asked for."""
    with serving(cluster) as server:
        config = kubeconfig(folder, server.url)
        report = told("reserved", "measure", "--cluster", "live", "--kubeconfig", config, *options)
    return report, [request[0] for request in server.asked]


def names(count: int) -> list[str]:
    return [f"n{number:03}" for number in range(count)]


def test_each_node_is_asked_once_and_one_kubelet_of_a_pool_for_its_configuration(tmp_path: Path) -> None:
    world = Cluster(
        [worker(name) for name in names(20)], {name: busy(name, 20 + 4 * n) for n, name in enumerate(names(20))}
    )
    report, request = measured(tmp_path, world)
    assert sum(path.endswith("/stats/summary") for path in request) == 20
    assert sum(path.endswith("/configz") for path in request) == 1
    (pool,) = report["pools"]
    assert (pool["pool"], pool["runtime"], pool["nodes"], pool["measuredNodes"]) == ("web", "containerd", 20, 20)
    assert pool["cpu"]["fit"]["perPod"] == pytest.approx(1, rel=0.02)
    assert pool["memory"]["fit"]["perPod"] == pytest.approx(10 * MIB, rel=0.02)
    assert pool["memory"]["fit"]["base"] == pytest.approx(200 * MIB, rel=0.05)
    assert (pool["reservedNow"], pool["reservedNowFrom"]) == ({"millicores": 80, "bytes": 1024 * MIB}, "configz")
    # 96 pods use 116m and 1160Mi: 1024Mi and 80m are too little by more than the tolerance only for cpu.
    assert (pool["change"], pool["reason"]["code"]) == ("raise", "reserved-too-small")
    assert pool["recommended"] == {"millicores": 120, "bytes": 1216 * MIB}
    assert pool["sources"] == {"system-containers": 20}
    assert pool["overdraftDollarsPerMonth"] >= 0


def test_only_the_nodes_of_the_named_pool_are_asked(tmp_path: Path) -> None:
    nodes = [worker(name, pool="web" if n < 5 else "db") for n, name in enumerate(names(10))]
    world = Cluster(nodes, {name: busy(name, 30) for name in names(10)})
    report, request = measured(tmp_path, world, "--pool", "db")
    assert {path.split("/")[4] for path in request if "/proxy/" in path} == set(names(10)[5:])
    assert [pool["pool"] for pool in report["pools"]] == ["db"]


def test_a_runtime_that_is_not_reported_takes_the_fallback_and_says_so(tmp_path: Path) -> None:
    summaries = {name: node_summary(name, 30 + 4 * n, runtime=None) for n, name in enumerate(names(6))}
    report, _ = measured(tmp_path, Cluster([worker(name) for name in names(6)], summaries))
    (pool,) = report["pools"]
    assert pool["sources"] == {"node-less-pods": 6}
    assert pool["memory"]["p50"] == 1000 * MIB
    assert has_facts(pool["notes"][0], "not report", "container runtime")


def test_without_any_summary_nothing_is_guessed(tmp_path: Path) -> None:
    with serving(Cluster([worker(name) for name in names(3)], {})) as server:
        config = kubeconfig(tmp_path, server.url)
        result = trimtab("reserved", "measure", "--cluster", "live", "--kubeconfig", config, "-o", "json")
    assert (result.exit_code, "Nothing was measured" in result.stderr) == (1, True)
    report = json.loads(result.stdout)
    (pool,) = report["pools"]
    assert pool["missing"]["reason"]["code"] == "overhead-not-measured"
    assert (pool["cpu"], pool["recommended"], pool["change"]) == (None, None, "unknown")
    assert any("summary of node n000" in note for note in report["notes"])


def test_without_a_configuration_it_is_capacity_less_allocatable(tmp_path: Path) -> None:
    no = (403, {"kind": "Status", "reason": "Forbidden", "message": "no"})
    world = Cluster([worker(name) for name in names(4)], {name: busy(name, 30) for name in names(4)}, no)
    (pool,) = measured(tmp_path, world)[0]["pools"]
    assert (pool["reservedNow"], pool["reservedNowFrom"]) == ({"millicores": 100, "bytes": 4096 * MIB}, "allocatable")
    assert (pool["change"], pool["reason"]["code"]) == ("wait", "reserved-lower-later")


def saved(folder: Path, summaries: list[Any]) -> list[str]:
    options: list[str] = []
    for number, summary in enumerate(summaries):
        file = folder / f"summary-{number}.json"
        file.write_text(json.dumps(summary))
        options += ["--summary", str(file)]
    return options


def test_two_runtimes_of_a_pool_are_measured_apart(tmp_path: Path) -> None:
    nodes = [worker(name, runtime="containerd" if n % 2 else "docker") for n, name in enumerate(names(20))]
    summaries = [
        node_summary(name, 20 + 4 * n, kubelet=10 + n, runtime=10 + n if n % 2 else 40 + 3 * n)
        for n, name in enumerate(names(20))
    ]
    report = told("reserved", "measure", "--cluster", snapshot(tmp_path, *nodes), *saved(tmp_path, summaries))
    slopes = {pool["runtime"]: pool["cpu"]["fit"]["perPod"] for pool in report["pools"]}
    assert slopes == {"containerd": pytest.approx(0.5, rel=0.02), "docker": pytest.approx(1.0, rel=0.02)}


@pytest.mark.parametrize(
    ("platform", "path"),
    [
        ("kubelet", ("kubeReserved",)),
        ("gardener", ("spec", "provider", "workers", 0, "kubernetes", "kubelet", "kubeReserved")),
        ("nodeadm", ("spec", "kubelet", "config", "kubeReserved")),
        ("ec2nodeclass", ("spec", "kubelet", "kubeReserved")),
    ],
)
def test_snippets_hold_the_recommendation(tmp_path: Path, platform: str, path: tuple[str | int, ...]) -> None:
    result = trimtab("reserved", "measure", *offline(tmp_path), "--snippet", platform)
    assert result.exit_code == 0, result.output
    document: Any = yaml.safe_load(result.stdout)
    for step in path:
        document = document[step]
    assert document == {"cpu": "120m", "memory": "1216Mi"}


def offline(folder: Path) -> list[str]:
    nodes = [worker(name, reserved=512) for name in names(20)]
    summaries = [busy(name, 20 + 4 * n) for n, name in enumerate(names(20))]
    configz = folder / "configz.json"
    configz.write_text(json.dumps({"kubeletconfig": {"kubeReserved": {"cpu": "80m", "memory": "512Mi"}}}))
    return ["--cluster", str(snapshot(folder, *nodes)), *saved(folder, summaries), "--configz", str(configz)]


def test_a_snippet_for_aks_is_in_whole_megabytes(tmp_path: Path) -> None:
    text = trimtab("reserved", "measure", *offline(tmp_path), "--snippet", "aks").stdout
    config = json.loads("".join(line for line in text.splitlines() if not line.startswith("#")))
    assert config == {"kubeReserved": {"cpuMillicores": 120, "memoryMB": 1276}}


def test_a_pool_without_a_recommendation_says_why_instead_of_a_snippet(tmp_path: Path) -> None:
    nodes = snapshot(tmp_path, worker("a"), worker("b", pool="db"))
    options = saved(tmp_path, [busy("a", 30)])
    text = trimtab("reserved", "measure", "--cluster", nodes, *options, "--snippet", "kubelet").stdout
    assert has_facts(text, "pool db (containerd)", "no recommendation", "no kubelet")


def test_more_pods_are_planned_for_on_request(tmp_path: Path) -> None:
    (pool,) = told("reserved", "measure", *offline(tmp_path), "--max-pods", "200")["pools"]
    assert pool["recommended"]["bytes"] >= 2200 * MIB


def test_equal_data_gives_equal_bytes(tmp_path: Path) -> None:
    options = offline(tmp_path)
    assert len({trimtab("reserved", "measure", *options, "-o", "json").stdout for _ in range(2)}) == 1


def test_the_table_says_what_it_means(tmp_path: Path) -> None:
    text = " ".join(trimtab("reserved", "measure", *offline(tmp_path)).output.split())
    assert has_facts(text, "Kubelet and container runtime")
    assert has_facts(text, "raise", "cpu", "80m", "120m", "memory", "512Mi", "1216Mi")


@pytest.mark.parametrize(("option", "number"), [("--days", "61"), ("--step", "59")])
def test_history_is_read_within_narrower_limits(tmp_path: Path, option: str, number: str) -> None:
    answer = trimtab("reserved", "measure", *offline(tmp_path), option, number)
    assert answer.exit_code == 2
    assert has_facts(answer.output, option, "60", number)


def test_mistakes_are_told(tmp_path: Path) -> None:
    assert "--cluster live, --prometheus URL" in trimtab("reserved", "measure").output
    nodes = snapshot(tmp_path, worker("a"))
    alone = trimtab("reserved", "measure", "--cluster", nodes)
    assert (alone.exit_code, "got --cluster without --summary" in alone.output) == (2, True)
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    result = trimtab("reserved", "measure", "--cluster", nodes, "--summary", broken, "--configz", broken)
    assert (result.exit_code, "2 mistakes" in result.output) == (2, True)
    options = saved(tmp_path, [busy("a", 30)])
    unknown = trimtab("reserved", "measure", "--cluster", nodes, *options, "--pool", "wbe")
    assert has_facts(unknown.output, "--pool", "web", "wbe")


# ── Prometheus ───────────────────────────────────────────────────────────
NOW = "2026-01-12T00:00:00Z"
STEP = 3600


def prometheus(asked: Asked, *, runtime: bool = True, facts: bool = True) -> Answer:
    """Thirty nodes for a week, as the kubelets' and cAdvisor's series are, with noise of two percent."""
    if "label" in asked[0]:
        return 200, labels()
    query, draw = asked[1]["query"], random.Random(asked[1]["query"])
    start, end, step = (int(float(asked[1][name])) for name in ("start", "end", "step"))
    moments = range(start, end + 1, step)
    if "kube_node_info" in query or "pool_node_info" in query:
        value = "containerd://2.1" if "kube_node_info" in query else "web"
        return 200, matrix(*(({"pod": n, "container": value}, [(end, 1)]) for n in names(30))) if facts else matrix()
    if "kube_node_status" in query:
        full = {"cpu": 8.0, "memory": 32 * 2**30}
        usable = {"cpu": 7.92, "memory": 30.9 * 2**30}
        amounts = full if "capacity" in query else usable
        return 200, matrix(*(({"pod": n, "container": r}, [(end, amounts[r])]) for n in names(30) for r in amounts))
    rows = []
    for number, name in enumerate(names(30)):
        pods = 20 + 3 * number
        if "kubelet_running_pods" in query:
            value = float(pods)
        elif "kubelet[.]service" in query:
            value = (0.005 + 0.0002 * pods) if "cpu" in query else (60 + 1.0 * pods) * 1e6
        elif "containerd|crio" in query:
            value = (0.012 + 0.00064 * pods) if "cpu" in query else (500 + 12.5 * pods) * 1e6
        elif "kubepods" in query:
            value = 3.0 if "cpu" in query else 12e9
        else:
            value = (3.1 + 0.001 * pods) if "cpu" in query else 13e9 + 20e6 * pods
        noise = 0.0 if "running_pods" in query else 0.02
        rows.append(({"pod": name}, [(at, value * draw.gauss(1, noise)) for at in moments]))
    return 200, matrix() if "containerd|crio" in query and not runtime else matrix(*rows)


def test_a_week_of_prometheus_gives_slope_base_and_a_lower_reservation() -> None:
    with serving(prometheus) as server:
        (pool,) = told("reserved", "measure", "--prometheus", server.url, "--now", NOW)["pools"]
    assert (pool["pool"], pool["runtime"], pool["nodes"]) == ("web", "containerd", 30)
    assert pool["cpu"]["fit"]["perPod"] == pytest.approx(0.84, rel=0.02)
    assert pool["memory"]["fit"]["perPod"] == pytest.approx(13.5e6, rel=0.02)
    assert pool["days"] == 7
    assert pool["sources"] == {"system-containers": 30}
    assert pool["reservedNow"] == {"millicores": 80, "bytes": 1026 * MIB}
    assert pool["change"] == "raise"


def test_prometheus_without_the_runtimes_cgroup_takes_node_less_pods() -> None:
    with serving(lambda request: prometheus(request, runtime=False)) as server:
        (pool,) = told("reserved", "measure", "--prometheus", server.url, "--now", NOW)["pools"]
    assert pool["sources"] == {"node-less-pods": 30}
    assert pool["memory"]["p50"] > 1e9


def test_a_prometheus_without_facts_about_nodes_is_one_pool() -> None:
    with serving(lambda request: prometheus(request, facts=False)) as server:
        (pool,) = told("reserved", "measure", "--prometheus", server.url, "--now", NOW)["pools"]
    assert (pool["pool"], pool["runtime"]) == ("(none)", "")


def test_the_nodes_of_a_snapshot_give_pools_and_prices(tmp_path: Path) -> None:
    nodes = snapshot(tmp_path, *(worker(name, pool="db") for name in names(30)))
    with serving(prometheus) as server:
        report = told("reserved", "measure", "--prometheus", server.url, "--now", NOW, "--cluster", nodes)
    (pool,) = report["pools"]
    assert (pool["pool"], pool["change"]) == ("db", "lower")
    assert pool["unusedDollarsPerMonth"] > 0


def test_a_prometheus_without_kubelets_says_what_it_needs() -> None:
    with serving(lambda request: (200, labels() if "label" in request[0] else matrix())) as server:
        result = trimtab("reserved", "measure", "--prometheus", server.url, "--now", NOW, "-o", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["pools"] == []
    assert "the label `node`" in report["notes"][0]
