"""Options of the verbs that read the nodes of a pool and rank machine types."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from trimtab.cli.shared_options import add_cluster_options, add_price_option
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.machine_types import SPECIAL_USES, TypeOptions, read_pool_nodes
from trimtab.machines.machine_types import Use
from trimtab.sizing.ranking.candidates import DEFAULT_MAX_PODS, Performance

F = TypeVar("F", bound=Callable[..., Any])


def add_pool_options(function: F, *, needs_nodes: bool = True) -> F:
    """Decorate a click command with `--cluster` and `--pool`; the command receives the nodes as `pool_nodes`.

    needs_nodes: a pool without nodes is a mistake.
    """

    @wraps(function)
    def verb(*, cluster: live_cluster.ClusterOptions, pool: str, **more: Any) -> Any:
        return function(pool_nodes=read_pool_nodes(cluster, pool, needs_nodes=needs_nodes), **more)

    decorated: Any = click.option(
        "--pool", default="", metavar="NAME", help="Read only the nodes of this pool. Default: all nodes."
    )(verb)
    return add_cluster_options(decorated)  # type: ignore[no-any-return]


def add_type_options(function: F) -> F:
    """Decorate a click command with the options about machine types; the command receives them as `types`."""

    @wraps(function)
    def verb(
        *, region: str, names: str, arch: tuple[str, ...], include: tuple[str, ...], price_paths: tuple[str, ...],
        reserved: str, max_pods: int, pod_limits: str, performance: str, **more: Any,
    ) -> Any:  # fmt: skip
        return function(types=TypeOptions(
            region=region, names=_compile_names(names), architectures=arch, price_paths=price_paths, profile=reserved,
            uses=frozenset({Use.GENERAL, *map(Use, include)}), max_pods=max_pods,
            uses_interface_limits=pod_limits == "eni", performance=Performance(performance),
        ), **more)  # fmt: skip

    decorated: Any = verb
    for option in (
        click.option("--performance", type=click.Choice([mode.value for mode in Performance]), default="off",
                     show_default=True, help=
                         "How the measured speed of a core changes the ranking (CoreMark; AWS only)."),
        click.option("--pod-limits", type=click.Choice(["kubelet", "eni"]), default="kubelet", show_default=True,
                     help="What limits the pods of a node: the kubelet alone, or AWS network interfaces as well."),
        click.option("--max-pods", type=click.IntRange(1), default=DEFAULT_MAX_PODS, show_default=True,
                     help="The kubelet's maxPods, the largest number of pods of a node."),
        click.option("--reserved", default="", metavar="PROFILE",
                     help=
                         "The reservation profile, a formula for the resources reserved for the kubelet. "
                         "Default: eks, aks-1.29 or gke, by the cloud of the machine type."),
        add_price_option,
        click.option("--include", multiple=True, type=click.Choice(SPECIAL_USES), help=
            "Also rank machine types for this special use."),
        click.option("--arch", multiple=True, type=click.Choice(["amd64", "arm64"]),
                     help="Allow this architecture. Default: those on which the pods run."),
        click.option("--types", "names", default="", metavar="REGEX", help=
            "Include only types whose whole name matches this expression."),
        click.option("--region", default="", metavar="REGION",
                     help="The region of the prices. Default: the region label of the nodes."),
    ):  # fmt: skip
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _compile_names(names: str) -> re.Pattern[str] | None:
    try:
        return re.compile(names) if names else None
    except re.error as error:
        raise UsageError([ConfigError(file="--types", expected="a regular expression", got=str(error))]) from None
