"""What of one recording changes how its replay is to be read."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.cli.replay.recorded_world import RecordedWorld
from trimtab.cluster.config_error import suggest_name
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pool import PoolIndex, pool_name


def list_recording_notes(recorded: RecordedWorld) -> Iterator[str]:
    """Yields a sentence for each, what changes most first; then what is wrong with the recording itself."""
    if recorded.own_drains:
        drained = format_count(recorded.own_drains, "node")
        yield (
            f"Trimtab drained {drained} or more while this was recorded: what was already has that saving, so its "
            "difference from the autoscaler alone is not only an error"
        )
    of_karpenter = [node for node in recorded.nodes if node.nature.sign_of(NodeKind.KARPENTER)]
    if of_karpenter:
        yield (
            f"Karpenter has {len(of_karpenter)} of {format_count(len(recorded.nodes), 'node')}: Trimtab drains none of "
            "them, and the replay adds and removes them by the rules of the cluster autoscaler, which replaces no node "
            "by a cheaper one"
        )
    if recorded.has_no_autoscaler:
        yield (
            "no autoscaler added or removed a node while this was recorded: if the cluster has none, nodes that "
            "Trimtab empties stay, and nothing is saved"
        )
    unpriced = sorted(group for group, price in recorded.world.prices.items() if not price)
    if unpriced:
        groups = join_first(unpriced, 3)
        yield f"money is left out: the price of the nodes of {groups} is not known; --prices names a file with it"
    elif recorded.guessed_prices:
        yield f"money is a guess: {'; '.join(recorded.guessed_prices)}; --prices names a file with what you pay"
    if recorded.pools:
        yield from _compare_pools(recorded)
    yield from recorded.notes


def _compare_pools(recorded: RecordedWorld) -> Iterator[str]:
    """Yields which configured pools have no node, and which pools of nodes have no settings."""
    index, of_nodes = PoolIndex(recorded.pools), {pool_name(node) for node in recorded.nodes} - {""}
    members = {pool.name for node in recorded.nodes for pool in index.pools_of(node)}
    for pool in recorded.pools:
        if pool.name not in members:
            todo = suggest_name(pool.name, sorted(of_nodes))
            yield f"no node belongs to the configured pool {pool.name}{f'; {todo}' if todo else ''}"
    unset = sorted({pool_name(node) for node in recorded.nodes if not index.pools_of(node)} - {""})
    if unset:
        yield f"as configured, Trimtab leaves these pools alone, which have no settings: {join_first(unset, 5)}"
