"""Several cluster autoscalers in one cluster: their statuses as one value, and the autoscalers that look after a pool
or a node.

Each autoscaler writes a status ConfigMap of its own (`--status-config-map-name`) and has flags of its own. A ConfigMap
is such a status if the text under its key `status` has the form of one, whatever its name and namespace are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.autoscaler_processes import Processes, StatusKey, arguments_of_status, key_of_process
from trimtab.cluster.cluster_autoscaler import (
    IDLE_STATES,
    STATUS_NAME,
    STATUS_NAMESPACE,
    UPDATED_ANNOTATION,
    Autoscaler,
    NodeGroupStatus,
    autoscaler_from_flags,
    is_group_of_pool,
    parse_status,
    with_options,
)
from trimtab.cluster.node import NodeInfo, group_of
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap

DEFAULT_KEY: StatusKey = (STATUS_NAMESPACE, STATUS_NAME)


@dataclass(frozen=True, slots=True)
class StatusReading:
    """The autoscalers whose statuses were read, and what could not be read or matched."""

    autoscaler: Autoscaler | None
    """All autoscalers as one value, or None if there is no readable status."""
    unreadable: tuple[Unreadable, ...] = ()
    """The statuses that cannot be parsed."""
    without_flags: tuple[str, ...] = ()
    """The status ConfigMaps whose autoscaler's flags are not known."""


def read_statuses(
    maps: Iterable[ConfigMap], processes: Iterable[Sequence[str]], configured: Processes = ()
) -> StatusReading:
    """Returns the autoscalers whose statuses are among these ConfigMaps.

    `processes`: the arguments of each autoscaler's process; an autoscaler gets the arguments that name its status
    ConfigMap. `configured`: arguments that a user set, which replace those of the processes.
    """
    by_key = _arguments_by_key(processes)
    parsed: dict[StatusKey, Autoscaler] = {}
    unreadable, without_flags = [], []
    candidates = sorted(
        (one for one in maps if "status" in one.data or _key_of(one) == DEFAULT_KEY),
        key=lambda one: (_key_of(one) != DEFAULT_KEY, _key_of(one)),
    )
    for config_map in candidates:
        key = _key_of(config_map)
        arguments = arguments_of_status(configured, key) or by_key.get(key)
        updated = value_or(config_map.metadata.annotations, {}).get(UPDATED_ANNOTATION, "")
        status = parse_status(config_map.data.get("status", ""), updated, arguments or ())
        if isinstance(status, Autoscaler):
            parsed[key] = replace(status, name="/".join(key))
            without_flags += [] if arguments is not None else [key]
        elif config_map.metadata.name == STATUS_NAME or key in by_key:
            unreadable.append(status)
    if len(parsed) == 1 and without_flags and len(by_key) == 1:
        # A single status and a single process belong together, even if the process does not name the status.
        (key, alone), arguments = next(iter(parsed.items())), next(iter(by_key.values()))
        config_map = next(one for one in candidates if _key_of(one) == key)
        updated = value_or(config_map.metadata.annotations, {}).get(UPDATED_ANNOTATION, "")
        status = parse_status(config_map.data["status"], updated, arguments)
        parsed[key] = replace(status, name=alone.name) if isinstance(status, Autoscaler) else alone
        without_flags = []
    return StatusReading(
        join_autoscalers(tuple(parsed.values())), tuple(unreadable), tuple("/".join(key) for key in without_flags)
    )


def _arguments_by_key(processes: Iterable[Sequence[str]]) -> dict[StatusKey, Sequence[str]]:
    """Returns the key of a status → the arguments of the process that writes it."""
    arguments_by_key: dict[StatusKey, Sequence[str]] = {}
    for arguments in processes:
        arguments_by_key.setdefault(key_of_process(arguments), arguments)
    return arguments_by_key


def _key_of(config_map: ConfigMap) -> StatusKey:
    return config_map.metadata.namespace, config_map.metadata.name


def join_autoscalers(members: Sequence[Autoscaler]) -> Autoscaler | None:
    """Returns these autoscalers as one value, or None if there is none. What the members say differently is answered by
    the more careful one: all must be healthy and remove nodes, and a node must be under every threshold."""
    if len(members) < 2:
        return members[0] if members else None
    groups: dict[str, NodeGroupStatus] = {}
    for member in members:
        for group in member.groups:
            groups[group.name] = _join_groups(groups[group.name], group) if group.name in groups else group
    times = [member.updated for member in members]
    return Autoscaler(
        name=" and ".join(member.name for member in members),
        healthy=all(member.healthy for member in members),
        scale_up=next((member.scale_up for member in members if member.scale_up not in IDLE_STATES), ""),
        groups=tuple(groups.values()),
        updated=None if None in times else min(time for time in times if time is not None),
        threshold=min(member.threshold for member in members),
        gpu_threshold=min(member.gpu_threshold for member in members),
        scale_down=all(member.scale_down for member in members),
        restarting=any(member.restarting for member in members),
        flags=dict(
            flag for flag in members[0].flags.items() if all(flag in member.flags.items() for member in members[1:])
        ),
        members=tuple(members),
    )


def _join_groups(first: NodeGroupStatus, second: NodeGroupStatus) -> NodeGroupStatus:
    """Returns the careful reading of a group that two autoscalers report."""
    busy = next((group.scale_up for group in (first, second) if group.scale_up not in IDLE_STATES), first.scale_up)
    targets = [size for size in (first.target, second.target) if size is not None]
    minimums = [size for size in (first.min_size, second.min_size) if size is not None]
    return replace(
        first,
        healthy=first.healthy and second.healthy,
        scale_up=busy,
        target=min(targets, default=None),
        min_size=max(minimums, default=None),
        candidates=min(first.candidates, second.candidates),
    )


def contested_groups(autoscaler: Autoscaler) -> dict[str, tuple[str, ...]]:
    """Returns node group → the status ConfigMaps that report it, for groups that several autoscalers report."""
    reporters: dict[str, list[str]] = {}
    for member in autoscaler.members:
        for name in dict.fromkeys(group.name for group in member.groups):
            reporters.setdefault(name, []).append(member.name)
    return {group: tuple(names) for group, names in reporters.items() if len(names) > 1}


def autoscaler_of_pool(autoscaler: Autoscaler, pool: str, nodes: Iterable[NodeInfo]) -> Autoscaler:
    """Returns the autoscaler, or those autoscalers as one value, that look after the nodes of a pool.

    They are found by the groups of the nodes and by the groups that the pool's name names. If a node's group is not
    known, and the pool's name names none, the node may belong to any of them, and all of them are returned."""
    if len(autoscaler.members) < 2:
        return autoscaler
    names = {group.name for group in autoscaler.groups if is_group_of_pool(group, pool)} if pool else set()
    is_named = bool(names)
    for node in nodes:
        group = group_of(node, autoscaler.groups)
        if group is None and not is_named:
            return autoscaler
        if group is not None:
            names.add(group.name)
    members = [member for member in autoscaler.members if any(group.name in names for group in member.groups)]
    return join_autoscalers(members) or autoscaler


def highest_threshold(
    autoscaler: Autoscaler, pool: str, nodes: Iterable[NodeInfo], group_options: Mapping[str, str]
) -> int:
    """Returns the largest threshold, in percent, under which an autoscaler of the pool removes nodes. `group_options`:
    the options of the pool's node groups, which replace the flags."""
    members = autoscaler_of_pool(autoscaler, pool, nodes).each
    return max(with_options(member, group_options).threshold for member in members)


def with_process_flags(autoscaler: Autoscaler, processes: Processes) -> Autoscaler:
    """Returns the autoscaler with the flags of the process that writes its status, of several ones each with its own.
    One whose process is not among them has the default of each flag."""
    members = []
    for member in autoscaler.each:
        namespace, _, name = member.name.rpartition("/")
        arguments = arguments_of_status(processes, (namespace, name) if namespace else DEFAULT_KEY)
        own = autoscaler_from_flags(arguments or (), member.updated)
        members.append(
            replace(
                member,
                flags=own.flags,
                threshold=own.threshold,
                gpu_threshold=own.gpu_threshold,
                scale_down=own.scale_down,
            )
        )
    return join_autoscalers(members) or autoscaler


def autoscaler_of_node(autoscaler: Autoscaler, node: NodeInfo, pool: str = "") -> Autoscaler:
    """Returns the autoscaler, or those autoscalers as one value, that look after the node."""
    if len(autoscaler.members) < 2:
        return autoscaler
    group = group_of(node, autoscaler.groups)
    return autoscaler_of_pool(autoscaler, "" if group is not None else pool, (node,))
