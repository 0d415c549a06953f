"""A pool goes from a rehearsal to the real thing before one's eyes."""

import io

from rich.console import Console

from tests.reasons import has_facts
from trimtab.cli.demo import compaction, sample_pool
from trimtab.cli.demo.machines import draw_machines
from trimtab.cli.demo.reservations import PROFILES, draw_reservations


def shown() -> str:
    written = io.StringIO()
    compaction.draw_compaction(Console(file=written, width=200), sample_pool.build_inputs())
    return written.getvalue()


def test_a_rehearsal_does_nothing_and_the_real_thing_breaks_no_budget() -> None:
    rehearsed, _, acted = shown().partition("mode: act")
    assert has_facts(rehearsed, "drain", "shop-9", "begins")
    assert has_facts(rehearsed, "cordoned: 0", "evicted: 0")
    assert "removed" in acted
    assert "9 nodes → 4" in acted
    assert has_facts(acted, "evicted", "0 of them twice", "0 PodDisruptionBudgets")


def test_five_vendors_keep_different_parts_of_the_same_node() -> None:
    written = io.StringIO()
    draw_reservations(Console(file=written, width=160))
    lines = written.getvalue()
    assert all(name in lines for name in PROFILES)
    assert "2.6Gi" in lines
    assert "1.43Gi" in lines


def test_the_best_machine_types_are_checked_with_the_pods() -> None:
    written = io.StringIO()
    draw_machines(Console(file=written, width=200))
    lines = written.getvalue()
    assert "GiB per $/h" in lines
    assert has_facts(lines, "cheapest types", "pods of the snapshot")
