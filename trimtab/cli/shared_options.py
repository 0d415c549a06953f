"""Options that several verbs share."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import live_cluster

F = TypeVar("F", bound=Callable[..., Any])


def add_login_options(function: F) -> F:
    """Decorate a click command with `--kubeconfig` and `--context`."""
    function = click.option(
        "--context", metavar="NAME", help="A context of the kubeconfig. Default: the current context."
    )(function)
    return click.option(
        "--kubeconfig",
        metavar="FILE",
        help="A kubeconfig file. Default: KUBECONFIG, then ~/.kube/config; in a pod, its own account.",
    )(function)


def add_cluster_options(function: F) -> F:
    """Decorate a click command with `--cluster`, `--kubeconfig` and `--context`; the command receives them as
    `cluster`."""

    @wraps(function)
    def verb(*, cluster_paths: tuple[str, ...], kubeconfig: str | None, context: str | None, **more: Any) -> Any:
        return function(cluster=live_cluster.ClusterOptions(cluster_paths, kubeconfig, context), **more)

    cluster = click.option(
        "--cluster", "cluster_paths", multiple=True, metavar="SNAPSHOT",
        help="A file or folder from trimtab capture or kubectl get -o yaml; `live` reads the cluster.",
    )  # fmt: skip
    return cluster(add_login_options(verb))  # type: ignore[return-value]


def add_price_option(function: F) -> F:
    """Decorate a click command with `--prices`; the command receives the sources as `price_paths`."""
    return click.option(
        "--prices", "price_paths", multiple=True, metavar="FILE|URL",
        help=
            "A file with the prices that you pay: OpenCost's CSV, or the JSON of OpenCost's /assets or of the "
            "Prometheus metric node_total_hourly_cost. These prices take precedence over labels, settings and "
            "list prices.",
    )(function)  # fmt: skip


def parse_minor_version(text: str) -> tuple[int, int] | None:
    """Returns the version as numbers, (1, 37) for "1.37", "v1.37.2" and "1.37+", or None if the text is no version."""
    pieces = text.removeprefix("v").split(".")
    minor = pieces[1].rstrip("+") if len(pieces) > 1 else ""
    return (int(pieces[0]), int(minor)) if pieces[0].isdecimal() and minor.isdecimal() else None


WINDOW = re.compile(r"[1-9]\d*(s|m|h)")
"""The syntax of a range in PromQL, such as 5m."""


def check_maximum(flag: str, value: int, maximum: int) -> list[ConfigError]:
    """Returns the mistake of a number that is too large for this verb, although other verbs allow it."""
    return [ConfigError(file=flag, expected=f"at most {maximum}", got=str(value))] if value > maximum else []


def needs_cluster(option: str) -> ConfigError:
    """Returns the mistake of asking for manifests of workloads of which only the usage is known."""
    todo = (
        "add --cluster with a snapshot or with your manifests: Trimtab cannot derive the kind of a workload from the "
        "names of its pods, and usage contains no limits"
    )
    return ConfigError(file=option, expected="--cluster", got="none", todo=todo)
