"""Runs the decisions of a whole fleet on an engine.

If one file of a cluster cannot be read, the whole cluster is left out and named, because requests from only a part of
its history could be too small. The rest is then decided again without it, so that the result does not depend on what
had been read before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from trimtab.fleet.container_blocks import count_buckets
from trimtab.fleet.container_decisions import ClusterState, CurrentRow, DailyFile, DecideJob, DecisionSettings, Source
from trimtab.fleet.engine import Engine
from trimtab.fleet.money_report import ClusterFailure, FleetSums, merge_sums
from trimtab.usage.daily_store import StoredDay


@dataclass(frozen=True, slots=True)
class FleetDecisions:
    """The sums of all decisions, and the clusters that are left out."""

    sums: FleetSums
    failures: tuple[ClusterFailure, ...]
    clusters: tuple[str, ...]
    """The names of the clusters for which decisions were made."""
    bucket_count: int


def decide_fleet(
    engine: Engine,
    files: Sequence[StoredDay],
    states: Sequence[ClusterState],
    settings: DecisionSettings,
    read_current: Callable[[bytes], Sequence[CurrentRow]],
) -> FleetDecisions:
    """Decides the requests of all containers that have usage in `files`, or that are in a snapshot in `states`."""
    failures: set[ClusterFailure] = set()
    count = count_buckets(one.size for one in files)
    while True:
        left_out = {failure.cluster for failure in failures}
        sources: list[Source] = [
            DailyFile(one.cluster, one.day, one.path, one.size) for one in files if one.cluster not in left_out
        ]
        states_left = [state for state in states if state.cluster not in left_out]
        sources += states_left
        clusters = tuple(sorted({source.cluster for source in sources}))
        job_settings = replace(
            settings, bucket_count=count, with_snapshots=frozenset(state.cluster for state in states_left)
        )
        job = DecideJob(job_settings, read_current)
        encoded = [msgspec.msgpack.encode(source) for source in sources]
        results = engine.run_buckets(job, encoded, count) if encoded else []
        sums = merge_sums((msgspec.msgpack.decode(part, type=FleetSums) for _, part in results), settings.rows)
        if not sums.failures:
            return FleetDecisions(sums, tuple(sorted(failures)), clusters, count)
        failures.update(sums.failures)
