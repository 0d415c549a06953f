"""The command line of `trimtab pools`, with the subcommands check and import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import click

from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.output import ManifestOutput, write_manifests
from trimtab.cli.pools.check import check_pools
from trimtab.cli.print_text import print_text
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.estafette import CONFIG_KEY as ESTAFETTE_KEY
from trimtab.cluster.estafette import import_pools
from trimtab.cluster.pool_config import SETTINGS_KEY, PoolReading, config_map
from trimtab.cluster.yaml_documents import read_documents
from trimtab.compactor.settings import Settings
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.flags import APPLY, SYSTEM_NAMESPACE, TAKE_OVER
from trimtab.inputs.live_cluster import Login
from trimtab.inputs.option import Argument

if TYPE_CHECKING:
    from trimtab.kube.objects import Writer

COMMENTS = (
    "Imported from an estafette node-compactor: `cpu` and `count` are its settings scaleDownCPURequestRatioLimit and",
    "scaleDownRequiredUnderutilizedNodeCount; `for` and `age.node` are the times that its Deployment sets.",
    "Memory at 100 percent means that the requested memory never keeps a node from being drained.",
)
STOP_TIMEOUT_SECONDS = 330
"""The seconds to wait until a stopped estafette has ended; its chart gives a pod a grace period of 300 s."""


@click.group("pools", cls=SuggestingGroup)
def verb() -> None:
    """Check pools, or import them from another compactor's configuration."""


verb.add_command(check_pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolsImportOptions:
    """The options of `trimtab pools import`."""

    paths: Annotated[tuple[str, ...], Argument("FILE...")]
    applies: Annotated[
        bool, APPLY.with_help("Create the pools in the cluster. Without this option they are only printed.")
    ] = False
    takes_over: Annotated[
        bool,
        TAKE_OVER.with_help(
            "Stop the estafette node-compactor, uncordon the nodes that it left cordoned and remove its annotations. "
            "Without --apply the command only lists what it would do."
        ),
    ] = False
    namespace: Annotated[str, SYSTEM_NAMESPACE] = Settings().namespace
    output: ManifestOutput
    login: Login


@verb.command("import")
@takes(PoolsImportOptions)
def import_(options: PoolsImportOptions) -> None:
    """Print an estafette node-compactor's configuration as pool ConfigMaps in mode rehearse.

    FILE contains estafette's ConfigMap, the JSON in that ConfigMap, or the values of its Helm chart. If its Deployment
    is in the same files, its intervals are read as well; the output of `kubectl -n estafette get configmap,deployment
    -o yaml` has both. A pool that already exists with other settings is not changed. You can repeat each step.
    """
    namespace, login = options.namespace, options.login
    reading = _read_configuration(options.paths)
    manifests = [config_map(pool, namespace, COMMENTS) for pool in reading.pools]
    for note in reading.notes:
        print_text(f"Note: {note}", err=True)
    if not options.applies:
        write_manifests(options.output, manifests)
    if not (options.applies or options.takes_over):
        return
    from trimtab.inputs import compactor_state as state
    from trimtab.kube.objects import Writer

    with state.open_client(
        state.ClusterLogin(kubeconfig=login.kubeconfig, context=login.context, namespace=namespace)
    ) as client:
        writer = Writer(client=client, manager="trimtab-command")
        if options.takes_over:
            _take_over(writer, options.applies)
        if options.applies:
            for manifest in manifests:
                print_text(f"ConfigMap {namespace}/{manifest['metadata']['name']}: {_create_pool(writer, manifest)}")


def _read_configuration(paths: Sequence[str]) -> PoolReading:
    """Read the pools of an estafette configuration. Raises UsageError with all mistakes, or if there is no pool."""
    readings = [read_documents(name, content) for name, content in live_cluster.read_paths(paths)]
    reading = import_pools(document for file_reading in readings for document in file_reading.documents)
    mistakes = [mistake for file_reading in readings for mistake in file_reading.mistakes] + list(reading.mistakes)
    if mistakes:
        raise UsageError(mistakes)
    if not reading.pools:
        expected = (
            f"an estafette configuration with pools: a ConfigMap with {ESTAFETTE_KEY}, its JSON, or values of its chart"
        )
        raise UsageError([ConfigError(file=", ".join(paths), expected=expected, got="none")])
    return reading


def _take_over(writer: Writer, applying: bool) -> None:
    from trimtab.inputs import import_estafette as take_over

    old_compactors, marked_nodes = take_over.find_compactors_and_nodes(writer.client)
    if not (old_compactors or marked_nodes):
        print_text("the cluster has no estafette node-compactor, and no node has an annotation of one", err=True)
    if not applying:
        for compactor in old_compactors:
            print_text(f"{compactor}: would be scaled from {compactor.replicas} to 0", err=True)
        for node in marked_nodes:
            print_text(f"{node}: would be {node.restoration_text}", err=True)
        return
    try:
        for step in take_over.take_over(writer, old_compactors, timeout_seconds=STOP_TIMEOUT_SECONDS):
            print_text(step)
    except take_over.StillRunning as error:
        message = (
            f"{error}: the pods of the estafette node-compactor still run after {STOP_TIMEOUT_SECONDS} s. Run "
            "this command again when they have stopped."
        )
        raise RuntimeFailure(message) from None


def _create_pool(writer: Writer, manifest: Mapping[str, Any]) -> str:
    """Create the pool's ConfigMap, and return the outcome as text. Raises any KubeFault."""
    from trimtab.kube import objects as kube_objects
    from trimtab.kube.resources import LIST_SOURCES, collection_path

    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    existing = kube_objects.get_plain(writer.client, "ConfigMap", name, namespace)
    if existing is not None:
        is_same = (existing.get("data") or {}).get(SETTINGS_KEY) == manifest["data"][SETTINGS_KEY]
        return (
            "the ConfigMap exists already"
            if is_same
            else "the ConfigMap exists with other settings and was not changed"
        )
    path = collection_path(LIST_SOURCES["ConfigMap"], namespace)
    writer.write("POST", path, manifest, doing=f"create ConfigMap {namespace}/{name}")
    return "created"
