"""`trimtab plan` as its users call it."""

import gzip
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from tests.bench.synthetic_cluster import encode_list, generate_cluster
from tests.cli.snapshots import config_map, half_empty, pool, snapshot, told, trimtab
from tests.cluster_of import SAFE, Item, apart, budget, node, pod
from tests.reasons import has_facts

KEEN = ("--preset", "all=keen")
POD = pod("web-0", "a")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """One node is empty; another can be emptied."""
    return snapshot(tmp_path, *half_empty())


KEEP = {"trimtab.dev/do-not-disrupt": "true"}


def steps(report: dict) -> list[str]:  # type: ignore[type-arg]
    return [step["node"] for wave in report["waves"] for step in wave["nodes"]]


def test_nodes_that_can_go_are_told_with_their_waves_and_moves(cluster: Path) -> None:
    report = told("plan", "--cluster", cluster, *KEEN)
    assert (report["nodesBefore"], report["nodesAfter"], report["evictions"]) == (3, 1, 2)
    (busy,) = [step for wave in report["waves"] for step in wave["nodes"] if step["moves"]]
    assert {(move["workload"], move["target"]) for move in busy["moves"]} == {
        ("ReplicaSet/web", report["stays"][0]["node"])
    }


def test_every_node_goes_or_has_a_reason_with_a_page(cluster: Path) -> None:
    report = told("plan", "--cluster", cluster, *KEEN)
    assert sorted(steps(report) + [stay["node"] for stay in report["stays"]]) == ["a", "b", "c"]
    assert all(stay["reason"]["page"].startswith("docs/reference/reasons.md#") for stay in report["stays"])


def test_before_and_after_add_up(cluster: Path) -> None:
    nodes = told("plan", "--cluster", cluster, *KEEN)["nodes"]
    assert sum(result["before"]["cpu"] for result in nodes) == 2000
    assert sum(result["after"]["cpu"] for result in nodes if result["after"]) == 2000


def test_money_is_told_where_every_price_is_known(tmp_path: Path) -> None:
    label = {"labels": {"node.kubernetes.io/instance-type": "m5.xlarge"}}
    report = told("plan", "--cluster", snapshot(tmp_path, node("a", **label), node("b", **label), POD), *KEEN)
    assert report["saves"] == {"amount": 140.16, "unit": "dollars a month"}


def test_cores_are_told_where_a_price_is_missing_and_that_is_noted(cluster: Path) -> None:
    report = told("plan", "--cluster", cluster, *KEEN)
    assert report["saves"] == {"amount": 8.0, "unit": "cores"}
    assert any(has_facts(note, "prices", "3 of 3 nodes") for note in report["notes"])


def test_what_is_assumed_offline_is_said(cluster: Path) -> None:
    notes = told("plan", "--cluster", cluster)["notes"]
    assert has_facts(notes, "no stored observations", "no pod", "moving")


# ── where pools come from ────────────────────────────────────────────────
def test_without_pools_the_labels_of_the_nodes_tell_them(cluster: Path) -> None:
    report = told("plan", "--cluster", cluster)
    assert [pool["name"] for pool in report["pools"]] == ["web"]
    assert any("preset balanced" in note for note in report["notes"])


def test_a_preset_on_the_command_line_is_noted_only_for_the_other_pools(tmp_path: Path) -> None:
    nodes = [node("a", labels={"nodepool": "web"}), node("b", labels={"nodepool": "db"}), POD]
    cluster = snapshot(tmp_path, *nodes)
    notes = told("plan", "--cluster", cluster, "--preset", "web=careful")["notes"]
    [note] = [note for note in notes if "balanced" in note]
    assert has_facts(note, "no settings", "--preset", "no preset", "balanced: db")
    both = told("plan", "--cluster", cluster, "--preset", "web=careful", "--preset", "db=keen")["notes"]
    assert not any("preset balanced" in note for note in both)
    assert not any("preset balanced" in note for note in told("plan", "--cluster", cluster, *KEEN)["notes"])


def test_without_pools_and_labels_all_nodes_are_one_pool(tmp_path: Path) -> None:
    report = told("plan", "--cluster", snapshot(tmp_path, node("a"), node("b"), POD))
    assert [(pool["name"], pool["nodesBefore"]) for pool in report["pools"]] == [("all", 2)]


def test_pools_in_the_snapshot_count(tmp_path: Path) -> None:
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty(pool("web", "enabled: false"))))
    assert report["pools"][0]["refused"]["code"] == "pool-disabled"
    assert {stay["reason"]["code"] for stay in report["stays"]} == {"pool-disabled"}


def test_a_pool_of_the_snapshot_that_cannot_be_read_is_noted_and_stops_no_other(tmp_path: Path) -> None:
    broken = config_map("broken", {}, labels={"trimtab.dev/pool": "broken"})
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty(pool("web", "preset: keen"), broken)))
    assert [pool["name"] for pool in report["pools"]] == ["web"]
    assert any("is ignored" in note and "ConfigMap broken" in note for note in report["notes"])


def test_pools_in_files_count_before_those_in_the_snapshot(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, *half_empty(pool("web", "enabled: false")))
    report = told("plan", "--cluster", cluster, "--pools", snapshot(tmp_path, pool("web", "preset: keen")))
    assert report["pools"][0]["refused"] is None
    assert len(steps(report)) == 2


def test_an_estafette_configuration_is_read_with_notes(tmp_path: Path) -> None:
    key = "estafette-k8s-node-compactor-config.yaml"
    text = '{"nodePools": {"web": {"enabled": true, "scaleDownCPURequestRatioLimit": 0.5}}}'
    path = snapshot(tmp_path, config_map("estafette", {key: text}))
    label = {"labels": {"cloud.google.com/gke-nodepool": "web"}}
    report = told("plan", "--cluster", snapshot(tmp_path, node("a", **label), node("b", **label), POD), "--pools", path)
    assert len(steps(report)) == 1
    assert any("estafette" in note for note in report["notes"])


def test_a_preset_is_named_for_one_pool(cluster: Path) -> None:
    assert len(steps(told("plan", "--cluster", cluster, "--preset", "web=keen"))) == 2


def test_an_ill_autoscaler_in_the_snapshot_stops_the_plan(tmp_path: Path) -> None:
    status = "clusterWide: {health: {status: Unhealthy}}\nnodeGroups: []\n"
    ill = config_map("cluster-autoscaler-status", {"status": status}, namespace="kube-system")
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty(ill)), *KEEN)
    assert report["pools"][0]["refused"]["code"] == "autoscaler-unhealthy"


def test_the_flags_of_the_autoscaler_are_read_from_its_pod(tmp_path: Path) -> None:
    status = "clusterWide: {health: {status: Healthy}}\nnodeGroups: []\n"
    well = config_map("cluster-autoscaler-status", {"status": status}, namespace="kube-system")
    command = ["./cluster-autoscaler", "--scale-down-enabled=false"]
    scaler = pod("scaler-1", on="a", spec={"containers": [{"name": "c", "command": command}]})
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty(well, scaler)), *KEEN)
    assert report["pools"][0]["refused"]["code"] == "scale-down-disabled"


def test_the_flags_of_the_autoscaler_can_be_told(tmp_path: Path) -> None:
    flags = ("--autoscaler-flags", "--scale-down-enabled=false")
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty()), *KEEN, *flags)
    assert report["pools"][0]["refused"]["code"] == "scale-down-disabled"


def test_flags_that_cannot_be_read_are_named(cluster: Path) -> None:
    for flags in ("--scale-down-utilization-threshold=much", "'"):
        result = trimtab("plan", "--cluster", cluster, *KEEN, "--autoscaler-flags", flags)
        assert (result.exit_code, "--autoscaler-flags" in result.output) == (2, True)


# ── on a terminal ────────────────────────────────────────────────────────
def test_the_table_begins_with_what_it_comes_to(cluster: Path) -> None:
    short, result = (trimtab("plan", "--cluster", cluster, *KEEN, *more) for more in ((), ("--details",)))
    assert has_facts(result.output, "3 nodes → 1", "2", "1 wave", "2 evictions", "8 cores")
    assert "2 × default/web → " in result.output
    assert short.output.splitlines()[0] == result.output.splitlines()[0]
    assert "default/web" not in short.output


def test_a_plan_without_nodes_is_no_failure_and_says_why(tmp_path: Path) -> None:
    pods = [pod(f"web-{n}", on=n, annotations={SAFE: "false"}) for n in "ab"]
    result = trimtab("plan", "--cluster", snapshot(tmp_path, node("a"), node("b"), *pods), *KEEN)
    assert result.exit_code == 0
    assert "none can be drained" in result.output
    assert has_facts(result.output, "not-safe-to-evict", "2")


def test_the_bound_says_what_holds_the_plan(tmp_path: Path) -> None:
    created_pod = pod("web-0", on="a", annotations={SAFE: "false"})
    bound = told("plan", "--cluster", snapshot(tmp_path, node("a"), node("b"), created_pod), *KEEN)["bound"]
    # One of two nodes goes, and would go without the pod: the sentence would say nothing.
    assert (bound["nodes"], bound["pinned"], bound["text"]) == (1, 1, "")


def test_what_would_go_without_pods_that_stay_is_said_as_a_bound(tmp_path: Path) -> None:
    """Other rules may keep the nodes as well: here the pods must not share a node."""
    stays = {"annotations": {SAFE: "false"}, "spec": apart("web")}
    pods = [pod(f"web-{number}", on, **stays) for number, on in enumerate("abc")]
    report = told("plan", "--cluster", snapshot(tmp_path, node("a"), node("b"), node("c"), *pods), *KEEN)
    assert has_facts(report["bound"]["text"], "3 nodes", "at most")


def test_a_node_that_goes_is_explained(cluster: Path) -> None:
    result = trimtab("plan", "--cluster", cluster, *KEEN, "--explain", "node", "a", "--explain", "node", "b")
    assert has_facts(result.output, "drained", "wave 1 of 1")
    assert has_facts(result.output, "node a", "drained")


def test_a_pod_that_must_stay_is_explained(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, *half_empty(pod("lone", on="c", owner="")))
    result = trimtab("plan", "--cluster", cluster, *KEEN, "--explain", "pod", "default/lone")
    assert "pod default/lone must stay" in result.output
    assert "#pod-without-owner" in result.output


def test_a_pod_without_a_place_is_explained_with_what_every_node_says(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, node("a"), node("b", cpu="1"), pod("web-0", on="a", cpu="3"))
    result = trimtab("plan", "--cluster", cluster, *KEEN, "--explain", "pod", "default/web-0")
    assert has_facts(result.output, "none of 1 node", "1 no-room")


def test_a_finished_pod_is_explained(tmp_path: Path) -> None:
    cluster = snapshot(tmp_path, *half_empty(pod("done", on="c", phase="Succeeded")))
    result = trimtab("plan", "--cluster", cluster, "--explain", "pod", "default/done")
    assert "the pod is finished" in result.output


# ── other forms ──────────────────────────────────────────────────────────
def test_yaml_tells_the_same_as_json(cluster: Path) -> None:
    plain = yaml.safe_load(trimtab("plan", "--cluster", cluster, *KEEN, "-o", "yaml").stdout)
    assert plain == told("plan", "--cluster", cluster, *KEEN)


class _Page(HTMLParser):
    """What a page refers to, and which of its tags are left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.refers: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.refers += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]
        if tag not in ("meta", "path", "rect", "br", "link", "input", "circle", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect", "circle", "polyline"):
            assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_the_network_for_nothing(cluster: Path, tmp_path: Path) -> None:
    target = tmp_path / "plan.html"
    assert trimtab("plan", "--cluster", cluster, *KEEN, "-o", "html", "--output-file", target).exit_code == 0
    text = target.read_text()
    page = _Page(text)
    assert (page.refers, page.open) == ([], [])
    assert "://" not in text
    assert text.count("<script>") == 1
    assert "default-src 'none'" in text
    assert "2 of 3 nodes" in text


def test_names_from_the_cluster_are_escaped_on_the_page(tmp_path: Path) -> None:
    evil = node("<script>alert(1)</script>")
    text = trimtab("plan", "--cluster", snapshot(tmp_path, evil, node("b"), POD), *KEEN, "-o", "html").stdout
    assert text.count("<script") == 1
    assert "&lt;script&gt;" in text


# ── bad input ────────────────────────────────────────────────────────────
def test_a_snapshot_cut_short_is_named(tmp_path: Path, cluster: Path) -> None:
    short, packed = tmp_path / "short.json", tmp_path / "short.json.gz"
    short.write_text(cluster.read_text()[:-200])
    packed.write_bytes(gzip.compress(cluster.read_bytes())[:-40])
    result = trimtab("plan", "--cluster", short, "--cluster", packed)
    assert result.exit_code == 2
    assert "short.json:" in result.output
    assert "short.json.gz" in result.output
    assert "Traceback" not in result.output


def test_all_mistakes_of_pools_and_options_are_named_together(tmp_path: Path, cluster: Path) -> None:
    bad = snapshot(tmp_path, pool("web", "quiet: soon\nunderUsed: {cpu: 180}\nprest: keen\n"))
    result = trimtab("plan", "--cluster", cluster, "--pools", bad, "--now", "later", "--preset", "web=keenest")
    assert result.exit_code == 2
    for word in ("quiet", "underUsed", "prest", "--now", "did you mean 'keen'"):
        assert word in result.output
    assert has_facts(result.output, "5 mistakes", "nothing was done")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--preset", "wob=keen"), "did you mean 'web'?"),
        (("--preset", "web=keen", "--preset", "web=careful"), "one preset for web, got careful and keen"),
        (("--now", "9999-12-31T23:59:59-12:00"), "expected a time such as"),
        (("--now", "0001-01-01T00:00:00Z"), "expected a time such as"),
        (("--explain", "node", "d"), "expected a node of the snapshot"),
        (("--explain", "pod", "default/web-9"), "did you mean 'default/web-"),
    ],
)
def test_a_wrong_option_is_named(cluster: Path, arguments: tuple[str, ...], said: str) -> None:
    result = trimtab("plan", "--cluster", cluster, *arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_a_file_without_pools_is_a_mistake(tmp_path: Path, cluster: Path) -> None:
    result = trimtab("plan", "--cluster", cluster, "--pools", snapshot(tmp_path, config_map("other", {})))
    assert result.exit_code == 2
    assert "expected a pool" in result.output


def test_a_snapshot_without_nodes_is_a_mistake(tmp_path: Path) -> None:
    result = trimtab("plan", "--cluster", snapshot(tmp_path, pod("web-0")))
    assert result.exit_code == 2
    assert "a snapshot with nodes" in result.output


def test_a_snapshot_without_pods_is_a_mistake_for_no_node_is_known_to_be_empty(tmp_path: Path) -> None:
    result = trimtab("plan", "--cluster", snapshot(tmp_path, node("a"), node("b")), *KEEN)
    assert result.exit_code == 2
    assert has_facts(result.output, "every node", "empty")


def test_nodes_and_pods_without_a_name_are_a_mistake(tmp_path: Path) -> None:
    result = trimtab("plan", "--cluster", snapshot(tmp_path, node(""), node("b"), pod("", "b")), *KEEN)
    assert result.exit_code == 2
    assert has_facts(result.output, "every node", "1 without a name")
    assert has_facts(result.output, "every pod", "1 without a name")


def test_the_same_file_twice_is_the_same_cluster(tmp_path: Path) -> None:
    path = snapshot(tmp_path, *half_empty(pool("web", "preset: keen"), budget("web", 1)))
    assert told("plan", "--cluster", path, "--cluster", path) == told("plan", "--cluster", path)


def test_a_snapshot_with_the_pods_of_one_namespace_says_so(tmp_path: Path) -> None:
    def asks(*more: Item) -> bool:
        notes = told("plan", "--cluster", snapshot(tmp_path, *half_empty(*more)))["notes"]
        return any("all pods are in namespace" in note for note in notes)

    assert asks()
    assert not asks(pod("proxy-1", "a", namespace="kube-system", owner="DaemonSet"))


def test_a_snapshot_without_budgets_or_attach_limits_says_so(tmp_path: Path) -> None:
    claimed = pod("db-0", "a", spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]})
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"volumeName": "v"},
    }
    volume = {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"csi": {"driver": "d.example.com"}}}
    notes = " ".join(told("plan", "--cluster", snapshot(tmp_path, node("a"), claimed, claim, volume))["notes"])
    assert has_facts(notes, "no PodDisruptionBudget")
    assert has_facts(notes, "no CSINode")
    whole = told("plan", "--cluster", snapshot(tmp_path, *half_empty(budget("web", 1))))["notes"]
    assert not any("is in the snapshot:" in note for note in whole)


def test_a_node_without_allocatable_stays_with_that_reason(tmp_path: Path) -> None:
    strange = node("strange")
    del strange["status"]["allocatable"]
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty(strange)), *KEEN)
    assert {s["node"]: s["reason"]["code"] for s in report["stays"]}["strange"] == "node-unreadable"


# ── a large one ──────────────────────────────────────────────────────────
def test_the_page_of_a_thousand_nodes_is_below_five_megabytes(tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    large.write_bytes(encode_list(generate_cluster(1000)))
    result = trimtab("plan", "--cluster", large, *KEEN, "-o", "html")
    assert result.exit_code == 0
    assert len(result.stdout.encode()) < 5_000_000
    assert len(re.findall('title="node-', result.stdout)) == 2000
    assert result.stdout.count('<tr data-s="') == 1000


def test_budgets_are_told_with_the_moves_that_spend_them(tmp_path: Path) -> None:
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty(budget("web", 1))), *KEEN)
    moves = [move for wave in report["waves"] for step in wave["nodes"] for move in step["moves"]]
    assert [(move["budget"], move["turn"]) for move in moves] == [("default/web", 0), ("default/web", 1)]


def test_a_plan_needs_a_cluster() -> None:
    result = trimtab("plan")
    assert result.exit_code == 2
    assert "--cluster SNAPSHOT" in result.output


def test_files_that_cannot_be_read_are_named_with_all_other_mistakes(tmp_path: Path) -> None:
    result = trimtab("plan", "--cluster", tmp_path / "no.json", "--pools", tmp_path / "none.yaml", "--now", "later")
    assert result.exit_code == 2
    for word in ("no.json", "none.yaml", "--now"):
        assert word in result.output
    assert "3 mistakes" in result.output


def test_a_node_without_a_place_tells_the_room_after_the_plan(tmp_path: Path) -> None:
    cluster = snapshot(
        tmp_path,
        node("a"),
        node("b", cpu="2"),
        pod("web-0", on="a", cpu="3"),
        pod("api-0", on="b", annotations={SAFE: "false"}),
    )
    result = trimtab("plan", "--cluster", cluster, "--preset", "all=keen", "--explain", "node", "a")
    assert has_facts(result.output, "default/web-0 alone", "fit", "0 of")


def test_a_pod_that_may_stand_once_in_a_zone_fits_in_it_when_it_comes_from_there(tmp_path: Path) -> None:
    zone = {"labels": {"zone": "z"}}
    cluster = snapshot(
        tmp_path,
        node("a", **zone),
        node("b", **zone),
        pod("web-0", on="a", spec=apart("web", "zone")),
        pod("api-0", on="a", cpu="3"),
        pod("db-0", on="b", cpu="2"),
    )
    result = trimtab("plan", "--cluster", cluster, "--preset", "all=keen", "--explain", "node", "a")
    assert has_facts(result.output, "default/web-0 alone", "fit", "1 of 1", "other nodes")


def test_pools_that_share_nodes_are_told_and_touch_none_of_them(tmp_path: Path) -> None:
    pools = snapshot(tmp_path, pool("web", "preset: keen"), pool("all-of-it", "{preset: keen, nodes: all}"))
    report = told("plan", "--cluster", snapshot(tmp_path, *half_empty()), "--pools", pools)
    assert {stay["reason"]["code"] for stay in report["stays"]} == {"node-in-two-pools"}
    assert {pool["refused"]["code"] for pool in report["pools"]} == {"node-in-two-pools"}


def test_moved_pods_that_ask_for_nothing_are_counted_in_the_first_lines(tmp_path: Path) -> None:
    nodes = [node(name) for name in "ab"]
    bare = [pod(f"x-{number}", "a", "") for number in range(2)]
    path = snapshot(tmp_path, *nodes, *bare, pod("y-1", "b"), pod("y-2", "b", annotations=KEEP))
    report = told("plan", "--cluster", path, "--preset", "all=keen")
    assert (report["evictions"], report["evictionsWithoutRequests"]) == (2, 2)
    table = trimtab("plan", "--cluster", path, "--preset", "all=keen").stdout
    assert has_facts(" ".join(table.split("\n")[:3]), "2 of 2", "moved pods", "neither cpu nor memory")


@pytest.mark.parametrize(("count", "evicted"), [(20, 20), (50, 0)])
def test_pods_that_ask_for_nothing_need_room_where_they_go(count: int, evicted: int, tmp_path: Path) -> None:
    bare = [pod(f"x-{number}", "a", "") for number in range(count)]
    path = snapshot(tmp_path, node("a"), node("b"), *bare, pod("y-1", "b", annotations=KEEP))
    assert told("plan", "--cluster", path, "--preset", "all=keen")["evictions"] == evicted
