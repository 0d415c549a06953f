"""`trimtab scheduler`: prints a kube-scheduler that packs nodes, as a configuration or as manifests; nothing is
installed."""

import json
from dataclasses import dataclass
from typing import Annotated, Literal

import click

from trimtab.cli import output
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import IMAGE
from trimtab.inputs.machine_types import PoolOptions, SelectedNodes, read_pool_nodes
from trimtab.inputs.option import option
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

DEFAULT_VERSION = "v1.36.0"
SCHEDULER_NAME = option("--scheduler-name", former=("--name",), help="The schedulerName of the profile.")


@click.group("scheduler", cls=SuggestingGroup)
def verb() -> None:
    """Print a kube-scheduler configuration that packs nodes, or a second scheduler as manifests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfigOptions:
    """The options of `trimtab scheduler config`."""

    nodes: PoolOptions
    name: Annotated[str, SCHEDULER_NAME] = DEFAULT_NAME
    form: Annotated[
        Literal["kubernetes", "eks", "gke", "aks"],
        option(
            "--platform",
            former=("--for",),
            help="The scheduler's configuration (a KubeSchedulerConfiguration), or the settings of the cloud that runs "
            "your scheduler.",
        ),
    ] = "kubernetes"
    output_file: Annotated[str | None, output.OUTPUT_FILE] = None


@verb.command("config")
@takes(SchedulerConfigOptions)
def config(options: SchedulerConfigOptions) -> None:
    """Print a scheduler configuration with MostAllocated, weighted by what cpu and memory cost on your nodes."""
    weights = read_weights(read_pool_nodes(options.nodes))
    if options.form == "gke":
        text = GKE_COMMAND + "\n"
    elif options.form == "eks":
        text = json.dumps(render_eks(weights), indent=2) + "\n"
    else:
        configuration = render_configuration(options.name, weights, None)
        is_plain = options.form == "kubernetes"
        document = configuration if is_plain else render_aks(output.format_manifests([configuration]))
        text = output.format_manifests([document])
    output.write_text(text, options.output_file)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerManifestsOptions:
    """The options of `trimtab scheduler manifests`."""

    nodes: PoolOptions
    name: Annotated[
        str, SCHEDULER_NAME.with_help("The schedulerName of the profile, which is also the name of the objects.")
    ] = DEFAULT_NAME
    namespace: Annotated[
        str,
        option(
            "--scheduler-namespace",
            metavar="NAME",
            former=("-n", "--namespace"),
            help="The namespace of the scheduler.",
        ),
    ] = "kube-system"
    image: Annotated[str, IMAGE.with_help("The image of kube-scheduler. Use the version of your cluster.")] = (
        f"{SCHEDULER_IMAGE}:{DEFAULT_VERSION}"
    )
    output_file: Annotated[str | None, output.OUTPUT_FILE] = None


@verb.command("manifests")
@takes(SchedulerManifestsOptions)
def manifests(options: SchedulerManifestsOptions) -> None:
    """Print a second kube-scheduler that packs pods: account, permissions, configuration and two replicas. Apply it
    yourself."""
    name, namespace = options.name, options.namespace
    weights = read_weights(read_pool_nodes(options.nodes))
    text = output.format_manifests([render_configuration(name, weights, namespace)])
    output.write_text(
        output.format_manifests(render_manifests(name, namespace, options.image, text)), options.output_file
    )


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
