"""Paths of the command line, read; what cannot be read is a mistake of whoever asked.

`--cluster SNAPSHOT`: files and folders, or `live`, the cluster a kubeconfig speaks of.

What our recommender keeps in a live cluster: the history it gathered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trimtab.cli.main import RuntimeFailure, UsageError
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import NotYet
from trimtab.cluster.snapshot import KINDS, Snapshot, build
from trimtab.cluster.yaml_documents import read as read_documents
from trimtab.runtime import clock
from trimtab.runtime.files import ENDINGS, Content, UnreadableFiles, shipped
from trimtab.runtime.files import read as read_files

if TYPE_CHECKING:
    from trimtab.histogram.live_history import LiveHistory
    from trimtab.kube.client import Client


__all__ = ["Content", "read", "shipped"]


def read(paths: Iterable[str | Path], endings: tuple[str, ...] = ENDINGS) -> list[Content]:
    """Every file of every path. Raises Wrong naming all that cannot be read."""
    try:
        return read_files(paths, endings)
    except UnreadableFiles as error:
        raise UsageError(error.mistakes) from None


F = TypeVar("F", bound=Callable[..., Any])
LIVE = "live"
WITH_POLICIES = (*KINDS, "PodPolicy")
"""Kinds that are read where it counts what pods would be given if they were admitted again."""


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What was given on the command line."""

    paths: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """A cluster as a file."""

    content: bytes
    unreadable: tuple[str, ...]
    """Objects that could not be read, each with the reason."""
    forbidden: tuple[str, ...]
    """Kinds that the user was not allowed to list."""


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
        return function(cluster=ClusterOptions(cluster_paths, kubeconfig, context), **more)

    cluster = click.option(
        "--cluster", "cluster_paths", multiple=True, metavar="SNAPSHOT",
        help="What trimtab capture or kubectl get -o yaml printed; `live` reads the cluster now.",
    )  # fmt: skip
    return cluster(login(verb))  # type: ignore[return-value]


def read_live_objects(
    asked: ClusterOptions, kinds: Iterable[str] = tuple(KINDS), *, templates: bool = False
) -> list[Content]:
    """The snapshots as (name, content); see `captured`. Raises Wrong, or Failed where the cluster cannot be read."""
    found = read(path for path in asked.paths if path != LIVE)
    if LIVE not in asked.paths:
        if asked.kubeconfig or asked.context:
            got = "--kubeconfig" if asked.kubeconfig else "--context"
            raise UsageError([ConfigError(file="command line", expected="--cluster live", got=f"{got} without it")])
        return found
    capture = captured(asked, kinds, templates=templates)
    if capture.unreadable:
        raise RuntimeFailure(
            "\n".join(["The cluster holds what we cannot read; nothing was done.", *capture.unreadable])
        )
    return [*found, (LIVE, capture.content)]


def captured(
    asked: ClusterOptions, kinds: Iterable[str], salt: bytes | None = None, *, templates: bool = False
) -> Capture:
    """What the API server lists of these kinds now. Raises Wrong without a login, Failed where it cannot be read.

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
        raise UsageError(
            [ConfigError(file=asked.kubeconfig or "kubeconfig", expected="a cluster", got=str(error))]
        ) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    return Capture(
        written(found.snapshot, found.unreadable, salt=salt), tuple(str(wrong) for wrong in found.unreadable),
        tuple(sorted(found.snapshot.forbidden)),
    )  # fmt: skip


def _progress() -> Callable[[str], None]:
    """On a terminal, which list is being read; nothing elsewhere."""
    if not sys.stderr.isatty():
        return lambda what: None
    return lambda what: click.echo(f"\r\x1b[Kreading {what} …\r\x1b[K", err=True, nl=False)


def snapshot(asked: ClusterOptions, kinds: Iterable[str]) -> Snapshot:
    """What the files, or the cluster, hold of these kinds. Raises Wrong with every mistake, and where nothing is
    asked for."""
    if not asked.paths:
        raise UsageError([ConfigError(file="command line", expected="--cluster", got="none")])
    readings = [read_documents(*content) for content in read_live_objects(asked, kinds)]
    built = build([document for reading in readings for document in reading.documents])
    mistakes = [*(mistake for reading in readings for mistake in reading.mistakes), *built.mistakes]
    if mistakes:
        raise UsageError(mistakes)
    return built.snapshot


def diary(client: Client) -> tuple[LiveHistory, list[str]]:
    """All of it, empty where it does not run; and what of it could not be read."""
    from trimtab.histogram.live_history import LiveHistory as Diary
    from trimtab.kube.objects import Writer
    from trimtab.policy.cluster_facts import OWN_NAMESPACE
    from trimtab.recommender.checkpointer import Checkpointer as Checkpoints
    from trimtab.recommender.sharded_configmaps import StoreUnavailable as NotNow
    from trimtab.recommender.sharded_configmaps import days, usage
    from trimtab.recommender.write_budget import WriteBudget as Budget

    found = Diary()
    try:
        writer = Writer(client=client)
        shelves = usage(writer, OWN_NAMESPACE), days(writer, OWN_NAMESPACE)
        wrong = Checkpoints(*shelves, found, 0.0, Budget(0, float), float).open()
    except NotNow as error:
        return found, [f"What the recommender keeps could not be read: {error}"]
    return found, [f"The recommender's {one}" for one in wrong]


def missing(cluster: ClusterOptions) -> tuple[dict[tuple[str, str], NotYet], list[str]]:
    """(workload, container) → what is missing until a recommendation is given; and what could not be read."""
    from trimtab.histogram.checkpoint import workload
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault
    from trimtab.recommender.publisher import verdicts

    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            found, notes = diary(client)
        finally:
            client.close()
    except KubeFault as error:
        return {}, [f"What the recommender keeps could not be read: {error}"]
    lacking = verdicts(found, int(clock.utc().timestamp())).missing
    return {(workload(one), one.name): next(iter(parts.values())) for one, parts in lacking.items()}, notes
