"""A drain waits for no pod that was missing before it began, and moves one workload of the system at a time."""

from msgspec.structs import replace as change

from tests.cluster_of import NOW, budget, cluster, node, pod
from tests.compaction.drain.test_state_machine import evicted, leaving, note, owner, step, waits
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.actions import MarkEmptied, Release
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.start import create_annotation as begin_note
from trimtab.compaction.plan_types import DrainStep, Move
from trimtab.compaction.reasons import GOES

CRITICAL = 2_000_000_000
UNREADY = pod("web-0", "n2", ready=False)


def test_the_note_says_how_many_were_missing() -> None:
    items = [node("n1"), node("n2"), pod("web-1", "n1"), UNREADY, pod("web-2", "n2"), owner("web", 3)]
    move = Move(pod="default/web-1", uid="uid-web-1", source="n1", target="n2", turn=0, budget=None)
    planned = DrainStep(node="n1", pool="all", saves=1, moves=(move,), reason=GOES("it goes"))
    [actual_move] = begin_note(planned, ClusterView(now=NOW, inventory=cluster(*items))).moves
    assert (actual_move.wanted, actual_move.missing) == (3, 1)


def test_what_was_missing_at_the_beginning_is_not_waited_for() -> None:
    one, two = leaving("web-1", wanted=3, missing=1), leaving("web-2", wanted=3, missing=1)
    here = [pod("web-1", "n1"), pod("web-2", "n1"), UNREADY, owner("web", 3)]
    assert evicted(step(note(one, two), *here)) == ["web-1"]
    successor = pod("web-3", "n2", created=format_timestamp(NOW - 20))
    assert evicted(step(note(one, two), successor, *here[1:])) == ["web-2"]
    done = [successor, pod("web-4", "n2", created=format_timestamp(NOW - 10)), UNREADY, owner("web", 3)]
    assert isinstance(step(note(one, two), *done)[0], MarkEmptied)


def test_what_is_missing_beyond_it_is() -> None:
    one, two = leaving("web-1", wanted=3, missing=1), leaving("web-2", wanted=3, missing=1)
    unready = pod("web-3", "n2", ready=False, created=format_timestamp(NOW - 20))
    here = [pod("web-2", "n1"), UNREADY, owner("web", 3)]
    assert waits(step(note(one, two), unready, *here)) == "drain-waits-for-workload"
    since = change(note(one, two), since=NOW - 450)
    [late] = step(since, pod("web-3", "n2", ready=False, created=format_timestamp(NOW - 400)), *here)
    assert isinstance(late, Release)


def test_one_workload_of_the_system_moves_at_a_time() -> None:
    moves = (leaving("csi-1", priority=CRITICAL, wanted=2), leaving("dns-1", priority=CRITICAL, wanted=2))
    budgets = [budget("dns", 1), budget("csi", 1), owner("dns", 2), owner("csi", 2)]
    both = [pod("dns-1", "n1"), pod("dns-2", "n2"), pod("csi-1", "n1"), pod("csi-2", "n2")]
    assert evicted(step(note(*moves), *both, *budgets)) == ["csi-1"]
    first_gone = [*both[:2], both[3]]
    assert waits(step(note(*moves), *first_gone, *budgets)) == "drain-waits-for-critical-workload"
    back = [*first_gone, pod("csi-3", "n2", created=format_timestamp(NOW - 5))]
    assert evicted(step(note(*moves), *back, *budgets)) == ["dns-1"]


def test_a_workload_whose_budget_is_spent_keeps_no_other_from_its_turn() -> None:
    moves = (leaving("csi-1", priority=CRITICAL, wanted=2), leaving("dns-1", priority=CRITICAL, wanted=2))
    pods = [pod("dns-1", "n1"), pod("dns-2", "n2"), pod("csi-1", "n1"), pod("csi-2", "n2")]
    spent = [budget("csi", 0, most=1), budget("dns", 1), owner("dns", 2), owner("csi", 2)]
    assert evicted(step(note(*moves), *pods, *spent)) == ["dns-1"]
