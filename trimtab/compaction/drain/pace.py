"""How many nodes of a wave may be emptied right now?"""

from trimtab.cluster.moment import Seconds
from trimtab.cluster.pool import Pool
from trimtab.compaction.observations import Observations
from trimtab.compaction.values import Step, Wave


def due(wave: Wave, pool: Pool, seen: Observations, now: Seconds, owed: int = 0) -> tuple[Step, ...]:
    """Steps of this pool to begin now: within its drains at a time and its evictions per hour, best first.

    `owed`: pods that drains under way have still to evict.

    A node of more pods than an hour allows may go when nothing else went in that hour: else it never would.
    """
    drains = pool.drains - sum(name == pool.name for name in seen.draining.values())
    spoken_for = seen.lately(now) + owed
    left = pool.evictions_per_hour - spoken_for
    found: list[Step] = []
    for step in wave.steps:
        if step.pool != pool.name or step.node in seen.draining or len(found) >= drains:
            continue
        alone = not found and not spoken_for
        if len(step.moves) <= left or alone:
            found.append(step)
            left -= len(step.moves)
    return tuple(found)
