"""Compares flags of the cluster autoscaler by replaying them on one history.

The cheapest flags are chosen among those with which few nodes are removed in vain and pods do not wait longer. Of flags
that cost nearly the same, those with fewer evictions are chosen. The present flags are kept unless others save
something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from trimtab.autoscaling.simulation.replay_nodes import NodeHistory, ReplayResult, ScaleDownFlags, replay_history
from trimtab.cluster.reason import Code, Reason

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
UNNEEDED_SECONDS = (300, 600, 1200, 1800)
DELAYS_AFTER_ADD = (600, 1800)
MAX_BOUGHT_BACK_SHARE = 0.1
"""The largest share of the removed nodes that may have to be added again with proposed flags. If more nodes have to be
added again with the present flags, that larger number is allowed."""
MAX_PENDING_RATIO = 1.1
"""The longest time for which pods may wait with proposed flags, as a multiple of the time with the present flags."""
NEARLY_EQUAL = 0.01

AUTOSCALER_SAVES = Code(
    "autoscaler-flags-save",
    "With other flags, the cluster autoscaler would have needed fewer nodes.",
    "Check the evictions and the nodes that are added again, then set the flags.",
)
AUTOSCALER_FITS = Code(
    "autoscaler-flags-fit",
    "No other flags save a hundredth without removing nodes that are needed again. Nor do others save as much "
    "without leaving pods pending.",
    "Nothing.",
)


@dataclass(frozen=True, slots=True)
class ReplayedFlags:
    """One set of flags, and the result of its replay."""

    flags: ScaleDownFlags
    result: ReplayResult

    @property
    def cost(self) -> float:
        """The cost in dollars, or in node-seconds if a price is unknown. It can be compared only between replays of the
        same history."""
        return self.result.node_seconds if self.result.dollars is None else self.result.dollars

    @property
    def disruption(self) -> int:
        """A measure of disruption: the number of evictions, plus ten for every removed node that had to be added
        again."""
        return self.result.evictions + 10 * self.result.bought_back


@dataclass(frozen=True, slots=True)
class AutoscalerProposal:
    """All replays, and the flags that were chosen."""

    present: ReplayedFlags
    replays: tuple[ReplayedFlags, ...]
    """The replays of all flags, including the present ones, the cheapest first."""
    chosen: ReplayedFlags
    reason: Reason


def candidate_flags(flags: ScaleDownFlags) -> tuple[ScaleDownFlags, ...]:
    """Returns the present flags, and every combination of usual thresholds, unneeded times and delays."""
    others = (
        replace(flags, threshold=threshold, unneeded_seconds=unneeded, delay_after_add_seconds=delay)
        for threshold in THRESHOLDS
        for unneeded in UNNEEDED_SECONDS
        for delay in DELAYS_AFTER_ADD
    )
    return tuple(dict.fromkeys((flags, *others)))


def propose_flags(
    history: NodeHistory,
    present: ScaleDownFlags,
    candidates: Sequence[ScaleDownFlags] | None = None,
    on_replay: Callable[[Sequence[ScaleDownFlags]], Iterable[ScaleDownFlags]] = lambda all_flags: all_flags,
) -> AutoscalerProposal:
    """Replays all candidates, and returns them with the choice. `on_replay` may show the progress."""
    every = tuple(dict.fromkeys((present, *(candidate_flags(present) if candidates is None else candidates))))
    replays = [ReplayedFlags(flags, replay_history(history, flags)) for flags in on_replay(every)]
    return choose_flags(replays[0], replays)


def choose_flags(present: ReplayedFlags, replays: Sequence[ReplayedFlags]) -> AutoscalerProposal:
    """Returns the choice among replays of the same history; `present` must be one of them."""
    ordered = tuple(sorted(replays, key=lambda one: (one.cost, one.disruption)))
    # Whether few nodes have to be added again with these flags, and pods wait hardly longer than with the present
    # flags.
    allowed = [
        one
        for one in ordered
        if one is present
        or (
            one.result.bought_back <= max(present.result.bought_back, MAX_BOUGHT_BACK_SHARE * one.result.removed)
            and one.result.pending_pod_seconds <= MAX_PENDING_RATIO * present.result.pending_pod_seconds + 600
        )
    ]
    cheapest = allowed[0].cost
    near = [one for one in allowed if one.cost <= cheapest * (1 + NEARLY_EQUAL)]
    chosen = min(near, key=lambda one: (one.disruption, one.cost))
    saved = 1 - chosen.cost / present.cost if present.cost else 0.0
    if chosen is present or saved < NEARLY_EQUAL:
        return AutoscalerProposal(
            present, ordered, present, AUTOSCALER_FITS("no other flags save at least 1 % of the cost")
        )
    sentence = f"{saved:.0%} fewer {'node hours' if present.result.dollars is None else 'dollars'}"
    return AutoscalerProposal(present, ordered, chosen, AUTOSCALER_SAVES(sentence))
