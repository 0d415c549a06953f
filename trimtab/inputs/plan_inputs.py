"""The options that `trimtab plan` and `trimtab simulate` share, and the inputs that are read from them.

The inputs are the cluster, its pools, the time of the plan, node prices, the cluster autoscaler's status and flags, and
the observations that a compactor stored in the cluster. All mistakes of all files and options are reported together.
The notes list what a plan assumes because the snapshot does not contain it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.autoscaler_processes import Processes, split_processes
from trimtab.cluster.cluster_autoscaler import wrong_flags
from trimtab.cluster.cluster_state import ASSUMED_REQUESTS, Inventory, snapshot_inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import join_first
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.cluster.pool import Pool, schedulers_of
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.snapshot import Snapshot, build_snapshot
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.plan_types import Observations
from trimtab.compaction.resize.types import ResizeAdvice
from trimtab.compaction.room_forecast import DemandHistory, describe_forecast, forecast_rooms
from trimtab.inputs import flags, live_cluster, pools
from trimtab.inputs.autoscaler_status import read_autoscaler
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.measured_use import read_measured_use
from trimtab.inputs.option import option
from trimtab.inputs.owner_templates import may_differ, owners_of_pods, read_templates
from trimtab.inputs.price_sources import read_price_sources
from trimtab.inputs.readmission import Readmission
from trimtab.machines.prices import PriceFile
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.policy_kind import KIND
from trimtab.runtime import clock
from trimtab.scheduling.cluster_model import Again

__all__ = ["PlanInputs", "parse_documents", "parse_now", "read_inputs"]


POOLS = option(
    "--pools",
    metavar="PATH",
    help="ConfigMaps of pools, or the configuration of an estafette node-compactor. Default: the pools of the "
    "snapshot.",
)
GROUP = option(
    "--group",
    metavar="NAME=TYPE,…",
    help="A node group without a node, for replacements: its machine type, and the labels of its nodes, as in "
    "small=m5.large,zone=eu-west-1a,nodepool=small. You can repeat the option.",
)
PRESET = option(
    "--preset",
    metavar="POOL=PRESET",
    former=("--pool",),
    help="The preset of a pool: careful, balanced or keen. The pool `all` consists of every node.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of a plan, before any file is read."""

    cluster: live_cluster.ClusterOptions
    pool_paths: Annotated[tuple[str, ...], POOLS] = ()
    resize: Annotated[bool, flags.RESIZE] = False
    price_paths: Annotated[tuple[str, ...], flags.PRICES] = ()
    policy_paths: Annotated[
        tuple[str, ...],
        flags.POLICIES.with_help(
            "Policies that change pods when they are created again after an eviction. Default: the PodPolicies of the "
            "snapshot."
        ),
    ] = ()
    overhead: Annotated[
        OverheadWriter,
        flags.OVERHEAD.with_help(
            "The component that writes pod overhead, as for the webhook. The option has an effect only with policies."
        ),
    ] = "server"
    now: Annotated[str | None, flags.NOW] = None
    autoscaler_flags: Annotated[str, flags.AUTOSCALER_FLAGS] = ""
    presets: Annotated[tuple[str, ...], PRESET] = ()
    groups: Annotated[tuple[str, ...], GROUP] = ()

    @property
    def admission_settings(self) -> AdmissionSettings:
        """The admission settings that the webhook runs with."""
        return AdmissionSettings(overhead=self.overhead)


SNAPSHOT_HINT = "kubectl get nodes,pods,pdb,… -A -o json prints such a snapshot"


def find_snapshot_mistakes(inventory: Inventory, paths: Sequence[str]) -> Iterator[ConfigError]:
    """Yields the mistakes of the snapshot as a whole: objects without a name, no node, no pod.

    Objects without a name cannot be distinguished. Without nodes there is nothing to plan; without pods every node
    would seem to be empty. Only a live cluster may have no pods, because its API server has listed them.
    """
    where = ", ".join(paths)
    for kind, objects in (("node", inventory.nodes), ("pod", inventory.pods)):
        if nameless := sum(not shape.name for shape in objects):
            yield ConfigError(file=where, expected=f"a name for every {kind}", got=f"{nameless} without a name")
    if not inventory.nodes:
        yield ConfigError(file=where, expected="a snapshot with nodes", got="none", todo=SNAPSHOT_HINT)
    elif not inventory.pods and live_cluster.LIVE not in paths:
        expected = "a snapshot with pods: without pods, every node would look empty"
        yield ConfigError(file=where, expected=expected, got="none", todo=SNAPSHOT_HINT)


def list_snapshot_notes(inventory: Inventory, *, is_whole: bool) -> Iterator[str]:
    """Yields a note for each kind that a plan assumes to have no objects in the cluster, because the snapshot has
    none. `is_whole`: the snapshot has the objects of all namespaces."""
    if not is_whole and len({pod.namespace for pod in inventory.pods}) == 1:
        namespace = inventory.pods[0].namespace
        yield (
            f"all pods are in namespace {namespace}: if kubectl printed the snapshot without -A, nodes look emptier "
            "than they are"
        )
    if note := _fake_nodes_note(inventory):
        yield note
    if not inventory.pdbs:
        yield "the snapshot contains no PodDisruptionBudget, so Trimtab assumes that none protects a pod"
    if any(claim.driver for claim in inventory.claims.values()) and not any(
        n.attachable_volumes for n in inventory.nodes
    ):
        yield (
            "the snapshot contains no CSINode with a limit, so Trimtab assumes that a node can attach any number "
            "of volumes"
        )


def _fake_nodes_note(inventory: Inventory) -> str:
    """Returns a note about the nodes that are simulated; empty if there are none."""
    fake = [(node.name, sign) for node in inventory.nodes if (sign := node.nature.sign_of(NodeKind.FAKE)) is not None]
    if not fake:
        return ""
    names, sign = [name for name, _ in fake], fake[0][1]
    them = "1 node is" if len(fake) == 1 else f"{len(fake)} nodes are"
    return (
        f"{them} simulated by {sign.platform} ({sign.evidence}): {join_first(names, 3)}; the plan treats "
        "such nodes as machines, but their removal saves no money"
    )


@dataclass(frozen=True, slots=True)
class PastObservations:
    """The observations that compactors stored before the snapshot was taken."""

    observations: Observations | None = None
    """The observations, or None if no compactor stored any; the plan then assumes that the pools have been stable for
    long."""
    moved: frozenset[str] = frozenset()
    """The pods (namespace/name) that a compactor moved."""
    histories: Mapping[str, DemandHistory] = field(default_factory=dict)
    """Pool → what its pods requested."""
    notes: tuple[str, ...] = ()


def read_observations(inventory: Inventory) -> PastObservations:
    """Returns the observations in the ConfigMaps trimtab-state-*, with a note for each ConfigMap that is invalid."""
    states = {
        value_or(shape.metadata.labels, {})[memories.STATE_LABEL]: memories.decode_state(
            shape.metadata.name, shape.data
        )
        for shape in inventory.config_maps
        if memories.STATE_LABEL in value_or(shape.metadata.labels, {})
    }
    valid_states = {pool: state for pool, state in states.items() if isinstance(state, PoolState) and pool != ORDERS}
    notes = tuple(
        f"the stored state of a pool is ignored: {state}"
        for state in states.values()
        if not isinstance(state, PoolState)
    )
    if not valid_states:
        return PastObservations(notes=notes)
    from trimtab.compaction.drain.merged_states import merge_observations, moved_pods

    pools = ", ".join(sorted(valid_states))
    note = (
        f"the compactor's stored observations of {pools} are used, but not verified, because the snapshot "
        "contains no signing key"
    )
    return PastObservations(
        observations=merge_observations(valid_states, {}),
        moved=moved_pods(valid_states.values()),
        histories={name: state.demand for name, state in valid_states.items()},
        notes=(note, *notes),
    )


NOW = "now"
CLOCK_NOTE = (
    "the plan counts ages, time windows and waiting times up to the present time, as the compactor does; with "
    "`--now none` it ignores them"
)
MAX_NOW_SECONDS = 32_503_680_000
"""The largest time that --now accepts, the start of the year 3000: a plan needs the following day, which Python's last
years do not have in every time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """All inputs of a plan."""

    inventory: Inventory
    pools: tuple[Pool, ...]
    context: PlanningContext
    readmitted_requests: Again | None = None
    """Returns the requests that a pod would get if it were created again, or None if every pod keeps its present
    requests."""
    notes: tuple[str, ...]
    """Where the pools come from, and all other assumptions of the plan, one sentence each."""
    cluster_notes: tuple[str, ...] = ()
    """Those of the notes that do not concern pools or a compactor."""
    is_assumed: bool = False
    """Whether the plan assumes a preset, because no pool has settings, as on a first run."""
    resizes: ResizeAdvice | None = None
    """The resizes that policies with `running: resize` would make, or None if there is no such policy, or without
    --resize."""
    wants_resizes: bool = False
    documents: tuple[Document, ...] = ()
    """The objects of the cluster as they were read, if `read_inputs` was to keep them."""


def read_inputs(options: PlanOptions, *, like_compactor: bool = False, keeps_documents: bool = False) -> PlanInputs:
    """Read all files, or the live cluster, that the options name.

    like_compactor: whether the present time is used if `--now` is missing, the cluster is live and its pools have
    settings. keeps_documents: whether the result has the objects as they were read. Raises UsageError with every
    mistake of every file and option, and RuntimeFailure if a live cluster cannot be read.
    """
    # All decoded objects stay alive, so garbage collection would only search them again and again.
    with without_garbage_collection():
        return _collect_inputs(options, like_compactor=like_compactor, keeps_documents=keeps_documents)


def _collect_inputs(options: PlanOptions, *, like_compactor: bool, keeps_documents: bool) -> PlanInputs:
    cluster = options.cluster
    if not cluster.paths:
        expected = "--cluster SNAPSHOT: files of `trimtab capture` or kubectl, or `live`"
        raise UsageError([ConfigError(file="command line", expected=expected, got="none")])
    unread: list[ConfigError] = []
    cluster_documents, mistakes = parse_documents(
        _read_or_collect(
            lambda: live_cluster.read_live_objects(cluster, live_cluster.WITH_POLICIES, templates=True), unread
        )
    )
    pool_documents, pool_mistakes = parse_documents(
        _read_or_collect(lambda: live_cluster.read_paths(options.pool_paths), unread)
    )
    snapshot_build = build_snapshot(cluster_documents)
    inventory = snapshot_inventory(snapshot_build.snapshot)
    # If a file of --pools cannot be read, the snapshot's pools are checked instead: "no pool" would be a false mistake.
    pool_config = pools.find_pools(
        pool_documents if options.pool_paths and not unread else None, cluster_documents, inventory, options.presets
    )
    reads_clock = like_compactor and options.now is None and has_own_settings(options, pool_config)
    now, now_mistakes = parse_now(NOW if reads_clock else options.now)
    price_file, price_mistakes = _read_price_files(options.price_paths, unread)
    inventory = replace(
        inventory, nodes=tuple(replace(node, price=price_file.price_of(node)) for node in inventory.nodes)
    )
    schedulers = schedulers_of(pool_config.pools, inventory.schedulers)
    measured_use, use_notes = read_measured_use(cluster, cluster_documents, inventory)
    inventory = replace(inventory, schedulers=schedulers, assumed_requests=ASSUMED_REQUESTS, measured_use=measured_use)
    described, group_mistakes = _read_groups(options.groups, inventory, price_file)
    flags, flag_mistakes = parse_autoscaler_flags(options.autoscaler_flags)
    readmission = _build_readmission(
        cluster_documents, snapshot_build.snapshot, options, now, unread, pool_config.pools, inventory
    )
    mistakes += [
        *unread,
        *pool_mistakes,
        *price_mistakes,
        *snapshot_build.mistakes,
        *pool_config.mistakes,
        *now_mistakes,
        *flag_mistakes,
        *group_mistakes,
        *readmission.mistakes,
    ]
    # Objects with mistakes are missing from the inventory, so its gaps are mistakes only if there are no others.
    mistakes += () if mistakes else find_snapshot_mistakes(inventory, cluster.paths)
    if mistakes:
        raise UsageError(mistakes)
    autoscaler, autoscaler_notes = read_autoscaler(inventory, cluster_documents, flags, now)
    past = read_observations(inventory)
    rooms = forecast_rooms(past.histories, pool_config.pools, now) if now is not None else {}
    context = PlanningContext(
        now=now,
        autoscaler=autoscaler,
        observations=past.observations,
        moved_pods=past.moved,
        described_groups=described,
        needed_room=rooms,
    )
    cluster_notes = (
        *readmission.notes,
        *use_notes,
        *list_snapshot_notes(
            inventory, is_whole=live_cluster.LIVE in cluster.paths or snapshot_build.snapshot.is_capture
        ),
    )
    notes = (
        *pool_config.notes,
        *([CLOCK_NOTE] if reads_clock else ()),
        *autoscaler_notes,
        *past.notes,
        *(
            describe_forecast(pool, rooms[pool.name], past.histories[pool.name])
            for pool in pool_config.pools
            if pool.name in rooms
        ),
        *cluster_notes,
    )
    return PlanInputs(
        inventory=inventory,
        pools=pool_config.pools,
        context=context,
        readmitted_requests=readmission.readmitted_requests,
        notes=notes,
        cluster_notes=cluster_notes,
        is_assumed=pool_config.assumed,
        resizes=readmission.resizes if options.resize else None,
        wants_resizes=options.resize,
        documents=tuple(cluster_documents) if keeps_documents else (),
    )


def _read_groups(
    texts: Sequence[str], inventory: Inventory, prices: PriceFile
) -> tuple[dict[str, NodeInfo], list[ConfigError]]:
    """Returns node group → its next node as the command line describes it, and the mistakes in the descriptions."""
    if not texts:
        return {}, []
    # Imported here, because the table of machine types and the formulas of reservations are not needed without it.
    from trimtab.inputs.described_groups import read_described_groups

    return read_described_groups(texts, inventory, prices)


def _read_price_files(paths: Sequence[str], unread: list[ConfigError]) -> tuple[PriceFile, list[ConfigError]]:
    """Returns the prices of all files together, and the mistakes in the files."""
    try:
        return read_price_sources(paths)
    except UsageError as error:
        unread += error.mistakes
        return PriceFile({}, {}), []


def _build_readmission(
    documents: list[Document],
    snapshot: Snapshot,
    options: PlanOptions,
    now: Seconds | None,
    unread: list[ConfigError],
    found_pools: Sequence[Pool],
    inventory: Inventory,
) -> Readmission:
    """Returns the requests that pods would get if they were created again.

    The admission modules are imported only if there is a policy or a VerticalPodAutoscaler, or if an owner's template
    may request something else than a pod, because the import is slow.
    """
    has_policies = options.policy_paths or any(document.kind == KIND for document in documents)
    if not has_policies and not snapshot.objects_of(VerticalPodAutoscaler):
        templates = read_templates(documents, owners_of_pods(inventory))
        if not may_differ(inventory, snapshot, templates):
            return Readmission()
    from trimtab.inputs.planned_requests import build_readmission

    try:
        return build_readmission(
            documents,
            snapshot,
            options.policy_paths,
            options.admission_settings,
            now,
            inventory,
            found_pools if options.resize else None,
        )
    except UsageError as error:
        unread += error.mistakes
        return Readmission()


def _read_or_collect(
    read: Callable[[], list[live_cluster.Content]], unread: list[ConfigError]
) -> list[live_cluster.Content]:
    """Returns the files that `read` returns. The mistakes that it raises are appended to `unread`, to be reported with
    all others."""
    try:
        return read()
    except UsageError as error:
        unread += error.mistakes
        return []


def parse_documents(contents: Iterable[live_cluster.Content]) -> tuple[list[Document], list[ConfigError]]:
    """Returns all documents of all files, and the mistakes of those that cannot be parsed."""
    parsed: list[Document] = []
    mistakes: list[ConfigError] = []
    for name, content in contents:
        reading = read_documents(name, content)
        parsed += reading.documents
        mistakes += reading.mistakes
    return parsed, mistakes


def parse_autoscaler_flags(text: str) -> tuple[Processes, list[ConfigError]]:
    """Returns the arguments of each autoscaler in the value of --autoscaler-flags, and the mistakes in them."""
    expected = "the cluster autoscaler's flags, such as --scale-down-utilization-threshold=0.7"
    try:
        processes = split_processes(text)
    except ValueError as error:
        return (), [ConfigError(file="--autoscaler-flags", expected=expected, got=str(error))]
    return processes, [
        ConfigError(file="--autoscaler-flags", expected=expected, got=mistake)
        for arguments in processes
        for mistake in wrong_flags(arguments)
    ]


def has_own_settings(options: PlanOptions, pools: PoolReading) -> bool:
    """Returns whether the plan is for a live cluster whose pools have settings, like the compactor's own plans.

    Only then are rules about ages and windows applied. In pools without settings no user has chosen these rules, and a
    node that was just added would prevent every plan.
    """
    return live_cluster.LIVE in options.cluster.paths and not pools.assumed and not options.presets


def parse_now(text: str | None) -> tuple[Seconds | None, list[ConfigError]]:
    """Returns the time of --now in seconds since 1970, and the mistakes in it; None for the word `none`, or without the
    option.

    The option is an RFC 3339 time or the word `now` or `none`."""
    if text == "none":
        return None, []
    if text == NOW:
        return int(clock.utc_now().timestamp()), []
    time = parse_timestamp(text)
    if text is None or (time is not None and 0 <= time < MAX_NOW_SECONDS):
        return time, []
    expected = "a time such as 2026-01-02T15:04:05Z, now or none"
    return None, [ConfigError(file="--now", expected=expected, got=repr(text))]
