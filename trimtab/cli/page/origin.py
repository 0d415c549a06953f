"""What every page says of itself: the cluster, the time, the version, and the command that makes the page again.

A page is sent to others and read weeks later, so it must say without its sender what it is about.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click
from markupsafe import Markup

from trimtab.cli.repeat_command import repeat_command
from trimtab.inputs.live_cluster import LIVE
from trimtab.runtime import clock

_LINE = Markup('<p class="soft origin">{}. Made at {} by trimtab {}: <code>{}</code></p>')


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOrigin:
    """The origin of a page."""

    cluster: str
    """Where the objects come from, as the start of a sentence."""
    at: str
    version: str
    command: str


def find_origin() -> PageOrigin:
    """Returns the origin of the page that the running command makes."""
    return PageOrigin(
        cluster=_describe_cluster(click.get_current_context(silent=True)),
        at=clock.utc_now().strftime("%Y-%m-%d %H:%M UTC"),
        version=version("trimtab"),
        command=repeat_command(),
    )


def render_origin(origin: PageOrigin) -> Markup:
    """Returns the line that stands below the headline of a page."""
    return _LINE.format(origin.cluster, origin.at, origin.version, origin.command or "trimtab")


def _describe_cluster(context: click.Context | None) -> str:
    """Returns the name of the live cluster, or the names of the files that the command reads."""
    parameters = context.params if context is not None else {}
    paths = [str(path) for path in parameters.get("cluster") or ()]
    if LIVE in paths:
        from trimtab.kube.client import name_cluster  # a snapshot needs no client

        return f"Cluster {name_cluster(parameters.get('kubeconfig'), parameters.get('context'))}"
    files = [Path(path).name if path != "-" else "standard input" for path in paths]
    return f"Snapshot {', '.join(files)}" if files else "Without a snapshot of a cluster"
