"""The options that the machines verbs share, and what is read for them: nodes of a pool, prices, candidates."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from trimtab.cluster.cluster_autoscaler import STATUS_NAME, Autoscaler
from trimtab.cluster.cluster_state import Inventory, snapshot_inventory
from trimtab.cluster.config_error import ConfigError, first_mistakes, suggest_name
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, REGION_LABEL, NodeInfo
from trimtab.cluster.pool import pool_name
from trimtab.cluster.several_autoscalers import read_statuses
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.inputs import flags, live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.option import option
from trimtab.inputs.plan_inputs import find_snapshot_mistakes, list_snapshot_notes, parse_documents
from trimtab.inputs.price_sources import read_price_sources
from trimtab.machines.machine_types import MachineType, Use, machine_types
from trimtab.machines.prices import listed_region, price_table, regions_with_list_prices
from trimtab.reservations.profile import Profile
from trimtab.reservations.read_profile import shipped_profiles
from trimtab.sizing.ranking.candidates import DEFAULT_MAX_PODS, DEFAULT_PROFILES, OTHER_PROFILE, Performance


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """The options that select the nodes of one pool, or all nodes, of a cluster."""

    cluster: live_cluster.ClusterOptions = field(default_factory=live_cluster.ClusterOptions)
    pool: Annotated[str | None, flags.POOL] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedNodes:
    """A snapshot, and the nodes of the pool that the command line names."""

    inventory: Inventory
    nodes: tuple[NodeInfo, ...]
    pool: str
    """The name of the pool; empty for all nodes."""
    notes: tuple[str, ...]
    documents: tuple[Document, ...] = ()
    cluster: live_cluster.ClusterOptions = field(default_factory=live_cluster.ClusterOptions)


def read_pool_nodes(options: PoolOptions, *, needs_nodes: bool = True) -> SelectedNodes:
    """Read the snapshot and select the nodes of the pool. Raises UsageError with every mistake.

    needs_nodes: a pool without nodes is a mistake.
    """
    cluster, pool = options.cluster, options.pool or ""
    if not cluster.paths:
        expected = "--cluster SNAPSHOT: files of `trimtab capture` or kubectl, or `live`"
        raise UsageError([ConfigError(file="command line", expected=expected, got="none")])
    with without_garbage_collection():
        documents, mistakes = parse_documents(live_cluster.read_live_objects(cluster))
        build = build_snapshot(documents)
        inventory = snapshot_inventory(build.snapshot)
    mistakes += build.mistakes
    mistakes += () if mistakes else find_snapshot_mistakes(inventory, cluster.paths)
    nodes = tuple(node for node in inventory.machines if pool in ("", pool_name(node)))
    if not mistakes and not nodes and needs_nodes:
        no_machines = ConfigError(file="--cluster", expected="a node that is a machine", got="only serverless nodes")
        mistakes.append(report_unknown_pool(inventory, pool) if inventory.machines else no_machines)
    if mistakes:
        raise UsageError(first_mistakes(mistakes))
    is_whole = live_cluster.LIVE in cluster.paths or build.snapshot.is_capture
    notes = tuple(list_snapshot_notes(inventory, is_whole=is_whole))
    return SelectedNodes(
        inventory=inventory, nodes=nodes, pool=pool, notes=notes, documents=tuple(documents), cluster=cluster
    )


def add_node_prices(pool_nodes: SelectedNodes, price_paths: Sequence[str]) -> SelectedNodes:
    """Returns the same nodes with their prices in price files. Raises UsageError with every mistake of the files."""
    if not price_paths:
        return pool_nodes
    prices, mistakes = read_price_sources(price_paths)
    if mistakes:
        raise UsageError(mistakes)
    inventory = pool_nodes.inventory
    nodes = tuple(replace(node, price=prices.price_of(node)) for node in inventory.nodes)
    names = {node.name for node in pool_nodes.nodes}
    return replace(
        pool_nodes,
        inventory=replace(inventory, nodes=nodes),
        nodes=tuple(node for node in nodes if node.name in names),
    )


def find_autoscaler(pool_nodes: SelectedNodes) -> Autoscaler | None:
    """Returns the cluster autoscaler's status in the snapshot, or None if there is none that can be read."""
    try:
        return read_autoscaler_status(pool_nodes)
    except UsageError:
        return None


def read_autoscaler_status(pool_nodes: SelectedNodes) -> Autoscaler:
    """Returns the cluster autoscaler's status in the snapshot. Raises UsageError if there is none that can be read."""
    reading = read_statuses(pool_nodes.inventory.config_maps, ())
    if reading.autoscaler is None:
        raise UsageError(
            [
                ConfigError(
                    file="--cluster",
                    expected=f"the cluster autoscaler's status, such as ConfigMap {STATUS_NAME}",
                    got=str(reading.unreadable[0]) if reading.unreadable else "none",
                    todo="add configmaps -n kube-system to the snapshot",
                )
            ]
        )
    return reading.autoscaler


def report_unknown_pool(inventory: Inventory, pool: str) -> ConfigError:
    """Returns the mistake that the pool has no nodes, with the names of the pools that have nodes."""
    pool_names = sorted({pool_name(node) for node in inventory.machines} - {""})
    todo = suggest_name(pool, pool_names)
    return ConfigError(file="--pool", expected=f"a pool of {', '.join(pool_names) or 'none'}", got=pool, todo=todo)


def _compile_names(names: str | None) -> re.Pattern[str] | None:
    if not names:
        return None
    try:
        pattern = re.compile(names)
    except re.error as error:
        raise UsageError([ConfigError(file="--types", expected="a regular expression", got=str(error))]) from None
    if not any(map(pattern.fullmatch, machine_types())):
        todo = suggest_name(names, machine_types())
        raise UsageError([ConfigError(file="--types", expected="the name of a machine type", got=names, todo=todo)])
    return pattern


REGION = option("--region", metavar="REGION", help="The region of the prices. Default: the region label of the nodes.")
TYPES = option(
    "--types",
    metavar="REGEX",
    convert=_compile_names,
    help="Include only types whose whole name matches this expression.",
)
ARCH = option("--arch", help="Allow this architecture. Default: those on which the pods run.")
INCLUDE = option("--include", help="Also rank machine types for this special use.")
RESERVED = option(
    "--reserved",
    metavar="PROFILE",
    help="The reservation profile, a formula for the resources reserved for the kubelet. Default: eks, aks-1.29 or "
    "gke, by the cloud of the machine type.",
)
POD_LIMITS = option(
    "--pod-limits", help="What limits the pods of a node: the kubelet alone, or AWS network interfaces as well."
)
PERFORMANCE = option(
    "--performance",
    help="How the speed of a core (CoreMark) changes the ranking, if it is known for the types of all present nodes.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeOptions:
    """The options that select the candidate machine types, and how their capacity is computed."""

    region: Annotated[str | None, REGION] = None
    names: Annotated[re.Pattern[str] | None, TYPES] = None
    architectures: Annotated[tuple[Literal["amd64", "arm64"], ...], ARCH] = ()
    special_uses: Annotated[tuple[Literal["accelerated", "burstable", "hpc"], ...], INCLUDE] = ()
    price_paths: Annotated[tuple[str, ...], flags.PRICES] = ()
    profile: Annotated[str | None, RESERVED] = None
    max_pods: Annotated[int, flags.MAX_PODS] = DEFAULT_MAX_PODS
    pod_limits: Annotated[Literal["kubelet", "eni"], POD_LIMITS] = "kubelet"
    performance: Annotated[Performance, PERFORMANCE] = Performance.CLAMPED

    @property
    def uses(self) -> frozenset[Use]:
        """The uses of the types that are ranked."""
        return frozenset({Use.GENERAL, *map(Use, self.special_uses)})

    @property
    def uses_interface_limits(self) -> bool:
        """Whether the network interfaces of AWS limit the number of pods, too."""
        return self.pod_limits == "eni"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedTypes:
    """Machine types with their prices in one region."""

    types: tuple[MachineType, ...]
    prices: dict[str, int]
    """Type → micro-dollars an hour for one node on demand."""
    region: str
    profiles: dict[str, Profile]
    """Cloud → the profile of its reserved resources; the empty key is for all other clouds."""
    spot_prices: dict[str, int] = field(default_factory=dict)
    """Type → micro-dollars an hour for one spot node, for types of which a price file has it."""
    notes: tuple[str, ...] = ()
    """What is guessed about the region of the prices."""


def _note_regions(region: str, listed_regions: Sequence[str], regions: Collection[str]) -> tuple[str, ...]:
    """Returns the sentences about list prices that are not for the region of the nodes. `regions`: all regions of the
    nodes, if the command line names none."""
    notes = []
    if len(regions) > 1:
        notes.append(f"the nodes are in {' and '.join(sorted(regions))}; the prices are for {region}, where most are")
    if listed_regions and region not in listed_regions:
        known = " and ".join(listed_regions)
        what = f"Trimtab has no list prices for {region}" if region else "no node has a region label"
        notes.append(f"{what}, so the list prices of {known} count; they are a guess (pass yours with --prices)")
    return tuple(notes)


def read_priced_types(pool_nodes: SelectedNodes, options: TypeOptions) -> PricedTypes:
    """Read price files and profiles, and select the types with a price in the region.

    Raises UsageError with every mistake: an unknown profile, an invalid price file. A region without list prices gets
    those of its cloud's known region.
    """
    merged, mistakes = read_price_sources(options.price_paths)
    profiles = shipped_profiles()
    if options.profile and options.profile not in profiles:
        mistakes.append(ConfigError(file="--reserved", expected=", ".join(sorted(profiles)), got=options.profile))
    regions = Counter(node.labels.get(REGION_LABEL, "") for node in pool_nodes.nodes)
    del regions[""]
    region = options.region or min(regions, key=lambda name: (-regions[name], name), default="")
    kinds = [node.labels.get(INSTANCE_TYPE_LABEL, "") for node in pool_nodes.nodes]
    own_prices = {name: amount for (where, name), amount in merged.list_types.items() if where in (region.lower(), "")}
    # Own prices beside list prices of another region would rank types by the difference of the regions.
    listed_regions = regions_with_list_prices(region, kinds)
    listed_regions = () if own_prices and region not in listed_regions else listed_regions
    prices = {name: amount for name, amount in price_table().items() if listed_region(name) in listed_regions}
    prices |= own_prices
    if mistakes:
        raise UsageError(mistakes)
    clouds = DEFAULT_PROFILES | {"": OTHER_PROFILE}
    table = machine_types()
    return PricedTypes(
        types=tuple(table[name] for name in sorted(prices) if name in table),
        prices=prices,
        spot_prices={
            name: amount for (where, name), amount in merged.spot_types.items() if where in (region.lower(), "")
        },
        region=region,
        notes=_note_regions(region, listed_regions, regions if not options.region else ()),
        profiles={cloud: profiles[options.profile or name] for cloud, name in clouds.items()},
    )
