"""The command line of `trimtab top`: the live screen, or one printed view with `--once`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, TextIO

import click

from trimtab.cli.options import takes
from trimtab.cli.output import create_console
from trimtab.cli.top.draw import draw_once
from trimtab.cli.top.view import TopView, build_top_view, select_part
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.compactor_state import ClusterLogin
from trimtab.inputs.flags import ONCE, POOL
from trimtab.inputs.option import option
from trimtab.inputs.watched_state import WatchedState, watch_compactor_state

EXTRA = "textual"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOptions:
    """The options of `trimtab top`."""

    pool: Annotated[str | None, POOL.with_help("Start with only this pool.")] = None
    interval: Annotated[
        float,
        option(
            "--interval",
            minimum=1,
            metavar="SECONDS",
            help="The time between two updates of the view. The cluster is watched, not listed again.",
        ),
    ] = 5.0
    once: Annotated[
        bool, ONCE.with_help("Print the view once as text. This is the default if standard output is not a terminal.")
    ] = False
    login: ClusterLogin


@click.command("top")
@takes(TopOptions)
def verb(options: TopOptions) -> None:
    """Watch pools and nodes live: what is next, what it waits for, the last decisions, what was saved.

    Nothing is changed. The live screen needs the extra `top` (`pip install '.[top]'`); `--once` does not. Keys: p the
    next pool, l only nodes that are being removed, d decisions, r refresh, q quit.
    """
    is_live = not options.once and can_draw_screen((sys.stdin, sys.stdout, sys.stderr))
    if is_live and find_spec(EXTRA) is None:
        expected = "the extra `top` (pip install '.[top]' in a clone), or --once"
        raise UsageError([ConfigError(file="trimtab top", expected=expected, got=f"no Python package {EXTRA}")])
    with _open_views(options.login) as watched:
        if not is_live:
            console = create_console()
            console.print(draw_once(select_part(_read_view(watched), options.pool), console.width))
            return
        from trimtab.cli.top.app import TopScreen

        TopScreen(lambda: _read_view(watched), options.interval, options.pool).run()


def can_draw_screen(streams: Iterable[TextIO]) -> bool:
    """Returns whether all of these streams are a terminal: Textual draws on standard error and reads from standard
    input."""
    return all(stream.isatty() for stream in streams)


@contextmanager
def _open_views(login: ClusterLogin) -> Iterator[WatchedState]:
    with watch_compactor_state(login) as watched:
        watched.wait_until_synced()
        yield watched


def _read_view(watched: WatchedState) -> TopView:
    return build_top_view(watched.read(), watched.errors())
