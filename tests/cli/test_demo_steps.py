"""A pool goes from a rehearsal to the real thing before one's eyes."""

import io

from rich.console import Console

from trimtab.cli.demo import compaction, sample_pool


def shown() -> str:
    written = io.StringIO()
    compaction.draw_compaction(Console(file=written, width=200), sample_pool.build_inputs())
    return written.getvalue()


def test_a_rehearsal_does_nothing_and_the_real_thing_breaks_no_budget() -> None:
    rehearsed, _, acted = shown().partition("mode: act")
    assert "would have begun" in rehearsed
    assert "nodes cordoned: 0, pods evicted: 0" in rehearsed
    assert "taken" in acted
    assert "9 nodes → 4" in acted
    assert "0 of them twice; budgets broken: 0" in acted
