"""Reads the files of the command line, `--cluster` (files, folders, or `live`), and the recommender's history.

With `live`, objects are listed from the API server of the kubeconfig. A file that cannot be read is a UsageError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import NotYet
from trimtab.cluster.snapshot import SHAPES_BY_KIND, Snapshot, build_snapshot
from trimtab.cluster.yaml_documents import read_documents
from trimtab.inputs import flags
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.progress import progress
from trimtab.runtime import clock
from trimtab.runtime.files import ENDINGS, Content, UnreadableFiles, read_files, shipped_policies

if TYPE_CHECKING:
    from trimtab.histogram.live_history import LiveHistory
    from trimtab.kube.client import Client
    from trimtab.kube.errors import KubeFault


__all__ = ["Content", "read_paths", "shipped_policies"]


def read_paths(paths: Iterable[str | Path], endings: tuple[str, ...] = ENDINGS) -> list[Content]:
    """Returns the content of every file of every path. Raises UsageError with all files that cannot be read."""
    try:
        return read_files(paths, endings)
    except UnreadableFiles as error:
        raise UsageError(error.mistakes) from None


LIVE = "live"
WITH_POLICIES = (*SHAPES_BY_KIND, "PodPolicy")
"""The kinds that are read for a plan that counts the requests which policies would set when a pod is created again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The login to the API server of a cluster."""

    kubeconfig: Annotated[str | None, flags.KUBECONFIG] = None
    context: Annotated[str | None, flags.CONTEXT] = None


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The cluster options of the command line: files, or `live` with a login."""

    paths: Annotated[tuple[str, ...], flags.CLUSTER] = ()
    kubeconfig: Annotated[str | None, flags.KUBECONFIG] = None
    context: Annotated[str | None, flags.CONTEXT] = None

    @property
    def login(self) -> Login:
        """The login to the cluster if it is live."""
        return Login(kubeconfig=self.kubeconfig, context=self.context)


@dataclass(frozen=True, slots=True)
class Capture:
    """The objects of a cluster as a snapshot file."""

    content: bytes
    unreadable: tuple[str, ...]
    """The objects that could not be read, each with the reason."""
    forbidden: tuple[str, ...]
    """The kinds that the user may not list."""
    metrics_problem: str = ""
    """A sentence that says why the present usage of pods could not be read; empty if it was read or was not
    requested."""


def read_live_objects(
    cluster_options: ClusterOptions, kinds: Iterable[str] = tuple(SHAPES_BY_KIND), *, templates: bool = False
) -> list[Content]:
    """Returns the snapshots as (name, content); if the cluster is live, a new snapshot with the objects of these kinds.

    Raises UsageError, and RuntimeFailure if the cluster cannot be read.
    """
    contents = read_paths(path for path in cluster_options.paths if path != LIVE)
    if LIVE not in cluster_options.paths:
        if cluster_options.kubeconfig or cluster_options.context:
            got = "--kubeconfig" if cluster_options.kubeconfig else "--context"
            raise UsageError(
                [ConfigError(file="command line", expected="--cluster live", got=f"{got} without --cluster live")]
            )
        return contents
    capture = capture_cluster(cluster_options.login, kinds, templates=templates)
    if capture.unreadable:
        raise RuntimeFailure(
            "\n".join(["The cluster has objects that Trimtab cannot read, so nothing was done.", *capture.unreadable])
        )
    return [*contents, (LIVE, capture.content)]


def capture_cluster(
    login: Login,
    kinds: Iterable[str],
    salt: bytes | None = None,
    *,
    templates: bool = False,
    pod_metrics: bool = False,
    config_maps_in: str = "",
) -> Capture:
    """Returns the objects of these kinds that the API server lists now, as a snapshot file.

    Pod templates of owners are included if `templates` is set or if the cluster has policies or VPAs. With
    `pod_metrics`, the present usage of pods is included if the metrics API can be read. With a `salt`, names are
    hashed. `config_maps_in`: the only namespace of which ConfigMaps are read; empty: all. Raises UsageError without a
    login, and RuntimeFailure if the cluster cannot be read.
    """
    # Imported here because most commands read files only, and the HTTP client is slow to import.
    from trimtab.kube.capture import encode_capture, read_cluster
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect_to_cluster(login.kubeconfig, login.context)
        try:
            observation = read_cluster(
                client, kinds, progress().show_object, templates=templates, config_maps_in=config_maps_in
            )
            metrics, problem = _read_pod_metrics(client) if pod_metrics else ([], "")
        finally:
            client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    return Capture(
        encode_capture(observation.snapshot, observation.unreadable, metrics, salt=salt),
        tuple(str(problem) for problem in observation.unreadable),
        tuple(sorted(observation.snapshot.forbidden)),
        problem,
    )


def _read_pod_metrics(client: Client) -> tuple[list[dict[str, Any]], str]:
    """Returns the PodMetrics objects, and a sentence if they cannot be read."""
    from trimtab.kube.errors import KubeFault
    from trimtab.usage.metrics_api import read_pod_metrics

    try:
        return read_pod_metrics(client), ""
    except KubeFault as error:
        return [], metrics_problem(error)


def metrics_problem(error: KubeFault) -> str:
    """Returns why the metrics API cannot be read, as a sentence."""
    from trimtab.kube.errors import NotFound

    if isinstance(error, NotFound):
        return "this cluster serves no metrics API (metrics-server), so the usage of pods without requests is not known"
    return f"the usage of pods without requests is not known: {error}"


@contextmanager
def connect_live(cluster_options: ClusterOptions) -> Iterator[Client]:
    """Yields a client of the live cluster, for a command that changes it.

    Raises UsageError without `--cluster live` or a login, and RuntimeFailure for any fault of the API server in the
    with block.
    """
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured

    if LIVE not in cluster_options.paths:
        expected = "--cluster live, because the command changes the cluster"
        raise UsageError([ConfigError(file="command line", expected=expected, got="a snapshot")])
    try:
        with closing(connect_to_cluster(cluster_options.kubeconfig, cluster_options.context)) as client:
            yield client
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None


def read_snapshot(cluster_options: ClusterOptions, kinds: Iterable[str]) -> Snapshot:
    """Returns the objects of these kinds from the files or the cluster.

    Raises UsageError with every mistake, also if --cluster is missing.
    """
    if not cluster_options.paths:
        raise UsageError([ConfigError(file="command line", expected="--cluster", got="none")])
    readings = [read_documents(*content) for content in read_live_objects(cluster_options, kinds)]
    built = build_snapshot([document for reading in readings for document in reading.documents])
    mistakes = [*(mistake for reading in readings for mistake in reading.mistakes), *built.mistakes]
    if mistakes:
        raise UsageError(mistakes)
    return built.snapshot


def read_recommender_history(client: Client) -> tuple[LiveHistory, list[str]]:
    """Returns the whole history of the recommender, with notes about unreadable parts; the history is empty if it does
    not run."""
    from trimtab.histogram.live_history import LiveHistory
    from trimtab.kube.objects import Writer
    from trimtab.policy.cluster_facts import OWN_NAMESPACE
    from trimtab.recommender.checkpointer import Checkpointer
    from trimtab.recommender.sharded_configmaps import StoreUnavailable, checkpoint_backend, day_backend
    from trimtab.recommender.write_budget import WriteBudget

    history = LiveHistory()
    try:
        writer = Writer(client=client)
        stores = checkpoint_backend(writer, OWN_NAMESPACE), day_backend(writer, OWN_NAMESPACE)
        problems = Checkpointer(*stores, history, 0.0, WriteBudget(0, float), float).restore_history()
    except StoreUnavailable as error:
        return history, [f"The recommender's history could not be read: {error}"]
    return history, [f"The recommender's history has a problem: {problem}" for problem in problems]


def read_missing_recommendations(cluster: ClusterOptions) -> tuple[dict[tuple[str, str], NotYet], list[str]]:
    """Returns (workload, container) → what is still missing for a recommendation, and notes about unreadable parts."""
    from trimtab.histogram.checkpoint import workload_key
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault
    from trimtab.recommender.publisher import compute_recommendations

    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
        try:
            history, notes = read_recommender_history(client)
        finally:
            client.close()
    except KubeFault as error:
        return {}, [f"The recommender's history could not be read: {error}"]
    missing_parts = compute_recommendations(history, int(clock.utc_now().timestamp())).missing
    return {
        (workload_key(container), container.name): next(iter(reasons.values()))
        for container, reasons in missing_parts.items()
    }, notes
