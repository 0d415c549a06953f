"""`--cluster SNAPSHOT`: files and folders, or `live`, the cluster a kubeconfig speaks of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from trimtab.cluster.mistake import Mistake
from trimtab.cluster.snapshot import KINDS
from trimtab.command import files
from trimtab.command.main import Failed, Wrong

F = TypeVar("F", bound=Callable[..., Any])
LIVE = "live"
WITH_POLICIES = (*KINDS, "PodPolicy")
"""Kinds that are read where it counts what pods would be given if they were admitted again."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was given on the command line."""

    paths: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None


def login(function: F) -> F:
    """`--kubeconfig` and `--context`."""
    function = click.option("--context", metavar="NAME", help="Of the kubeconfig; default: its current one.")(function)
    return click.option(
        "--kubeconfig", metavar="FILE", help="Default: KUBECONFIG, then ~/.kube/config; in a pod, its own account."
    )(function)


def options(function: F) -> F:
    """`--cluster`, `--kubeconfig` and `--context`, given to the verb as one `cluster`."""

    @wraps(function)
    def verb(*, cluster_paths: tuple[str, ...], kubeconfig: str | None, context: str | None, **more: Any) -> Any:
        return function(cluster=Asked(cluster_paths, kubeconfig, context), **more)

    cluster = click.option(
        "--cluster", "cluster_paths", multiple=True, metavar="SNAPSHOT",
        help="What trimtab capture or kubectl get -o yaml printed; `live` reads the cluster now.",
    )  # fmt: skip
    return cluster(login(verb))  # type: ignore[return-value]


def read(asked: Asked, kinds: Iterable[str] = tuple(KINDS), *, templates: bool = False) -> list[files.Content]:
    """The snapshots as (name, content); see `captured`. Raises Wrong, or Failed where the cluster cannot be read."""
    found = files.read(path for path in asked.paths if path != LIVE)
    if LIVE not in asked.paths:
        if asked.kubeconfig or asked.context:
            came = "--kubeconfig" if asked.kubeconfig else "--context"
            raise Wrong([Mistake(file="command line", expected="--cluster live", came=f"{came} without it")])
        return found
    content, unreadable = captured(asked, kinds, templates=templates)
    if unreadable:
        raise Failed("\n".join(["The cluster holds what we cannot read; nothing was done.", *unreadable]))
    return [*found, (LIVE, content)]


def captured(
    asked: Asked, kinds: Iterable[str], salt: bytes | None = None, *, templates: bool = False
) -> tuple[bytes, list[str]]:
    """A capture of the cluster, and what in it could not be read.

    What owners make pods of is in it where `templates` says so, or where policies were read and found: only they ask.
    """
    from trimtab.kube.capture import observed, written
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect(asked.kubeconfig, asked.context)
        try:
            found = observed(client, kinds, _progress(), templates=templates)
        finally:
            client.close()
    except NotConfigured as error:
        raise Wrong([Mistake(file=asked.kubeconfig or "kubeconfig", expected="a cluster", came=str(error))]) from None
    except KubeFault as error:
        raise Failed(str(error)) from None
    return written(found.snapshot, found.unreadable, salt=salt), [str(wrong) for wrong in found.unreadable]


def _progress() -> Callable[[str], None]:
    """On a terminal, which list is being read; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda what: None
    return lambda what: click.echo(f"\r\x1b[Kreading {what} …\r\x1b[K", err=True, nl=False)
