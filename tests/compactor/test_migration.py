"""A pool that should go is emptied to its last node, also where pods wait for nodes and everything is slow."""

from collections import Counter

import pytest

from tests.compactor.played_migration import OLD, Pace, PlayedMigration, migrate
from trimtab.compaction.drain.timeouts import DrainTimeouts

IMPATIENT = DrainTimeouts(taken=600, pending=10, ready=60)
"""A successor that has had no node for ten seconds ends its drain."""
SLOW = Pace(follow=4, lag=5, boot=30, unneeded=25, scheduler=0.7, autoscaler=0.1)


def ends(played: PlayedMigration) -> Counter[str]:
    return Counter(record.code for record in played.records if record.what in ("closed", "released"))


@pytest.mark.parametrize("seed", [2, 3])
def test_successors_that_wait_do_not_stop_a_migration(seed: int) -> None:
    played = PlayedMigration(pace=SLOW, seed=seed)
    migrate(played, hours=0.5, terms=IMPATIENT)
    assert played.nodes_of(OLD) == []
    # Drains did end because successors waited, and yet the pool went on.
    assert ends(played).keys() == {"drain-successor-not-placed"}
    assert played.longest_wait <= 60
    assert played.short == []


def test_a_migration_that_nothing_disturbs_ends_no_drain_early() -> None:
    played = PlayedMigration(nodes=10, apps=5)
    migrate(played, hours=0.5)
    assert (played.nodes_of(OLD), ends(played), played.short) == ([], Counter(), [])
    assert played.longest_wait <= 10
    # Two old nodes of four cores are one new node of eight, beside the one that was there.
    assert len(played.bought) <= 6
