"""The clusters of `--clusters`: files and folders of a folder, or contexts of a kubeconfig; and the functions that read
one cluster.

These functions run on any machine that the engine chooses, so they take bytes and return values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.pool import PoolIndex
from trimtab.cluster.snapshot import build_snapshot
from trimtab.compaction.drain.savings import HOURS_PER_MONTH
from trimtab.compaction.plan import make_plan
from trimtab.fleet import cluster_digest as digests
from trimtab.fleet.cluster_digest import ClusterDigest, PoolSums
from trimtab.fleet.container_decisions import ClusterState, CurrentRow
from trimtab.fleet.money_report import ClusterFailure
from trimtab.histogram.batch_history import ContainerKey
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import CommandFault, UsageError
from trimtab.inputs.current_requests import CurrentContainer, CurrentRequests, read_current_requests
from trimtab.inputs.node_costs import compute_node_costs
from trimtab.inputs.plan_inputs import PlanOptions, parse_documents, read_inputs
from trimtab.inputs.private_file import write_private_file
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.policy.vpa_webhook import reach_everywhere_if
from trimtab.runtime.files import ENDINGS, RuntimeFault
from trimtab.scheduling.cluster_model import build_cluster_model

MILLION = "micro-dollars an hour"


class SnapshotSource(msgspec.Struct, frozen=True):
    """The location of a cluster's snapshot, and how to read it."""

    cluster: str
    paths: tuple[str, ...] = ()
    content: bytes = b""
    """The captured objects of a context; empty if the snapshot is in files."""
    team_label: str = "team"
    now: str | None = None


class UnreadableCluster(RuntimeFault):
    """A cluster's snapshot cannot be read; the text is the reason."""


@dataclass(frozen=True, slots=True)
class ClusterList:
    """The clusters that the command line names."""

    sources: tuple[SnapshotSource, ...]
    failures: tuple[ClusterFailure, ...] = ()
    """Contexts whose cluster could not be read."""

    @property
    def states(self) -> list[ClusterState]:
        """The sources in the form that an engine takes."""
        return [ClusterState(one.cluster, msgspec.msgpack.encode(one)) for one in self.sources]


def list_clusters(
    texts: Sequence[str], kubeconfig: str | None = None, team_label: str = "team", now: str | None = None
) -> ClusterList:
    """Returns the clusters of folders and contexts, sorted by name.

    Raises UsageError if two clusters have the same name, or if a folder contains no cluster."""
    sources: list[SnapshotSource] = []
    failures: list[ClusterFailure] = []
    mistakes: list[ConfigError] = []
    names_or_paths = [part for text in texts for part in ([text] if Path(text).exists() else text.split(","))]
    for text in names_or_paths:
        if Path(text).exists():
            all_sources = [
                SnapshotSource(name, paths, b"", team_label, now) for name, paths in _clusters_of_folder(Path(text))
            ]
            if not all_sources:
                expected = f"a folder with a snapshot of each cluster ({', '.join(ENDINGS[:3])}, …)"
                mistakes.append(ConfigError(file=text, expected=expected, got="none"))
            sources += all_sources
        elif "/" in text or text.endswith(ENDINGS):
            mistakes.append(
                ConfigError(file=text, expected="a folder that exists, or a context of the kubeconfig", got="neither")
            )
        else:
            _add_context(text, kubeconfig, SnapshotSource(text, (), b"", team_label, now), sources, failures)
    names = [one.cluster for one in sources] + [one.cluster for one in failures]
    mistakes += [
        ConfigError(
            file="--clusters", expected="a different name for each cluster", got=f"the name {name!r} for two clusters"
        )
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if mistakes:
        raise UsageError(mistakes)
    return ClusterList(tuple(sorted(sources, key=lambda one: one.cluster)), tuple(sorted(failures)))


def _clusters_of_folder(folder: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields (name, paths) of each cluster in the folder: a file is a cluster, and so is a folder. Hidden files and
    folders are ignored."""
    if folder.is_file():
        yield _stem(folder), (str(folder.resolve()),)
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield path.name, (str(path.resolve()),)
        elif path.name.endswith(ENDINGS):
            yield _stem(path), (str(path.resolve()),)


def _stem(path: Path) -> str:
    ending = max((ending for ending in ENDINGS if path.name.endswith(ending)), key=len, default="")
    return path.name.removesuffix(ending)


def _add_context(
    context: str,
    kubeconfig: str | None,
    empty: SnapshotSource,
    sources: list[SnapshotSource],
    failures: list[ClusterFailure],
) -> None:
    options = live_cluster.ClusterOptions((live_cluster.LIVE,), kubeconfig, context)
    try:
        capture = live_cluster.capture_cluster(options.login, live_cluster.WITH_POLICIES, templates=True)
    except CommandFault as error:
        failures.append(ClusterFailure(context, _one_line(error)))
        return
    if capture.unreadable:
        failures.append(
            ClusterFailure(context, f"This cluster has objects that Trimtab cannot read: {capture.unreadable[0]}")
        )
    else:
        sources.append(msgspec.structs.replace(empty, content=capture.content))


def _one_line(error: CommandFault) -> str:
    """Returns the first mistake of an error on one line, with the number of its other mistakes."""
    first, *more = str(error).splitlines()
    return f"{first} (and {len(more)} more)" if more else first


@contextmanager
def _paths_of(source: SnapshotSource) -> Iterator[tuple[str, ...]]:
    if source.paths:
        yield source.paths
        return
    with TemporaryDirectory(prefix="trimtab-fleet-") as folder:
        path = Path(folder) / "capture.json.gz"
        write_private_file(str(path), source.content)
        yield (str(path),)


def read_current(encoded: bytes) -> list[CurrentRow]:
    """Returns the present requests of all containers in a snapshot, sorted. Raises UnreadableCluster."""
    source = msgspec.msgpack.decode(encoded, type=SnapshotSource)
    try:
        with _paths_of(source) as paths, without_garbage_collection():
            documents, mistakes = parse_documents(live_cluster.read_paths(paths))
            built = build_snapshot(documents)
            if mistakes or built.mistakes:
                raise UsageError([*mistakes, *built.mistakes])
            facts = from_snapshot(built.snapshot, vpa_reach=reach_everywhere_if(True))
            current = read_current_requests(built.snapshot, documents, facts)
    except CommandFault as error:
        raise UnreadableCluster(_one_line(error)) from None
    return [
        _current_row(container, one, current, source.team_label)
        for container, one in sorted(current.containers.items(), key=lambda item: item[0])
    ]


def _current_row(key: ContainerKey, one: CurrentContainer, current: CurrentRequests, team_label: str) -> CurrentRow:
    cpu, memory = (one.current_resources(resource, current.nodes) for resource in ("cpu", "memory"))
    return CurrentRow(
        key.namespace,
        key.kind,
        key.workload,
        key.name,
        one.merged_labels.get(team_label, ""),
        one.replicas,
        cpu,
        memory,
        current.price.core,
        current.price.gib,
    )


@dataclass(frozen=True, slots=True)
class DigestJob:
    """The job of an engine that plans the compaction of each cluster and summarizes the cluster as a digest."""

    def run_item(self, item: bytes) -> bytes:
        """Returns an encoded ClusterDigest, or a ClusterFailure if the cluster cannot be read."""
        source = msgspec.msgpack.decode(item, type=SnapshotSource)
        try:
            return b"D" + msgspec.msgpack.encode(digest_cluster(source), order="sorted")
        except (CommandFault, RuntimeFault) as error:
            problem = _one_line(error) if isinstance(error, CommandFault) else str(error)
            return b"F" + msgspec.msgpack.encode(ClusterFailure(source.cluster, problem))


def decode_digests(results: Iterable[bytes]) -> tuple[list[ClusterDigest], list[ClusterFailure]]:
    """Returns the digests and the failures in the results of a DigestJob."""
    digests: list[ClusterDigest] = []
    failures: list[ClusterFailure] = []
    for result in results:
        if result[:1] == b"D":
            digests.append(msgspec.msgpack.decode(result[1:], type=ClusterDigest))
        else:
            failures.append(msgspec.msgpack.decode(result[1:], type=ClusterFailure))
    return digests, failures


def digest_cluster(source: SnapshotSource) -> ClusterDigest:
    """Returns the digest of one cluster, including its plan. Raises UsageError and RuntimeFailure."""
    with _paths_of(source) as paths:
        inputs = read_inputs(PlanOptions(cluster=live_cluster.ClusterOptions(paths), now=source.now))
    inventory = inputs.inventory
    plan = make_plan(build_cluster_model(inventory, inputs.readmitted_requests), inputs.pools, inputs.context)
    costs, unit = compute_node_costs(inventory, inputs.pools)
    monthly = {name: cost * HOURS_PER_MONTH if unit == MILLION else 0 for name, cost in costs.items()}
    removed = {step.node for step in plan.all_steps}
    index = PoolIndex(inputs.pools)
    members = {node.name: pool.name if (pool := index.only_pool_of(node)) else "" for node in inventory.machines}
    pools = [
        PoolSums(
            source.cluster,
            name,
            len(nodes),
            len(removed & nodes),
            sum(monthly[node] for node in nodes),
            sum(monthly[node] for node in removed & nodes),
        )
        for name in sorted(set(members.values()))
        for nodes in ({node for node, pool in members.items() if pool == name},)
    ]
    workload, missing = digests.measure_cluster(inventory)
    typical = digests.empty_typical_node(inventory)
    notes = [*inputs.notes, *plan.notes]
    if unit != MILLION:
        notes.append("no node has a price, so the cost of this cluster is not known")
    return ClusterDigest(
        cluster=source.cluster,
        nodes=len(inventory.machines),
        pods=sum(not pod.is_finished for pod in inventory.pods),
        cost=sum(monthly.values()),
        saved_by_plan=sum(monthly[node] for node in removed),
        nodes_to_remove=len(removed),
        evictions=len(plan.all_moves),
        pools=pools,
        regions=digests.list_regions(inventory),
        architectures=digests.list_architectures(inventory),
        karpenter_nodes=digests.count_karpenter_nodes(inventory),
        workload=workload,
        missing_workload=missing,
        machine_types=digests.count_machine_types(inventory),
        pod_sizes=digests.list_pod_sizes(inventory),
        node_selectors=digests.list_node_selectors(inventory),
        node_labels=digests.list_node_labels(inventory),
        free_nodes=digests.list_free_nodes(inventory),
        typical_node=None if typical is None else typical[1],
        typical_cost=0 if typical is None else monthly[typical[0].name],
        volumes=digests.count_volumes(inventory),
        namespaces=sorted({pod.namespace for pod in inventory.pods if not (pod.is_daemon or pod.is_static)}),
        notes=notes,
    )
