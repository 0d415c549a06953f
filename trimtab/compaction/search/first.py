"""Which nodes should go right now? The first wave alone, for whoever will plan again before the second.

A pool empties a few nodes at a time, so most of a plan is never carried out. Here only the candidates that promise
most are looked at closely, the others are places for pods; so an answer for thousands of nodes takes a fraction of a
plan's time. It is as safe as a plan's first wave, and can be a little worse: one pass, no improvement.
"""

from collections.abc import Sequence

from trimtab.cluster.pool import Pool
from trimtab.compaction.candidates import Now
from trimtab.compaction.plan import Planner
from trimtab.compaction.search.choose import best_only
from trimtab.compaction.search.prepare import prepare
from trimtab.compaction.values import Wave
from trimtab.packing.world import World

CLOSE = 400
"""Candidates looked at closely at first; four times as many when none of them can go."""


def first_wave(world: World, pools: Sequence[Pool], now: Now = Now(), close: int = CLOSE) -> Wave:  # noqa: B008
    """Nodes to be emptied now, best first; empty when no node can go. Equal input gives an equal wave."""
    while True:
        made = prepare(world, pools, now, close)
        found = Planner(made, best_only(made)).first()
        if found.steps or not made.later:
            return found
        close *= 4
