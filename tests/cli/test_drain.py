"""`trimtab drain` without a cluster: what is a mistake, what the plan reports, and which order is resumed."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import NOW, Item, budget, cluster, node, pod
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.order.record import ORDER_ANNOTATION, OrderRecord, encode_record
from trimtab.compactor.cluster_reader import WATCHED_KINDS
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.live_cluster import WITH_POLICIES
from trimtab.inputs.order_records import OrderedNode, choose_order, release_ordered_nodes
from trimtab.kube.errors import refusal_of_response
from trimtab.kube.resources import list_sources


def shop(*more: Item) -> list[Item]:
    label = {"labels": {"nodepool": "web"}}
    nodes = [node("a", **label), node("b", **label), node("c"), node("d")]
    return [*nodes, *(pod(f"web-{number}", "ab"[number % 2]) for number in range(4)), budget("web", 1), *more]


def run(tmp_path: Path, *words: str, items: list[Item] | None = None) -> tuple[int, str]:
    result = trimtab("drain", *words, "--cluster", snapshot(tmp_path, *(items or shop())))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("x",),
        ("a", "-l", "nodepool=web"),
        ("-l", "nodepool=none"),
        ("-l", "kubernetes.io/hostname"),
        ("-l", "=="),
        ("--pool", "none"),
        ("a", "--resume", "--release"),
        ("a", "--timeout", "soon"),
        ("a", "--until", "noon"),
        ("a", "--pod-timeout", "-1s"),
        ("a", "--at-once", "0"),
        ("a", "--yes"),
        ("a", "--why", "x" * 501),
    ],
)
def test_a_mistake_ends_with_2_and_nothing_is_done(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert run(tmp_path, *words, "--dry-run")[0] == 2


@pytest.mark.parametrize("words", [("--yes", "--dry-run"), ("-o", "csv"), ("--resume",), ("-l", "nodepool=web")])
def test_what_contradicts_a_release_is_a_mistake_before_any_request(words: tuple[str, ...]) -> None:
    done = trimtab("drain", "a", "--release", *words, "--kubeconfig", "/nowhere/config")
    assert done.exit_code == 2
    assert "command line" in done.output


def test_a_snapshot_cannot_be_drained(tmp_path: Path) -> None:
    assert run(tmp_path, "a")[0] == 2


@pytest.mark.parametrize("labels", [{"node-role.kubernetes.io/control-plane": ""}, {"karpenter.sh/nodepool": "x"}])
@pytest.mark.parametrize("words", [("k",), ("-l", "team=k")])
def test_nodes_that_nobody_drains_are_a_mistake(tmp_path: Path, labels: dict[str, str], words: tuple[str, ...]) -> None:
    items = shop(node("k", labels={**labels, "team": "k"}))
    code, output = run(tmp_path, *words, "--dry-run", items=items)
    assert code == 2
    assert "node k" in output


@pytest.mark.parametrize("words", [("a", "b"), ("-l", "nodepool=web"), ("--pool", "web")])
def test_the_report_has_a_place_for_each_pod(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, output = run(tmp_path, *words, "--dry-run", "-o", "json")
    report = json.loads(output)
    assert code == 0
    assert [one["name"] for one in report["nodes"]] == ["a", "b"]
    assert {move["target"] for one in report["nodes"] for move in one["moves"]} <= {"c", "d"}
    assert (report["waves"], report["evictions"], report["mayBegin"]) == (2, 4, True)


def test_an_order_that_would_not_begin_ends_with_1(tmp_path: Path) -> None:
    items = shop(pod("bare", "a", owner=""))
    code, output = run(tmp_path, "a", "--dry-run", "-o", "json", items=items)
    report = json.loads(output)
    assert (code, report["mayBegin"]) == (1, False)
    assert [one["reason"]["code"] for one in report["unmovable"]] == ["order-pod-without-owner"]
    assert run(tmp_path, "a", "--dry-run", "--force", items=items)[0] == 0


def recorded(name: str, record: OrderRecord) -> Item:
    return node(name, cordoned=True, annotations={ORDER_ANNOTATION: encode_record(record)})


def record(order: str, *nodes: str, emptied: bool = False) -> OrderRecord:
    drain = DrainAnnotation("d1", "", NOW, emptied=NOW if emptied else None)
    return OrderRecord(order=order, since=NOW, by="ann", nodes=nodes, drain=drain)


def test_the_only_order_that_is_not_finished_is_resumed() -> None:
    nodes = cluster(
        recorded("a", record("o1", "a", "b", "c", emptied=True)),
        recorded("b", record("o1", "a", "b", "c")),
        recorded("d", record("o2", "d", emptied=True)),
        node("c"),
    ).nodes
    order = choose_order(nodes, ())
    assert (order.name, order.nodes, order.emptied) == ("o1", ("a", "b"), {"a"})
    assert any("c" in note.split() or "c," in note for note in order.notes)
    assert choose_order(nodes, ("a", "c")).nodes == ("a", "b", "c")


@pytest.mark.parametrize("labels", [{"node-role.kubernetes.io/control-plane": ""}, {"karpenter.sh/nodepool": "x"}])
def test_a_forged_record_makes_no_node_of_the_control_plane_or_of_karpenter_part_of_an_order(
    labels: dict[str, str],
) -> None:
    forged = node("k", cordoned=True, labels=labels, annotations={ORDER_ANNOTATION: encode_record(record("o1", "k"))})
    nodes = cluster(recorded("a", record("o1", "a")), forged).nodes
    order = choose_order(nodes, ())
    assert order.nodes == ("a",)
    assert any("k" in note.split() for note in order.notes)
    with pytest.raises(UsageError):
        choose_order(nodes, ("a", "k"))


def test_the_reason_of_an_order_goes_on_with_it() -> None:
    why = OrderRecord(order="o1", since=NOW, why="kernel 6.12", nodes=("a",))
    assert choose_order(cluster(recorded("a", why)).nodes, ()).why == "kernel 6.12"


@pytest.mark.parametrize("names", [(), ("a", "b"), ("x",), ("c",)])
def test_no_order_or_more_than_one_is_a_mistake(names: tuple[str, ...]) -> None:
    nodes = cluster(recorded("a", record("o1", "a")), recorded("b", record("o2", "b")), node("c")).nodes
    with pytest.raises(UsageError):
        choose_order(nodes, names)


class NodesThatDisappear:
    """A client whose nodes are deleted between the list and the release."""

    def get(self, path: str, *, doing: str) -> bytes:
        raise refusal_of_response(doing, 404, b"")


def test_a_node_that_disappears_does_not_keep_the_others_from_their_release() -> None:
    nodes = [OrderedNode(node, None, True) for node in cluster(node("a"), node("b")).nodes]
    outcomes = release_ordered_nodes(NodesThatDisappear(), nodes)  # type: ignore[arg-type]
    assert [each.node.name for each, _ in outcomes] == ["a", "b"]


def test_the_role_of_the_page_has_every_list_that_is_read() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/drain-nodes.md").read_text()
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    role, _of_surges = [block for block in blocks if block["kind"] == "ClusterRole"]
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    sources = {*list_sources((*WATCHED_KINDS, *WITH_POLICIES))}
    needed = {(one.group_version.rpartition("/")[0], one.plural, "list") for one in sources}
    needed |= {(group, plural, "watch") for group, plural, _ in needed}
    assert needed <= granted
    writes = {one for one in granted if one[2] not in ("get", "list", "watch")}
    assert writes == {("", "nodes", "patch"), ("", "pods/eviction", "create")}
