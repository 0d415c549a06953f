"""The sentence of a report about the most that any plan could drain."""

import pytest

from tests.reasons import has_facts
from trimtab.cli.reports.plan_bound import report_bound
from trimtab.compaction.plan_types import Bound


@pytest.mark.parametrize(
    ("nodes", "facts"), [(6, ("all 6 nodes",)), (7, ("more than 6 nodes", "no other node may be drained"))]
)
def test_a_bound_names_other_nodes_only_if_there_are_some(nodes: int, facts: tuple[str, ...]) -> None:
    bound = Bound(saves=6, nodes=6, pinned=0, unpinned_nodes=6, unpinned_saves=6, candidates=6)
    text = report_bound(bound, "cores", nodes).text
    assert has_facts(text, *facts)
    assert ("other node" in text) == (nodes > 6)
