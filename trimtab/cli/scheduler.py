"""`trimtab scheduler`: prints a kube-scheduler that packs nodes, as a configuration or as manifests; nothing is
installed."""

import json

import click

from trimtab.cli import output
from trimtab.cli.machine_options import add_pool_options
from trimtab.cli.main import SuggestingGroup
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.machine_types import SelectedNodes
from trimtab.machines.machine_types import machine_types
from trimtab.machines.packing_scheduler import (
    DEFAULT_NAME,
    GKE_COMMAND,
    SCHEDULER_IMAGE,
    ResourceWeights,
    render_aks,
    render_configuration,
    render_eks,
    render_manifests,
    weigh_resources,
)
from trimtab.sizing.ranking.candidates import MEMORY_WEIGHTS, OTHER_MEMORY_WEIGHT

FORMS = ("kubernetes", "eks", "gke", "aks")
DEFAULT_VERSION = "v1.36.0"


@click.group("scheduler", cls=SuggestingGroup)
def verb() -> None:
    """Print a kube-scheduler configuration that packs nodes, or a second scheduler as manifests."""


@verb.command("config")
@add_pool_options
@click.option("--name", default=DEFAULT_NAME, show_default=True, help="The schedulerName of the profile.")
@click.option("--for", "form", type=click.Choice(FORMS), default="kubernetes", show_default=True,
              help=
                  "The scheduler's configuration (a KubeSchedulerConfiguration), or the settings of the cloud "
                  "that runs your scheduler.")  # fmt: skip
@output.add_output_file_option
def config(pool_nodes: SelectedNodes, name: str, form: str, output_file: str | None) -> None:
    """Print a scheduler configuration with MostAllocated, weighted by what cpu and memory cost on your nodes."""
    weights = read_weights(pool_nodes)
    if form == "gke":
        output.write_text(GKE_COMMAND + "\n", output_file)
    elif form == "eks":
        output.write_text(json.dumps(render_eks(weights), indent=2) + "\n", output_file)
    else:
        configuration = render_configuration(name, weights, None)
        document = configuration if form == "kubernetes" else render_aks(output.format_manifests([configuration]))
        output.write_text(output.format_manifests([document]), output_file)


@verb.command("manifests")
@add_pool_options
@click.option(
    "--name",
    default=DEFAULT_NAME,
    show_default=True,
    help="The schedulerName of the profile, which is also the name of the objects.",
)
@click.option("-n", "--namespace", default="kube-system", show_default=True, help="The namespace of the scheduler.")
@click.option("--image", default=f"{SCHEDULER_IMAGE}:{DEFAULT_VERSION}", show_default=True,
              help="The image of kube-scheduler. Use the version of your cluster.")  # fmt: skip
@output.add_output_file_option
def manifests(pool_nodes: SelectedNodes, name: str, namespace: str, image: str, output_file: str | None) -> None:
    """Print a second kube-scheduler that packs pods: account, permissions, configuration and two replicas. Apply it
    yourself."""
    text = output.format_manifests([render_configuration(name, read_weights(pool_nodes), namespace)])
    output.write_text(output.format_manifests(render_manifests(name, namespace, image, text)), output_file)


def read_weights(pool_nodes: SelectedNodes) -> ResourceWeights:
    """Returns the weights of cpu and memory. They depend on the capacity of the nodes, and on what a core and a GiB
    cost in their cloud.

    Raises UsageError if the capacity of no node can be read.
    """
    table = machine_types()
    kinds = (table.get(node.labels.get(INSTANCE_TYPE_LABEL, "")) for node in pool_nodes.nodes)
    cloud = next((kind.cloud for kind in kinds if kind is not None), "")
    weights = weigh_resources(pool_nodes.nodes, MEMORY_WEIGHTS.get(cloud, OTHER_MEMORY_WEIGHT))
    if weights is None:
        raise UsageError([ConfigError(file="--cluster", expected="nodes with a capacity", got="none")])
    return weights
