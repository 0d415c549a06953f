"""Would one pod fit on one node, now? Yes, or the first constraint that says no.

`admits` is the quick answer, `why_not` the same question answered in words; a property test holds them together.
Order of checks: can it be judged, does the node take pods, its nature, resources, ports and anti-affinity,
affinity, spread.

Many pods on many nodes: where would they all go?

Largest first, each to the tightest place (best fit decreasing). For pods that are not there yet: what waits, what
comes back, what is only asked about.
"""

from collections.abc import Iterable, Sequence

from trimtab.cluster import quantity
from trimtab.cluster.reason import Reason
from trimtab.scheduling import node_filters
from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.pod_class import PodAffinityRule, PodClass, SpreadRule
from trimtab.scheduling.reasons import NO_COMPANY, NO_ROOM, NODE_CLOSED, PORT_TAKEN, TOO_CLOSE, UNEVEN
from trimtab.scheduling.topology import TopologyGroup


def admits(room: FreeCapacity, kind: PodClass, node: int) -> bool:
    """Would the scheduler put such a pod on this node, as the room is now?"""
    return (
        kind.unknown is None
        and not room.closed[node]
        and room.world.wheres[kind.where][node] == 1
        and has_room(room, kind, node)
        and (not kind.checked or agrees(room, kind, node))
    )


def has_room(room: FreeCapacity, kind: PodClass, node: int) -> bool:
    """Resources and a slot. A resource that is not asked for cannot lack (noderesources `fitsRequest`)."""
    for number, amount in kind.rest:
        if room.rest[number][node] < amount:
            return False
    return (
        room.slots[node] > 0
        and (kind.major == 0 or room.major[node] >= kind.major)
        and (kind.minor == 0 or room.minor[node] >= kind.minor)
    )


def agrees(room: FreeCapacity, kind: PodClass, node: int) -> bool:
    """Do the other pods agree: ports, anti-affinity both ways, affinity, spread?"""
    counts = room.counts
    for group in kind.bars:
        if group.domain[node] in counts[group.number]:
            return False
    for spread in kind.spreads:
        if not even(room, spread, node):
            return False
    return kind.together is None or in_company(room, kind.together, node)


def in_company(room: FreeCapacity, together: PodAffinityRule, node: int) -> bool:
    """Every key has a matching pod in the node's domain; or there is none at all and the pod is its own company."""
    if any(group.domain[node] < 0 for group in together.groups):
        return False
    if all(group.domain[node] in room.counts[group.number] for group in together.groups):
        return True
    return together.itself and not any(room.counts[group.number] for group in together.others)


def even(room: FreeCapacity, spread: SpreadRule, node: int) -> bool:
    """count in the node's domain + the pod itself - smallest count ≤ maxSkew (podtopologyspread `Filter`).

    A node in no domain lacks the key, or something else keeps the pod off it anyway.
    """
    domain = spread.group.domain[node]
    if domain < 0:
        return False
    count, least = standing(room, spread, domain)
    return count + spread.own - least <= spread.skew


def standing(room: FreeCapacity, spread: SpreadRule, domain: int) -> tuple[int, int]:
    """(pods counted in the domain, the smallest count of any domain)."""
    group = spread.group
    if group.per_node:
        by_domain = _honest(room, group)
        least = 0 if len(by_domain) < spread.fewest else min(by_domain.values(), default=0)
        return by_domain.get(domain, 0), least
    return room.counts[group.number].get(domain, 0), least_count(room, spread)


def least_count(room: FreeCapacity, spread: SpreadRule) -> int:
    group = spread.group
    if group.per_node:
        by_domain = _honest(room, group)
        return 0 if len(by_domain) < spread.fewest else min(by_domain.values(), default=0)
    counts = room.counts[group.number]
    if spread.domains < spread.fewest or len(counts) < spread.domains:
        return 0
    return min(counts.values(), default=0)


def _honest(room: FreeCapacity, group: TopologyGroup) -> dict[int, int]:
    """Domain → count without nodes that are being emptied: for who honours taints they are no domain."""
    found: dict[int, int] = {}
    counts = room.counts[group.number]
    for node, domain in enumerate(group.domain):
        if domain >= 0 and node not in room.leaving:
            found[domain] = found.get(domain, 0) + counts.get(node, 0)
    return found


def why_not(room: FreeCapacity, kind: PodClass, node: int) -> Reason | None:
    """The first reason against; None when it fits."""
    world, name = room.world, room.world.nodes[node].name
    if kind.unknown is not None:
        return kind.unknown
    if node in room.leaving:
        return NODE_CLOSED(f"node {name} is being emptied")
    if room.closed[node]:
        return NODE_CLOSED(f"node {name} {_closed(room, node)}")
    objection = node_filters.objection(kind.ask, kind.volumes, world.nodes[node])
    if objection is not None:
        return objection
    return (
        _short(room, kind, node) or _barred(room, kind, node) or _company(room, kind, node) or _skewed(room, kind, node)
    )


def _closed(room: FreeCapacity, node: int) -> str:
    if node in room.world.doubtful:
        return f"cannot be understood: {room.world.doubtful[node]}"
    if room.world.nodes[node].cordoned:
        return "is cordoned"
    if room.world.nodes[node].going is not None:
        return "is being deleted"
    return "takes no pods here" if room.world.nodes[node].ready else "is not ready"


def _short(room: FreeCapacity, kind: PodClass, node: int) -> Reason | None:
    name = room.world.nodes[node].name
    if room.slots[node] <= 0:
        return NO_ROOM(f"node {name} has no pod slot left")
    names = (*room.world.resources, *room.world.names)
    wanted = dict(enumerate((kind.major, kind.minor))) | {2 + number: amount for number, amount in kind.rest}
    free = (room.major, room.minor, *room.rest)
    for number, amount in sorted(wanted.items(), key=lambda item: names[item[0]]):
        if amount and free[number][node] < amount:
            resource, left = names[number], max(0, free[number][node])
            return NO_ROOM(
                f"node {name} has {quantity.format_quantity(resource, left)} of {resource} free; "
                f"the pod asks for {quantity.format_quantity(resource, amount)}"
            )
    return None


def _barred(room: FreeCapacity, kind: PodClass, node: int) -> Reason | None:
    name = room.world.nodes[node].name
    for group in kind.bars:
        if group.domain[node] in room.counts[group.number]:
            if group.key == "":
                return PORT_TAKEN(f"a host port of the pod is taken on node {name}")
            whose = "the pod's" if group.terms else "another pod's"
            return TOO_CLOSE(f"{whose} required anti-affinity on {group.key} keeps it off node {name}")
    return None


def _company(room: FreeCapacity, kind: PodClass, node: int) -> Reason | None:
    if kind.together is None or in_company(room, kind.together, node):
        return None
    keys = ", ".join(sorted({group.key for group in kind.together.groups}))
    return NO_COMPANY(f"no pod that its affinity asks for is near node {room.world.nodes[node].name} (by {keys})")


def _skewed(room: FreeCapacity, kind: PodClass, node: int) -> Reason | None:
    name = room.world.nodes[node].name
    for spread in kind.spreads:
        if not even(room, spread, node):
            domain = spread.group.domain[node]
            if domain < 0:
                return UNEVEN(f"node {name} has no label {spread.group.key}, which the pod is spread over")
            count, least = standing(room, spread, domain)
            return UNEVEN(
                f"with it, {spread.group.key} of node {name} would hold {count + spread.own} pods of the kind and "
                f"another {least}: more apart than maxSkew {spread.skew}"
            )
    return None


def place(room: FreeCapacity, kinds: Iterable[PodClass], nodes: Sequence[int]) -> list[int | None]:
    """A node for each kind, in the order given; None for what found none. Places found are taken in the room."""
    kinds = list(kinds)
    found: list[int | None] = [None] * len(kinds)
    for number in sorted(range(len(kinds)), key=lambda n: (-kinds[n].major, -kinds[n].minor, n)):
        best, free = None, 1 << 62
        for node in nodes:
            if room.major[node] < free and admits(room, kinds[number], node):
                best, free = node, room.major[node]
        if best is not None:
            room.take(kinds[number], best)
            found[number] = best
    return found
