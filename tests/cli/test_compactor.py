"""What `trimtab compactor status` and `history` say."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import Item, budget, cluster, node, pod
from tests.reasons import has_facts
from trimtab.cli.compactor import history
from trimtab.cli.compactor.history import HistoryFilter
from trimtab.cli.printable_text import ReportConsole
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.reports import compactor_status as report
from trimtab.cluster.api.core import Node
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.snapshot import Snapshot, build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict, encode_annotation
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.drain.waiting import differ_much
from trimtab.inputs import compactor_state as state_module
from trimtab.inputs.compactor_state import CompactorState
from trimtab.kube.errors import ApiStatus, NotAllowed
from trimtab.kube.listing import ClusterListing
from trimtab.kube.resources import ListSource

NOW = 1_800_000_000


def found(memory: PoolState, pool: Pool | None = None, **more: str) -> CompactorState:
    pools = PoolReading((pool or Pool(name="web", dry_run=False),))
    message = {"leader": "one", "paused": "", "namespace": "trimtab-system", **more}
    return CompactorState(
        read_at=NOW, snapshot=Snapshot(), pools=pools, pool_states={"web": memory}, problems=(), **message
    )


def test_whose_drain_it_is_is_said_where_another_namespaces_compactor_began_it() -> None:
    nodes = [node(f"n{home}", annotations={CORDONED_BY_US: note(home)}) for home in ("trimtab-system", "elsewhere")]
    elsewhere, emptying = phases(PoolState(drains={"ntrimtab-system": "d"}), *nodes)
    assert has_facts(elsewhere, "namespace elsewhere", "this drain")
    assert emptying == "emptying"


def test_a_drain_that_the_state_does_not_know_is_called_so_and_no_key_is_needed() -> None:
    [phase] = phases(PoolState(), node("n1", annotations={CORDONED_BY_US: note("trimtab-system")}))
    assert has_facts(phase, "state", "not contain this drain")
    assert phases(PoolState(), node("n1", annotations={CORDONED_BY_US: "{"})) == ["unreadable"]


def phases(memory: PoolState, *nodes: Item) -> list[str]:
    reading = build_snapshot([Document(file="x", index=number, value=item) for number, item in enumerate(nodes)])
    return [
        drain.phase for drain in report.build_status_report(replace(found(memory), snapshot=reading.snapshot)).drains
    ]


def note(home: str, **more: Any) -> str:
    """Signed with a key that the command does not hold."""
    [on] = cluster(node("n1")).nodes
    annotation = DrainAnnotation(drain="d", pool="web", since=NOW, home=home, **more)
    return encode_annotation(annotation, on, SigningKeys(b"k" * 32))


def test_a_drain_shows_the_budget_for_which_it_waits() -> None:
    moves = (PodToEvict("default/web-1", "uid-web-1"), PodToEvict("default/api-1", "uid-api-1"))
    items = [
        node("n1", annotations={CORDONED_BY_US: note("trimtab-system", moves=moves)}),
        pod("web-1", "n1"),
        pod("api-1", "n1"),
        budget("web", 0),
        budget("api", 1),
    ]
    reading = build_snapshot([Document(file="x", index=number, value=item) for number, item in enumerate(items)])
    status = report.build_status_report(replace(found(PoolState()), snapshot=reading.snapshot))
    [drain] = status.drains
    assert drain.pods_left == 2
    assert has_facts(drain.waits_for, "budget default/web", "0 disruptions")
    console = ReportConsole(record=True, width=200)
    draw_report(console, status, report.VIEW)
    assert has_facts(console.export_text(), "2 of 2", "default/web", "0 disruptions")


def test_budgets_are_listed_only_during_a_drain_and_without_the_right_the_rest_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def listed(*items: Item) -> ClusterListing:
        reading = build_snapshot([Document(file="x", index=number, value=item) for number, item in enumerate(items)])

        def answer(_: Any, sources: tuple[ListSource, ...]) -> ClusterListing:
            if [source.kind for source in sources] == ["PodDisruptionBudget"]:
                raise NotAllowed("list poddisruptionbudgets", 403, ApiStatus(message="forbidden"))
            return ClusterListing(reading.snapshot)

        monkeypatch.setattr(state_module, "list_kinds", answer)
        client: Any = None
        return state_module.list_state(client, "trimtab-system", pods=True)

    assert listed(node("n1")).unreadable == ()
    drained = listed(node("n1", annotations={CORDONED_BY_US: note("trimtab-system")}))
    assert [problem.where for problem in drained.unreadable] == ["PodDisruptionBudgets"]
    assert len(drained.snapshot.objects_of(Node)) == 1


def waits(memory: PoolState, pool: Pool | None = None, **more: str) -> str:
    return report.build_status_report(found(memory, pool, **more)).pools[0].waits_for


def test_what_a_pool_waits_for_is_said() -> None:
    ready = PoolState(plan=("n1",))
    assert waits(ready) == ""
    assert has_facts(waits(PoolState()), "a plan that drains")
    pool_state = PoolState(plan_stays={"headroom": 3, "node-too-young": 1})
    assert has_facts(waits(pool_state), "4 nodes", "3 headroom", 1, "node-too-young")
    assert waits(ready, paused="said so") == "said so"
    assert has_facts(waits(ready, leader=""), "leads", "Lease")
    assert "mode rehearse" in waits(ready, Pool(name="web"))
    assert "drain of n1" in waits(PoolState(plan=("n2",), drains={"n1": "d"}))
    assert "two" not in waits(PoolState(strikes=2, closed=NOW - 10))
    assert has_facts(waits(PoolState(strikes=2, closed=NOW - 10)), "closed", "3590 more seconds")
    assert "limit of" in waits(PoolState(plan=("n1",), evictions=(NOW,) * 200))


def test_a_node_whose_drain_is_under_way_is_not_next() -> None:
    state = PoolState(plan=("n1", "n2", "n3"), drains={"n1": "d", "n3": "e"}, empty=("n1",))
    assert report.build_status_report(found(state)).pools[0].next == ["n2"]


def test_each_pool_says_why_its_nodes_stay_also_in_a_rehearsal() -> None:
    stays = {"headroom": 9, "node-too-young": 3, "pod-must-stay": 2, "no-place": 1}
    status_report = report.build_status_report(found(PoolState(plan=("n1",), plan_stays=stays), Pool(name="web")))
    assert status_report.pools[0].stays == stays
    console = ReportConsole(record=True, width=250)
    draw_report(console, status_report, report.VIEW)
    text = console.export_text()
    assert has_facts(text, "15 nodes", "9 headroom", 3, "node-too-young", 2, "pod-must-stay")
    assert "`trimtab explain CODE`" in text


@pytest.mark.parametrize(
    ("before", "after", "stored"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {}, True),
        ({"a": 2}, {"a": 1}, True),
        ({"a": 1}, {"b": 1}, True),
        ({"a": 100}, {"a": 95}, False),
        ({"a": 100}, {"a": 80}, True),
        ({"a": 3, "b": 1}, {"b": 1, "a": 3}, False),
    ],
)
def test_reasons_are_stored_again_only_when_they_differ_much(
    before: dict[str, int], after: dict[str, int], stored: bool
) -> None:
    assert differ_much(before, after) is stored


def test_history_is_in_order_and_can_be_of_one_node() -> None:
    ring = tuple(
        HistoryEntry(at=NOW - n, pool="web", what="started", code="c", why="w", node=f"n{n}") for n in range(3)
    )
    everything = history.build_history_report(found(PoolState(ring=ring)))
    assert [record.node for record in everything.records] == ["n2", "n1", "n0"]
    assert (
        len(history.build_history_report(found(PoolState(ring=ring)), HistoryFilter(pool="web", node="n1")).records)
        == 1
    )


def test_history_can_be_of_the_last_hours_the_last_records_and_without_evictions() -> None:
    ring = tuple(
        HistoryEntry(at=NOW - n * 3600, pool="web", what="evicted" if n % 2 else "started", code="c", why="w")
        for n in range(6)
    )
    state = found(PoolState(ring=ring))

    def ages(filters: HistoryFilter) -> list[str]:
        return [record.at[11:13] for record in history.build_history_report(state, filters).records]

    everything = ages(HistoryFilter())
    assert ages(HistoryFilter(since=NOW - 2 * 3600)) == everything[-3:]
    assert ages(HistoryFilter(limit=2)) == everything[-2:]
    assert ages(HistoryFilter(evictions=False)) == everything[1::2]


def test_a_history_without_new_decisions_says_when_the_last_one_was() -> None:
    state = found(
        PoolState(ring=(HistoryEntry(at=NOW - 7200, pool="web", what="started", code="c", why="w", node="n1"),))
    )

    def text(filters: HistoryFilter) -> str:
        console = ReportConsole(record=True, width=200)
        draw_report(console, history.build_history_report(state, filters), history.VIEW)
        return console.export_text().strip()

    assert has_facts(text(HistoryFilter(since=NOW - 300)), "no decision", "5 minutes", "2027-01-15T06:00:00Z")
    assert has_facts(text(HistoryFilter(since=NOW - 3600)), "no decision", "1 hour")
    assert has_facts(text(HistoryFilter(node="other", since=NOW - 300)), "stored no decision")
    assert history.build_history_report(state).empty_because == ""


def test_only_decisions_that_are_new_are_added_to_a_watch() -> None:
    first, second = (HistoryEntry(at=NOW + n, pool="web", what="started", code="c", why="w") for n in range(2))
    earlier = history.build_history_report(found(PoolState(ring=(first,))))
    later = history.build_history_report(found(PoolState(ring=(first, second))))
    assert history.new_records(earlier, later).records == later.records[1:]


@pytest.mark.parametrize("off", [-600, 600])
def test_a_pool_is_reopened_by_the_compactors_clock_whatever_ours_says(off: int) -> None:
    assert report.choose_reopening_time(PoolState(closed=NOW), NOW + off) == NOW
    assert report.choose_reopening_time(PoolState(), NOW) == NOW


def test_what_others_wrote_is_drawn_as_it_stands() -> None:
    """A webhook's refusal often begins with its policy's name in brackets, which a table would take for a style."""
    text = "[no-latest] denied [/by] a policy"
    record = HistoryEntry(at=NOW, pool="web", what="refused", code="eviction-refused", why=text)
    observation = replace(found(PoolState(ring=(record,), plan_why=text), paused=text), problems=(text,))
    console = ReportConsole(record=True, width=200)
    draw_report(console, history.build_history_report(observation), history.VIEW)
    draw_report(console, report.build_status_report(observation), report.VIEW)
    assert console.export_text().count(text) == 4
