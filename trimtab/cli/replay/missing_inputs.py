"""What a replay does not know, and what each gap can change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.autoscaling.replay.recording import group_of, is_of_autoscaler
from trimtab.cli.replay.recorded_world import RecordedWorld
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import INSTANCE_TYPE_LABEL


@dataclass(frozen=True, slots=True)
class MissingInput:
    """Something that the input of a replay does not contain."""

    what: str
    changes: str
    """What the answer could be without the gap."""


ABSENT_METRICS = {
    "kube_node_created": "nodes begin with their first scrape",
    "kube_node_spec_unschedulable": "no node was cordoned: pods fit on nodes that took none",
    "kube_node_status_condition": "every node is ready: pods fit on nodes that took none",
    "kube_pod_created": "pods begin with their first scrape: shorter waits than there were",
    "kube_pod_info with the label uid": (
        "pods that had the same name one after the other, as those of StatefulSets, are one pod: fewer starts and "
        "waits than there were"
    ),
    "kube_pod_nodeselectors": (
        "pods fit on nodes that they would not get: kube-state-metrics shows node selectors if it is started with "
        "--metric-opt-in-list=kube_pod_nodeselectors"
    ),
    "kube_pod_status_phase": (
        "a pod that has finished counts until it is deleted: more node hours and more evictions than there would have "
        "been"
    ),
    "kube_pod_status_scheduled_time": "a pod has a node from the scrape on that shows it: longer waits than there were",
    "kube_pod_tolerations": (
        "no pod gets a node with a taint again: longer waits, and fewer node hours and evictions than there would have "
        "been"
    ),
    "kube_replicaset_owner": "both parts of a rollout are workloads by themselves: more purchases than there were",
}
"""Metric → what can be different because the server does not have it."""


def list_missing_inputs(recorded: RecordedWorld) -> Iterator[MissingInput]:
    """Yields what the recording does not show, the gap with the largest effect first."""
    if recorded.from_prometheus:
        yield from _list_unscraped_inputs(recorded)
    minutes = max(1, round(recorded.every_seconds / 60))
    source = "scrapes" if recorded.from_prometheus else "captures"
    yield MissingInput(
        f"pods that live for less than {minutes} min between two {source}",
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
        "rules of the cluster autoscaler that docs/reference/stand-in.md does not list",
        "the autoscaler of the replay is a stand-in, which has only these",
    )
    yield MissingInput(
        "the limits of node groups, and machines that the cloud did not have",
        "each group can have as many nodes as the replay wants, each ready after 90 s",
    )
    mixed = _list_mixed_groups(recorded)
    if mixed:
        yield MissingInput(
            f"which of its machine types each new node of {join_first(mixed, 3)} would have had",
            "all new nodes of a group are like its latest recorded one: other core hours and costs",
        )
    virtual = [node for node in recorded.nodes if not node.nature.is_machine]
    if virtual:
        yield MissingInput(
            f"what pods cost on {format_count(len(virtual), 'node that is no machine', 'nodes that are no machines')}",
            "these nodes are in no sum; a new pod for them waits in the replay if no other node takes it",
        )
    if not recorded.pools:
        yield MissingInput(
            "settings of pools in the cluster", "only the presets are replayed, as if they were set for each pool"
        )


def _list_mixed_groups(recorded: RecordedWorld) -> list[str]:
    """Returns the node groups with machines of several types."""
    types: dict[str, set[str]] = {}
    for node in recorded.nodes:
        if is_of_autoscaler(node):
            types.setdefault(group_of(node), set()).add(node.labels.get(INSTANCE_TYPE_LABEL, ""))
    return sorted(group for group, names in types.items() if len(names) > 1)


def _list_unscraped_inputs(recorded: RecordedWorld) -> Iterator[MissingInput]:
    """Yields what captures show, and kube-state-metrics does not."""
    for metric in recorded.absent_metrics:
        yield MissingInput(f"the metric {metric}, which the server does not have", ABSENT_METRICS[metric])
    budgets = recorded.unknown_budgets
    if budgets:
        yield MissingInput(
            f"which pods the {format_count(len(budgets), 'budget')} select ({join_first(budgets, 3)})",
            "no budget refuses an eviction: more evictions and fewer node hours than there would have been",
        )
    yield MissingInput(
        "affinity of pods, anti-affinity, topology spread and host ports",
        "pods fit on nodes that they would not get: fewer node hours and fewer purchases than there would have been",
    )
    yield MissingInput(
        "volumes: zones of claims, local data, and annotations that keep a pod where it is",
        "pods move that could not have moved: more evictions and fewer node hours",
    )
    yield MissingInput(
        "labels of pods, and labels of nodes that Trimtab does not know",
        "pods fit on nodes of pools that they would not get",
    )
    yield MissingInput(
        "terminationGracePeriodSeconds, overhead of RuntimeClasses, and sidecars",
        "a pod counts as asked to go 30 s before its end, and may request less than it did",
    )
