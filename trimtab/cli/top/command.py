"""The command line of `trimtab top`: the live screen, or one printed view with `--once`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TextIO

import click

from trimtab.cli.complete_names import complete_pools
from trimtab.cli.output import create_console
from trimtab.cli.shared_options import add_login_options
from trimtab.cli.top.draw import draw_once
from trimtab.cli.top.view import TopView, build_top_view, select_part
from trimtab.cluster.config_error import ConfigError
from trimtab.compactor.settings import Settings
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.compactor_state import ClusterLogin
from trimtab.inputs.watched_state import WatchedState, watch_compactor_state

EXTRA = "textual"


@click.command("top")
@click.option("--pool", shell_complete=complete_pools, help="Start with only this pool.")
@click.option(
    "--interval", "interval_seconds", type=click.FloatRange(min=1), default=5.0, show_default=True, metavar="SECONDS",
    help="The time between two updates of the view. The cluster is watched, not listed again.",
)  # fmt: skip
@click.option(
    "--once",
    is_flag=True,
    help="Print the view once as text. This is the default if standard output is not a terminal.",
)
@click.option(
    "-n", "--namespace", default=Settings().namespace, show_default=True, help="The namespace of the compactor."
)
@add_login_options
def verb(pool: str | None, interval_seconds: float, once: bool, **login: Any) -> None:
    """Watch pools and nodes live: what is next, what it waits for, the last decisions, what was saved.

    Nothing is changed. The live screen needs the extra `top` (`pip install '.[top]'`); `--once` does not. Keys: p the
    next pool, l only nodes that are being removed, d decisions, r refresh, q quit.
    """
    is_live = not once and can_draw_screen((sys.stdin, sys.stdout, sys.stderr))
    if is_live and find_spec(EXTRA) is None:
        expected = "the extra `top` (pip install '.[top]' in a clone), or --once"
        raise UsageError([ConfigError(file="trimtab top", expected=expected, got=f"no Python package {EXTRA}")])
    with _open_views(ClusterLogin(**login)) as watched:
        if not is_live:
            console = create_console()
            console.print(draw_once(select_part(_read_view(watched), pool), console.width))
            return
        from trimtab.cli.top.app import TopScreen

        TopScreen(lambda: _read_view(watched), interval_seconds, pool).run()


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
