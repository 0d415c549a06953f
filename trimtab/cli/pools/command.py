"""`trimtab pools`: import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from trimtab.cli import live_cluster, output
from trimtab.cli.main import RuntimeFailure, UsageError
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.estafette import KEY as ESTAFETTE_KEY
from trimtab.cluster.estafette import imported
from trimtab.cluster.pool_config import KEY, PoolReading, config_map
from trimtab.cluster.yaml_documents import read
from trimtab.compactor.settings import Settings

if TYPE_CHECKING:
    from trimtab.kube.objects import Writer

COMMENTS = (
    "Imported from an estafette node-compactor: cpu and count are its scaleDownCPURequestRatioLimit and",
    "scaleDownRequiredUnderutilizedNodeCount, `for` and `age.node` the times of its Deployment.",
    "Memory at 100 percent means that memory never keeps a node.",
)
PATIENCE_SECONDS = 330
"""Its chart gives a pod 300 s to end."""


@click.group("pools")
def verb() -> None:
    """Pools of the compactor from what another one was told."""


@verb.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option("--apply", "applying", is_flag=True, help="Create the pools in the cluster; without it they are printed.")
@click.option(
    "--take-over", "taking_over", is_flag=True,
    help="Stop the estafette node-compactor, open the nodes that it left cordoned and take its marks off; without "
    "--apply what would be done is only listed.",
)  # fmt: skip
@click.option("--namespace", default=Settings().namespace, show_default=True, help="Where the compactor lives.")
@click.option("-o", "--output", "form", type=click.Choice(["yaml", "json"]), default="yaml", help="How it is printed.")
@click.option("--output-file", type=click.Path(dir_okay=False), help="Print into this file.")
@live_cluster.login
def import_(
    paths: tuple[str, ...],
    applying: bool,
    taking_over: bool,
    namespace: str,
    form: str,
    output_file: str | None,
    **login: Any,
) -> None:
    """An estafette node-compactor's configuration as pool ConfigMaps that rehearse.

    FILE holds its ConfigMap, that ConfigMap's JSON by itself, or the values of its Helm chart; its Deployment beside
    it tells the times, and so does `kubectl -n estafette get configmap,deployment -o yaml` as a whole.
    A pool that is there with other settings is left alone. Each step can be repeated.
    """
    reading = _read(paths)
    manifests = [config_map(pool, namespace, COMMENTS) for pool in reading.pools]
    for note in reading.notes:
        click.echo(f"Note: {note}", err=True)
    if not applying:
        output.write(output.manifests_text(manifests, form), output_file)
    if not (applying or taking_over):
        return
    from trimtab.cli.compactor import state as asked
    from trimtab.kube.objects import Writer

    with asked.open_client(asked.ClusterLogin(**login, namespace=namespace)) as client:
        writer = Writer(client=client, manager="trimtab-command")
        if taking_over:
            _take_over(writer, applying)
        if applying:
            for manifest in manifests:
                click.echo(f"ConfigMap {namespace}/{manifest['metadata']['name']}: {_create(writer, manifest)}")


def _read(paths: Sequence[str]) -> PoolReading:
    """Raises Wrong with all mistakes, also where no document is its configuration."""
    readings = [read(name, content) for name, content in live_cluster.read(paths)]
    reading = imported(document for found in readings for document in found.documents)
    mistakes = [mistake for found in readings for mistake in found.mistakes] + list(reading.mistakes)
    if mistakes:
        raise UsageError(mistakes)
    if not reading.pools:
        expected = (
            f"an estafette configuration with pools: a ConfigMap with {ESTAFETTE_KEY}, its JSON, or values of its chart"
        )
        raise UsageError([ConfigError(file=", ".join(paths), expected=expected, got="none")])
    return reading


def _take_over(writer: Writer, applying: bool) -> None:
    from trimtab.cli.pools import import_estafette as take_over

    old, marked = take_over.find(writer.client)
    if not (old or marked):
        click.echo("no estafette node-compactor is there, and no node carries its mark", err=True)
    if not applying:
        for one in old:
            click.echo(f"{one}: would be scaled from {one.replicas} to 0", err=True)
        for node in marked:
            click.echo(f"{node}: would be {node.remedy}", err=True)
        return
    try:
        for done in take_over.take_over(writer, old, patience_seconds=PATIENCE_SECONDS):
            click.echo(done)
    except take_over.StillRunning as error:
        told = f"{error}: its pods still run after {PATIENCE_SECONDS} s. Run this command again when they are gone."
        raise RuntimeFailure(told) from None


def _create(writer: Writer, manifest: Mapping[str, Any]) -> str:
    """What was done, in words. Raises any KubeFault."""
    from trimtab.kube import objects as whole
    from trimtab.kube.resources import PLACES, collection

    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    there = whole.get(writer.client, "ConfigMap", name, namespace)
    if there is not None:
        same = (there.get("data") or {}).get(KEY) == manifest["data"][KEY]
        return "is there already" if same else "is there with other settings, and was left alone"
    path = collection(PLACES["ConfigMap"], namespace)
    writer.write("POST", path, manifest, doing=f"create ConfigMap {namespace}/{name}")
    return "created"
