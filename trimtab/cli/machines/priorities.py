"""`trimtab machines priorities`: derives the cluster autoscaler's priority map from the ranking, and prints, applies or
undoes it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from trimtab.cli import output
from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cli.reports.machine_ranking import build_ranking
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import join_first
from trimtab.cluster.node import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, group_of
from trimtab.cluster.pool import pool_name
from trimtab.cluster.timestamps import Seconds
from trimtab.inputs import flags, live_cluster
from trimtab.inputs import machine_types as inputs
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.machine_types import (
    PoolOptions,
    SelectedNodes,
    TypeOptions,
    read_autoscaler_status,
    read_pool_nodes,
)
from trimtab.inputs.option import option
from trimtab.machines.expander_map import (
    MAP_KEY,
    MAP_NAME,
    ExpanderMap,
    demote_groups,
    format_priorities,
    parse_expander_map,
)
from trimtab.machines.prices import is_spot
from trimtab.runtime import clock
from trimtab.sizing.ranking.demotion import (
    BASE_ANNOTATION,
    DEMOTIONS_ANNOTATION,
    MANAGED_ANNOTATION,
    find_out_of_stock,
    record_demotions,
)
from trimtab.sizing.ranking.priorities import GroupPriorities, order_tiers, rate_groups
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules

if TYPE_CHECKING:
    from trimtab.kube.client import Client

PREVIOUS_ANNOTATION = "trimtab.dev/previous-priorities"
"""The annotation that stores the data of the map that Trimtab's map replaced, as JSON; null if there was no map
before."""
GARDENER_LABEL = "worker.gardener.cloud/pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesPrioritiesOptions:
    """The options of `trimtab machines priorities`."""

    nodes: PoolOptions
    types: TypeOptions
    group_types: Annotated[
        tuple[str, ...],
        option("--group", metavar="GROUP=TYPE", help="The machine type of a node group that has no node at present."),
    ] = ()
    legacy: Annotated[
        tuple[str, ...],
        option(
            "--legacy", metavar="GROUP", help="A node group that should get no more nodes. You can repeat the option."
        ),
    ] = ()
    form: Annotated[
        Literal["configmap", "nodeoverlay", "computeclass", "gardener"],
        option(
            "--as",
            help="The map of the autoscaler, Karpenter NodeOverlays, a GKE ComputeClass, or priorities of Gardener's "
            "workers.",
        ),
    ] = "configmap"
    namespace: Annotated[
        str,
        option(
            "--autoscaler-namespace",
            metavar="NAME",
            former=("-n", "--namespace"),
            help="The namespace of the cluster autoscaler.",
        ),
    ] = "kube-system"
    applies: Annotated[
        bool, flags.APPLY.with_help("Write the map to the cluster. Trimtab keeps the previous map for --undo.")
    ] = False
    takes_over: Annotated[
        bool, flags.TAKE_OVER.with_help("With --apply: also replace a map that another client wrote.")
    ] = False
    undoes: Annotated[bool, flags.UNDO.with_help("Restore the map that --apply replaced, or delete the new one.")] = (
        False
    )
    output_file: Annotated[str | None, output.OUTPUT_FILE] = None


@click.command("priorities")
@takes(MachinesPrioritiesOptions)
def verb(options: MachinesPrioritiesOptions) -> None:
    """Print the cluster autoscaler's priority map: the groups of the best machine types first, legacy groups last.

    Every group has its own exact, escaped pattern; a catch-all keeps all other groups usable. The map is checked by
    replaying the autoscaler's rules on its node groups. Groups whose last scale-up failed get a low priority. The
    autoscaler must run with --expander=priority, preferably followed by another expander, as in priority,least-waste.
    """
    pool_nodes, types, form = read_pool_nodes(options.nodes), options.types, options.form
    if options.undoes:
        with live_cluster.connect_live(pool_nodes.cluster) as client:
            print_text(undo_map(client, options.namespace))
        return
    priced = inputs.read_priced_types(pool_nodes, types)
    for note in priced.notes:
        print_text(f"Note: {note}", err=True)
    ranking = build_ranking(pool_nodes, types, priced, RankingRules())
    if form in ("nodeoverlay", "computeclass"):
        documents = render_overlays(ranking) if form == "nodeoverlay" else [render_compute_class(ranking)]
        output.write_text(output.format_manifests(documents), options.output_file)
        return
    rated = _rate_groups(pool_nodes, ranking, priced.spot_prices, options)
    is_gardener = any(GARDENER_LABEL in node.labels for node in pool_nodes.inventory.nodes)
    if form == "gardener" or (is_gardener and not options.applies):
        output.write_text(output.format_manifests([render_workers(rated, pool_nodes)]), options.output_file)
        _note_groups(rated.unnamed)
        return
    if options.applies and is_gardener:
        raise UsageError(
            [
                ConfigError(
                    file="--apply",
                    expected="the priority map of a cluster autoscaler, written by no other client",
                    got="a cluster of Gardener, which generates the map itself",
                    todo="set the priorities that --as gardener prints in the Shoot",
                )
            ]
        )
    if rated.problems:
        raise RuntimeFailure(
            "\n".join(["The map would not have the intended effect, so Trimtab did not write it.", *rated.problems])
        )
    demotions = find_out_of_stock(read_autoscaler_status(pool_nodes).groups, {}, int(clock.utc_now().timestamp()))
    manifest = render_map(rated.text, demotions, options.namespace)
    if not options.applies:
        output.write_text(output.format_manifests([manifest]), options.output_file)
    else:
        with live_cluster.connect_live(pool_nodes.cluster) as client:
            print_text(apply_map(client, manifest, options.takes_over))
    _note_groups(rated.unnamed)


def _note_groups(names: Iterable[str]) -> None:
    for name in names:
        print_text(
            f"Note: node group {name} gets the lowest priority, because its machine type is not known or not "
            "ranked (set the type with --group)",
            err=True,
        )


def _rate_groups(
    pool_nodes: SelectedNodes, ranking: Ranking, spot_prices: Mapping[str, int], options: MachinesPrioritiesOptions
) -> GroupPriorities:
    group_types, legacy = options.group_types, options.legacy
    autoscaler = read_autoscaler_status(pool_nodes)
    nodes = pool_nodes.inventory.nodes
    grouped = [(group.name, node) for node in nodes if (group := group_of(node, autoscaler.groups)) is not None]
    types = {name: node.labels[INSTANCE_TYPE_LABEL] for name, node in grouped if INSTANCE_TYPE_LABEL in node.labels}
    on_demand = {name for name, node in grouped if not is_spot(node)}
    mistakes = []
    for text in group_types:
        group_name, _, kind = text.partition("=")
        if not kind:
            mistakes.append(ConfigError(file="--group", expected="GROUP=TYPE", got=text))
        types[group_name] = kind
    group_names = {group.name for group in autoscaler.groups}
    mistakes += [
        ConfigError(file=option, expected=f"a node group of {', '.join(sorted(group_names)) or 'none'}", got=name)
        for option, names in (("--legacy", legacy), ("--group", [text.partition("=")[0] for text in group_types]))
        for name in names
        if name not in group_names
    ]
    if mistakes:
        raise UsageError(mistakes)
    spot = {name for name, _ in grouped} - on_demand
    return rate_groups(ranking, types, group_names, legacy, spot, spot_prices)


def render_map(base: str, demotions: Mapping[str, Seconds], namespace: str) -> dict[str, Any]:
    """Returns the ConfigMap in which the node groups of `demotions` have a low priority.

    Its annotations store what the recommender needs to give these groups their former priority again."""
    parsed = parse_expander_map(base)
    assert isinstance(parsed, ExpanderMap)
    text = format_priorities(demote_groups(parsed.texts, demotions))
    annotations = {MANAGED_ANNOTATION: "machines-priorities", **record_demotions(base, demotions)}
    metadata = {"name": MAP_NAME, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {MAP_KEY: text}}


def render_overlays(ranking: Ranking) -> list[dict[str, Any]]:
    """Returns Karpenter NodeOverlays that make Karpenter prefer the machine types in the order of the ranking.

    They set each type's price to the price including the surcharges for this workload. They are only printed, because
    the API is alpha."""
    return [
        {
            "apiVersion": "karpenter.sh/v1alpha1",
            "kind": "NodeOverlay",
            "metadata": {"name": f"trimtab-{score.candidate.name.lower().replace('.', '-').replace('_', '-')}"},
            "spec": {
                "weight": max(1, 100 - number),
                # The price is that on demand: Karpenter knows the present spot price of the type itself.
                "requirements": [
                    {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": [score.candidate.name]},
                    {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": ["on-demand"]},
                ],
                # Surcharges are part of what a node costs this workload.
                "price": f"{score.candidate.price / 1e6 + score.surcharges.total:.6f}",
            },
        }
        for number, score in enumerate(order_tiers(ranking)[:20])
    ]


def render_compute_class(ranking: Ranking) -> dict[str, Any]:
    """Returns a GKE ComputeClass with the types in the order of the ranking; it is only printed."""
    return {
        "apiVersion": "cloud.google.com/v1",
        "kind": "ComputeClass",
        "metadata": {"name": "trimtab"},
        "spec": {
            "priorities": [{"machineType": score.candidate.name} for score in order_tiers(ranking)[:10]],
            "nodePoolAutoCreation": {"enabled": True},
            "whenUnsatisfiable": "ScaleUpAnyway",
        },
    }


def render_workers(rated: GroupPriorities, pool_nodes: SelectedNodes) -> dict[str, Any]:
    """Returns the part of a Gardener Shoot with the priorities of the worker pools.

    The priority of a worker pool is the highest priority of its node groups. Raises UsageError if no node group belongs
    to a pool of the nodes."""
    names = {pool_name(node) for node in pool_nodes.inventory.nodes} - {""}
    pools: dict[str, int] = {}
    for group, priority in rated.priorities.items():
        # MachineDeployments are called NAMESPACE-POOL-zNUMBER; of pools `a` and `web-a` the longer name is meant.
        own = [name for name in names if re.search(rf"-{re.escape(name)}-z\d+$", group)]
        if own:
            pool = max(own, key=len)
            pools[pool] = max(priority, pools.get(pool, 0))
    if not pools:
        expected = "at least one node group that is called NAMESPACE-POOL-zNUMBER, where POOL is a pool of the nodes"
        groups, known = (join_first(sorted(each), 5) or "none" for each in (rated.priorities, names))
        raise UsageError(
            [ConfigError(file="--as gardener", expected=expected, got=f"node groups {groups}; pools {known}")]
        )
    workers = [{"name": name, "priority": priority} for name, priority in sorted(pools.items())]
    return {"spec": {"provider": {"workers": workers}}}


def apply_map(client: "Client", manifest: Mapping[str, Any], taking_over: bool) -> str:
    """Write the map, and return what was done. Raises UsageError if there is a map that Trimtab did not write and
    `taking_over` is not set."""
    from trimtab.kube.objects import Writer, apply, get_plain, replace_plain

    meta = manifest["metadata"]
    writer = Writer(client=client, manager="trimtab-command")
    there = get_plain(client, "ConfigMap", MAP_NAME, meta["namespace"])
    if there is None:
        annotations = {**meta["annotations"], PREVIOUS_ANNOTATION: "null"}
        apply(writer, {**manifest, "metadata": {**meta, "annotations": annotations}})
        return f"created {meta['namespace']}/{MAP_NAME}"
    annotations = there["metadata"].get("annotations") or {}
    is_ours = MANAGED_ANNOTATION in annotations
    if not is_ours and not taking_over:
        raise UsageError(
            [
                ConfigError(
                    file=f"ConfigMap {meta['namespace']}/{MAP_NAME}",
                    expected="a map that Trimtab wrote",
                    got="a map that another client wrote",
                    todo="replace the map with --take-over; --undo restores it",
                )
            ]
        )
    previous = annotations[PREVIOUS_ANNOTATION] if is_ours else json.dumps(there.get("data") or {})
    annotations = {**annotations, **meta["annotations"], PREVIOUS_ANNOTATION: previous}
    changed = {**there, "data": manifest["data"], "metadata": {**there["metadata"], "annotations": annotations}}
    replace_plain(writer, changed)
    return f"{'changed' if is_ours else 'took over'} {meta['namespace']}/{MAP_NAME}"


def undo_map(client: "Client", namespace: str) -> str:
    """Restore the map that Trimtab's map replaced, or delete Trimtab's map; return what was done.

    A map that Trimtab did not write is not changed."""
    from trimtab.kube.objects import Writer, delete, get_plain, replace_plain

    writer = Writer(client=client, manager="trimtab-command")
    there = get_plain(client, "ConfigMap", MAP_NAME, namespace)
    annotations = {} if there is None else there["metadata"].get("annotations") or {}
    if there is None or MANAGED_ANNOTATION not in annotations:
        return f"Trimtab did not write {namespace}/{MAP_NAME}, so nothing was done"
    previous = json.loads(annotations.get(PREVIOUS_ANNOTATION, "null"))
    if previous is None:
        delete(writer, "ConfigMap", MAP_NAME, namespace, uid=there["metadata"]["uid"])
        return f"deleted {namespace}/{MAP_NAME}"
    ours = (MANAGED_ANNOTATION, PREVIOUS_ANNOTATION, BASE_ANNOTATION, DEMOTIONS_ANNOTATION)
    kept = {key: value for key, value in annotations.items() if key not in ours}
    replace_plain(writer, {**there, "data": previous, "metadata": {**there["metadata"], "annotations": kept}})
    return f"restored the previous content of {namespace}/{MAP_NAME}"
