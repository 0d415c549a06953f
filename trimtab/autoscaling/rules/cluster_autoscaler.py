"""Rules about the cluster autoscaler's flags together with pools and capacity buffers."""

from trimtab.autoscaling.lint_snapshot import LintSnapshot, subject_of
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, Needs, lint_rule
from trimtab.cluster.cluster_autoscaler import THRESHOLD_FLAG
from trimtab.cluster.pool import Precedence

MAX_SHARED_THRESHOLD = 0.5
"""If the autoscaler's threshold is higher, the autoscaler itself begins most drains, and a pool that follows it has
little left to plan."""
PRIORITY_EXPANDER_MAP = "cluster-autoscaler-priority-expander"


@lint_rule(
    "N02",
    LintSeverity.WARNING,
    "Autoscaler flags that conflict with other settings",
    why="Two controllers that remove nodes interfere with each other. An expander without its priorities chooses "
    "node groups at random.",
    source="Trimtab, measured on 310 nodes: with a threshold of 0.8, a pool with `autoscaler: follow` saves a "
    "tenth; with 0.9 or more, it saves nothing",
    fix="Set the autoscaler's threshold to at most 0.5, or set `autoscaler: lead` in the pool; add the "
    "priorities to their ConfigMap.",
    needs=[Needs.AUTOSCALER_FLAGS],
)
def opposed_flags(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each autoscaler with a threshold above 0.5 while a pool follows it, and for each autoscaler
    with the expander `priority` whose ConfigMap is not among the manifests."""
    followers = [pool for pool in snapshot.pools if pool.enabled and pool.autoscaler is Precedence.FOLLOW]
    names = {config_map.metadata.name for config_map in snapshot.config_maps}
    for workload, flags in snapshot.autoscalers:
        threshold = _read_share(flags.get(THRESHOLD_FLAG, ""))
        if threshold is not None and threshold > MAX_SHARED_THRESHOLD and followers:
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} removes nodes whose utilization is below {100 * threshold:.0f} %, and pool "
                f"{followers[0].name} has `autoscaler: follow`.",
                outcome="The autoscaler drains such nodes in its own order. The pool leaves these nodes to the "
                "autoscaler, so Trimtab saves little or nothing.",
            )
        # Of a cluster's ConfigMaps only Trimtab's own are read: there the map may exist all the same.
        has_priorities = snapshot.is_live or PRIORITY_EXPANDER_MAP in names
        if "priority" in flags.get("expander", "").split(",") and not has_priorities:
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} has the expander priority, but the ConfigMap {PRIORITY_EXPANDER_MAP} does "
                "not exist.",
                outcome="Without the ConfigMap all node groups have the same priority, so the autoscaler chooses one "
                "at random.",
            )


def _read_share(text: str) -> float | None:
    """Returns a share such as 0.5, or None if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return None


@lint_rule(
    "N04",
    LintSeverity.INFO,
    "A CapacityBuffer in addition to the headroom of a pool",
    why="The buffer and the headroom both reserve room for future pods, so you pay for this room twice.",
    source="autoscaling.x-k8s.io CapacityBuffer; Trimtab's `keep.headroom`",
    fix="Remove one of the two: keep.headroom of the pool, or the buffer.",
)
def doubled_headroom(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each CapacityBuffer, if a pool keeps headroom of its own."""
    pools = [pool for pool in snapshot.pools if pool.enabled and bool(pool.headroom.percent or pool.headroom.nodes)]
    for buffer in snapshot.buffers if pools else ():
        subject = subject_of("CapacityBuffer", buffer.metadata)
        yield rule.report_problem(subject, f"{subject} reserves room, and pool {pools[0].name} has headroom as well.")
