"""Reads snapshots and usage into the history on which the cluster autoscaler is replayed.

The number of pods of a workload over time comes from usage (a pod existed from its first to its last sample). Without
usage it comes from several snapshots; with one snapshot it is constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from trimtab.autoscaling.simulation.cluster_history import (
    build_history,
    count_lives,
    count_pods,
    hold_moments,
    recreating_owner,
)
from trimtab.autoscaling.simulation.replay_nodes import NodeHistory, ScaleDownFlags
from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.autoscaler_evictions import read_eviction_rules
from trimtab.cluster.autoscaler_processes import Processes, StatusKey, key_of_process
from trimtab.cluster.cluster_autoscaler import THRESHOLD_FLAG, autoscaler_from_flags, groups_from_flags, parse_flags
from trimtab.cluster.cluster_state import Inventory, snapshot_inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node_groups import NodeGroups, assign_node_groups
from trimtab.cluster.several_autoscalers import read_statuses
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.cluster.yaml_documents import Document
from trimtab.inputs import live_cluster
from trimtab.inputs.autoscaler_status import find_autoscaler_arguments
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.plan_inputs import parse_autoscaler_flags, parse_documents
from trimtab.machines.prices import PriceFile
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series

CONSTANT_SECONDS = 2 * 3600
"""The seconds for which the pods of a single snapshot are replayed: longer than every unneeded time that is
compared."""
_UNNEEDED_FLAG, _DELAY_FLAG = f.UNNEEDED_TIME.name, f.DELAY_AFTER_ADD.name
_DISCOVERY_FLAG = "node-group-auto-discovery"
_MAX_NAMES = 3
"""The largest number of autoscalers that a note names."""
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_TIME = re.compile(rb'"(?:lastScaleTime|lastTransitionTime|creationTimestamp|renewTime|startTime)":"([^"]{20,30})"')


@dataclass(frozen=True, slots=True)
class ClusterHistory:
    """The history to replay, the present flags of the cluster, and notes for the reader of a report."""

    history: NodeHistory
    present: ScaleDownFlags
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _TimedInventory:
    at: Seconds
    inventory: Inventory


def read_cluster_history(
    cluster: live_cluster.ClusterOptions,
    earlier: Sequence[str],
    series: Sequence[Series],
    prices: PriceFile,
    flags_text: str,
    *,
    step_seconds: int,
    min_nodes: int,
    provision_seconds: int,
) -> ClusterHistory:
    """Returns the history of --cluster, the earlier snapshots and the usage. Raises UsageError with every mistake, and
    RuntimeFailure if a live cluster cannot be read."""
    documents, mistakes = parse_documents(live_cluster.read_live_objects(cluster))
    if not cluster.paths:
        mistakes.append(ConfigError(file="command line", expected="--cluster SNAPSHOT or --cluster live", got="none"))
    now, now_mistakes = _read_inventory(documents, prices)
    mistakes += now_mistakes
    snapshots = [now]
    for content in live_cluster.read_paths(earlier):
        earlier_documents, earlier_mistakes = parse_documents([content])
        one, inventory_mistakes = _read_inventory(earlier_documents, prices)
        mistakes += [*earlier_mistakes, *inventory_mistakes]
        snapshots.append(one)
    configured, flag_mistakes = parse_autoscaler_flags(flags_text)
    mistakes += flag_mistakes
    if len(configured) > 1:
        expected = "the flags of one autoscaler: the replay has one set of flags"
        mistakes.append(
            ConfigError(file="--autoscaler-flags", expected=expected, got=f"those of {len(configured)} autoscalers")
        )
    processes = configured or _distinct_processes(find_autoscaler_arguments(documents))
    arguments = processes[0] if processes else ()
    present, duration_mistakes = read_present_flags(arguments, provision_seconds)
    mistakes += duration_mistakes
    if not mistakes and not now.inventory.nodes:
        mistakes.append(ConfigError(file=", ".join(cluster.paths), expected="a snapshot with nodes", got="none"))
    if mistakes:
        raise UsageError(mistakes)
    snapshots.sort(key=lambda snapshot: snapshot.at)
    moments, notes = _read_moments(snapshots, series, step_seconds)
    rules = read_eviction_rules(autoscaler_from_flags(arguments, None))
    groups, group_notes = _read_groups(snapshots[0].inventory, now.inventory, processes, min_nodes)
    notes += group_notes
    reading = build_history(snapshots[0].inventory, moments, min_nodes, rules, groups)
    if not configured and len(processes) > 1:
        statuses = ["/".join(key_of_process(process)) for process in processes]
        others = join_first(statuses[1:], _MAX_NAMES)
        notes.append(
            f"The snapshot has {len(processes)} cluster autoscalers. The replay has the flags of the one that writes "
            f"the status {statuses[0]}, for all nodes; pass those of another one ({others}) with --autoscaler-flags."
        )
    elif not configured:
        notes.append(
            "The present flags are read from the cluster autoscaler's pod, but a capture contains no command "
            "lines. In that case Trimtab assumes the autoscaler's defaults. Set the flags with "
            "--autoscaler-flags."
        )
    return ClusterHistory(reading.history, present, (*notes, *reading.notes))


def _read_groups(
    inventory: Inventory, now: Inventory, processes: Processes, min_nodes: int
) -> tuple[NodeGroups, list[str]]:
    """Returns the node groups of the first snapshot's nodes, and notes about minimum sizes that are not known.

    The minimums are those of the autoscalers' statuses. Groups that no status has are those of the flag --nodes."""
    status = (
        read_statuses(inventory.config_maps, processes).autoscaler
        or read_statuses(now.config_maps, processes).autoscaler
    )
    reported = status.groups if status is not None else ()
    names = {group.name for group in reported}
    configured = {group.name: group for process in processes for group in groups_from_flags(process)}
    groups = (*reported, *(group for name, group in configured.items() if name not in names))
    assigned = assign_node_groups(inventory.machines, groups)
    notes = [f"{note[0].upper()}{note[1:]}." for note in assigned.notes]
    discovers = any(_DISCOVERY_FLAG in parse_flags(process) for process in processes)
    if not reported and (discovers or not configured) and not min_nodes:
        reason = f"--{_DISCOVERY_FLAG} finds groups in the cloud" if discovers else "no flag --nodes names a group"
        notes.append(
            "The minimum sizes of node groups are not known: the snapshot has no status of the cluster autoscaler, and "
            f"{reason}. The replay keeps no minimum; set one with --min-nodes."
        )
    return assigned, notes


def _distinct_processes(all_arguments: Iterable[Sequence[str]]) -> Processes:
    """Returns the command line of each autoscaler: its Deployment and its pods have the same one."""
    by_status: dict[StatusKey, tuple[str, ...]] = {}
    for arguments in all_arguments:
        by_status.setdefault(key_of_process(arguments), tuple(arguments))
    return tuple(by_status.values())


def _read_inventory(documents: list[Document], prices: PriceFile) -> tuple[_TimedInventory, list[ConfigError]]:
    built = build_snapshot(documents)
    inventory = snapshot_inventory(built.snapshot)
    nodes = tuple(replace(node, price=prices.price_of(node)) for node in inventory.nodes)
    return _TimedInventory(_snapshot_time(documents), replace(inventory, nodes=nodes)), list(built.mistakes)


def _snapshot_time(documents: Iterable[Document]) -> Seconds:
    """Returns the newest time in the objects, which is about when the snapshot was made; 0 if no object has a time."""
    times = (
        parse_timestamp(match[1].decode())
        for document in documents
        for match in _TIME.finditer(
            bytes(document.text) if document.text is not None else msgspec.json.encode(document.value)
        )
    )
    return max((at for at in times if at is not None), default=0)


def _read_moments(
    snapshots: Sequence[_TimedInventory], series: Sequence[Series], step_seconds: int
) -> tuple[Sequence[tuple[Seconds, Mapping[str, int]]], list[str]]:
    """Returns the number of pods of each workload at each time, and notes on the source of these numbers.

    Each item is (time in seconds, workload → number of pods); the items are in order of time."""
    lives = read_lives(series, snapshots)
    if lives:
        names = format_count(len(lives), "workload")
        note = (
            f"The number of pods over time is read from the usage of {names}; for the other workloads Trimtab "
            "assumes the present number of pods."
        )
        return count_lives(lives, step_seconds), [note]
    notes = ["No usage series names its pod, so the number of pods over time is not known."] if series else []
    if len(snapshots) > 1:
        return hold_moments([(one.at, count_pods(one.inventory)) for one in snapshots], step_seconds), notes
    began = snapshots[0].at
    notes.append(
        "The input is one snapshot without usage. The replay runs the present pods unchanged for two hours, so "
        "no removed node is needed again. Pass --usage or --earlier for a realistic replay."
    )
    return hold_moments([(began, {}), (began + CONSTANT_SECONDS, {})], step_seconds), notes


def read_lives(
    series: Iterable[Series], snapshots: Iterable[_TimedInventory]
) -> dict[str, list[tuple[Seconds, Seconds]]]:
    """Returns workload → the times of the first and the last sample of each of its pods; series that name no pod are
    left out."""
    pods = {
        (pod.namespace, pod.name): owner
        for snapshot in snapshots
        for pod in snapshot.inventory.pods
        if (owner := recreating_owner(pod)) is not None
    }
    owners = OwnerIndex(pods, live_pods=lambda: pods.items())
    spans: dict[str, dict[str, tuple[Seconds, Seconds]]] = {}
    for one in series:
        if not one.pod or not one.times:
            continue
        workload = one.workload or str(owners.topmost_owner(one.namespace, one.pod))
        by_pod = spans.setdefault(f"{one.namespace}/{workload}", {})
        first, last = by_pod.get(one.pod, (one.times[0], one.times[-1]))
        by_pod[one.pod] = min(first, one.times[0]), max(last, one.times[-1])
    return {name: list(by_pod.values()) for name, by_pod in spans.items()}


def read_present_flags(arguments: Iterable[str], provision_seconds: int) -> tuple[ScaleDownFlags, list[ConfigError]]:
    """Returns the flags of a running cluster autoscaler, with the default of each flag that is not set, and the
    mistakes in them."""
    flags, mistakes = parse_flags(arguments), []
    durations: dict[str, int] = {}
    for name in (_UNNEEDED_FLAG, _DELAY_FLAG):
        seconds = parse_duration(flags.get(name, "10m"))
        if seconds is None:
            expected, got = f"--{name} as a duration such as 10m", repr(flags[name])
            mistakes.append(ConfigError(file="--autoscaler-flags", expected=expected, got=got))
        durations[name] = seconds or 0
    try:
        threshold = float(flags.get(THRESHOLD_FLAG, "0.5"))
    except ValueError:
        threshold = 0.5
        expected, got = f"--{THRESHOLD_FLAG} as a number such as 0.5", repr(flags[THRESHOLD_FLAG])
        mistakes.append(ConfigError(file="--autoscaler-flags", expected=expected, got=got))
    present = ScaleDownFlags(
        threshold=threshold,
        unneeded_seconds=durations[_UNNEEDED_FLAG],
        delay_after_add_seconds=durations[_DELAY_FLAG],
        provision_seconds=provision_seconds,
    )
    return present, mistakes


def parse_duration(text: str) -> int | None:
    """Returns the seconds of a duration such as 1h, 10m or 1m30s, or None if the text is no duration."""
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds
