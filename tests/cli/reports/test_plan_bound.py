"""The sentence of a report about the most that any plan could drain."""

from trimtab.cli.reports.plan_bound import report_bound
from trimtab.compaction.plan_types import Bound


def test_a_bound_that_only_repeats_which_nodes_may_be_drained_says_nothing() -> None:
    bound = Bound(saves=6, nodes=6, pinned=0, unpinned_nodes=6, unpinned_saves=6, candidates=6)
    assert "6 nodes" in report_bound(bound, "cores", 6).text
    assert report_bound(bound, "cores", 7).text == ""


def test_pods_that_may_not_move_are_named_if_more_nodes_could_be_drained_without_them() -> None:
    bound = Bound(saves=6, nodes=6, pinned=2, unpinned_nodes=6, unpinned_saves=6, candidates=6)
    more = Bound(saves=6, nodes=6, pinned=2, unpinned_nodes=7, unpinned_saves=7, candidates=6)
    assert report_bound(bound, "cores", 9).text == ""
    assert "1 more node" in report_bound(more, "cores", 9).text
