"""The rules of the cluster autoscaler for which the stand-in stands, each with its file and function.

The cluster autoscaler cannot be had as a Go module, so a stand-in takes its place in the simulation and in live
benchmarks, and is always called so. The sources are paths below `cluster-autoscaler/` of kubernetes/autoscaler, branch
cluster-autoscaler-release-1.36. What is not in the table, the stand-in does not do.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StandInRule:
    """One rule: what the autoscaler does, and where its source says so."""

    name: str
    text: str
    file: str
    function: str


RULES = (
    StandInRule(
        "threshold",
        "A node is a candidate while the larger of its requested shares of cpu and memory is below the threshold.",
        "core/scaledown/eligibility/eligibility.go",
        "isNodeBelowUtilizationThreshold",
    ),
    StandInRule(
        "places",
        "A candidate is unneeded if all its pods fit on other nodes that take pods.",
        "simulator/cluster.go",
        "SimulateNodeRemoval",
    ),
    StandInRule(
        "room-once",
        "Room that the pods of one unneeded node need does not count for another, and no pod goes to an unneeded node.",
        "core/scaledown/planner/planner.go",
        "categorizeNodes",
    ),
    StandInRule(
        "earlier-first",
        "Nodes that were unneeded in the scan before are examined first.",
        "processors/scaledowncandidates/previouscandidates/previous_candidates_sorting.go",
        "ScaleDownEarlierThan",
    ),
    StandInRule(
        "empty-first",
        "Of the others, empty nodes are examined first.",
        "processors/scaledowncandidates/emptycandidates/empty_candidates_sorting.go",
        "ScaleDownEarlierThan",
    ),
    StandInRule(
        "recheck",
        "A candidate whose pods have no other place is not examined again for five minutes.",
        "core/scaledown/planner/planner.go",
        "categorizeNodes",
    ),
    StandInRule(
        "blocking-pods",
        "A pod without a controller, with local data, or marked as not safe to evict keeps its node.",
        "simulator/drain.go",
        "GetPodsToMove",
    ),
    StandInRule(
        "budgets",
        "A node stays if a budget allows fewer evictions than the node has pods of it; what one node needs is spent.",
        "core/scaledown/pdb/basic.go",
        "CanRemovePods",
    ),
    StandInRule(
        "unneeded-time",
        "A node is removed once it has been unneeded for longer than the unneeded time, without interruption.",
        "core/scaledown/unneeded/nodes.go",
        "unremovableReason",
    ),
    StandInRule(
        "min-size",
        "A node group keeps its minimum; nodes that are being removed no longer count.",
        "core/scaledown/unneeded/nodes.go",
        "verifyMinSize",
    ),
    StandInRule(
        "parallelism",
        "At most ten nodes are removed at a time, and one of those with pods; empty nodes come first.",
        "core/scaledown/budgets/budgets.go",
        "CropNodes",
    ),
    StandInRule(
        "delay-after-add",
        "For a while after nodes were added, none is removed; unneeded times go on.",
        "core/static_autoscaler.go",
        "isScaleDownInCooldown",
    ),
    StandInRule(
        "one-thing-a-scan",
        "A scan that adds nodes ends before it looks for unneeded ones.",
        "core/static_autoscaler.go",
        "RunOnce",
    ),
    StandInRule(
        "new-pods",
        "A scan adds nothing while every waiting pod is younger than two seconds.",
        "core/static_autoscaler.go",
        "allPodsAreNew",
    ),
    StandInRule(
        "upcoming",
        "Waiting pods that fit on nodes that take pods, or on nodes that were added and are not ready, need no others.",
        "core/podlistprocessor/filter_out_schedulable.go",
        "filterOutSchedulableByPacking",
    ),
    StandInRule(
        "first-fit",
        "The number of new nodes of a group is what first fit needs for the pods, those with most requests first.",
        "estimator/binpacking_estimator.go",
        "Estimate",
    ),
    StandInRule(
        "least-waste",
        "Of several groups, the one whose new nodes waste the smallest shares of cpu and memory gets the nodes.",
        "expander/waste/waste.go",
        "BestOptions",
    ),
    StandInRule(
        "soft-taint",
        "In a scan that removes no node, unneeded nodes get a PreferNoSchedule taint with the time as its value, and "
        "others lose it, ten at most.",
        "core/scaledown/actuation/softtaint.go",
        "UpdateSoftDeletionTaints",
    ),
    StandInRule(
        "eviction-retries",
        "An eviction is tried again every ten seconds for two minutes; then the node stays, and takes pods again.",
        "core/scaledown/actuation/drain.go",
        "evictPod",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInFlags:
    """The flags of the cluster autoscaler that the stand-in obeys, with the autoscaler's defaults
    (config/flags/flags.go), in seconds."""

    threshold: float = 0.5
    unneeded_seconds: float = 600
    delay_after_add_seconds: float = 600
    recheck_seconds: float = 300
    scan_seconds: float = 10
    max_eviction_seconds: float = 120
    max_removals: int = 10
    max_drains: int = 1
    max_soft_taints: int = 10
    min_size: int = 1
    new_pod_seconds: float = 2

    def format_arguments(self) -> tuple[str, ...]:
        """Returns the flags that differ between variants, as on the autoscaler's command line."""
        return (
            f"--scale-down-utilization-threshold={self.threshold:g}",
            f"--scale-down-unneeded-time={self.unneeded_seconds:g}s",
            f"--scale-down-delay-after-add={self.delay_after_add_seconds:g}s",
        )
