"""What a replay does not know, and what each gap can change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cli.replay.recorded_world import RecordedWorld


@dataclass(frozen=True, slots=True)
class MissingInput:
    """Something that the input of a replay does not contain."""

    what: str
    changes: str
    """What the answer could be without the gap."""


def list_missing_inputs(recorded: RecordedWorld) -> Iterator[MissingInput]:
    """Yields what captures do not show, the gap with the largest effect first."""
    minutes = max(1, round(recorded.every_seconds / 60))
    yield MissingInput(
        f"pods that live for less than {minutes} min between two captures",
        "nodes look emptier than they were: fewer purchases and shorter waits than there would have been",
    )
    yield MissingInput(
        "what a pod loses when it is evicted: caches, connections, the work of a Job since its start",
        "a Job counts as ended when it had ended in the recording, although an evicted one begins again",
    )
    yield MissingInput(
        "what HPAs and users would have done with other nodes",
        "each workload has the number of pods that it had in the recording",
    )
    yield MissingInput(
        "the limits of node groups, and machines that the cloud did not have",
        "each group can have as many nodes as the replay wants, each ready after 90 s",
    )
    if not all(recorded.world.prices.values()):
        groups = sorted(group for group, price in recorded.world.prices.items() if not price)
        yield MissingInput(
            f"the price of the nodes of {', '.join(groups)}",
            "money is left out; --prices names a file with what you pay",
        )
    if not recorded.pools:
        yield MissingInput(
            "settings of pools in the cluster", "only the presets are replayed, as if they were set for each pool"
        )
