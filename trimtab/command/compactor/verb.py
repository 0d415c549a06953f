"""`trimtab compactor`: run one replica; ask it and tell it things through the cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from trimtab.cluster.mistake import Mistake
from trimtab.cluster.moment import written
from trimtab.cluster.paused import PAUSED
from trimtab.cluster.snapshot import ConfigMap
from trimtab.command import live, output
from trimtab.command.compactor import asked, draw, tell
from trimtab.command.main import ASKED_WRONGLY, Wrong
from trimtab.compaction.drain import memory as memories
from trimtab.compaction.drain.memory import REOPENED
from trimtab.compactor.process import run
from trimtab.compactor.settings import Settings
from trimtab.compactor.store import name_of
from trimtab.kube import objects
from trimtab.kube.client import MERGE
from trimtab.kube.errors import NotFound
from trimtab.kube.kinds import PLACES, one
from trimtab.kube.writer import Writer
from trimtab.runtime import clock, environment, log
from trimtab.runtime.errors import RuntimeFault

F = TypeVar("F", bound=Callable[..., Any])


def _login(function: F) -> F:
    function = click.option(
        "--namespace", default=Settings().namespace, show_default=True, help="Where the compactor lives."
    )(function)
    return live.login(function)


@click.group("compactor", invoke_without_command=True)
@click.option(
    "--listen", metavar="HOST:PORT", help="Metrics and health; default 0.0.0.0:9090, port 0 takes a free one."
)
@click.option("--namespace", help=f"Our own namespace; default {Settings().namespace}.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Default: the pod's account, else your kubeconfig.")
@click.option("--rehearse", is_flag=True, default=None, help="Begin nothing, whatever the pools say.")
@click.option("--ready-file", type=click.Path(path_type=Path), help="Written once the pages are served.")
@click.pass_context
def verb(context: click.Context, /, listen: str | None, **more: Any) -> None:
    """Run the compactor until a signal: plan, wait, look afresh, empty nodes one budget at a time.

    Pools only rehearse until their ConfigMap says `mode: act`. Every option can be set in the environment too, as
    TRIMTAB_LISTEN and so on; docs/reference/settings.md has them all.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        given = dict(os.environ)
        if listen is not None:
            given["TRIMTAB_LISTEN"] = listen
        settings = environment.read_as(given, Settings)
        settings = replace(settings, **{name: value for name, value in more.items() if value is not None})
        run(settings, log.build(settings.log_level, settings.log_format))
    except (RuntimeFault, ValueError) as error:
        click.echo(str(error), err=True)
        sys.exit(ASKED_WRONGLY)


@verb.command("status")
@_login
@output.options
def status(output: str, output_file: str | None, **login: Any) -> None:
    """Who leads, what is under way, and what each pool would do next."""
    report = tell.status(asked.found(asked.Login(**login), pods=True))
    _emit(output, output_file, report, lambda console: draw.status(console, report))


@verb.command("history")
@click.option("--pool", help="Only of this pool.")
@click.option("--node", help="Only of this node.")
@_login
@output.options
def history(pool: str | None, node: str | None, output: str, output_file: str | None, **login: Any) -> None:
    """The last decisions, each with its reason."""
    report = tell.history(asked.found(asked.Login(**login)), pool, node)
    _emit(output, output_file, report, lambda console: draw.history(console, report))


@verb.command("pause")
@click.option("--why", default="true", help="Written down, for the others.")
@_login
def pause(why: str, **login: Any) -> None:
    """Stop everything: no node is cordoned, no pod evicted; what is not empty yet is given back."""
    _annotate_namespace(asked.Login(**login), why or "true")
    click.echo("paused")


@verb.command("resume")
@click.option("--pool", help="Open this pool again, which failures had closed; else the pause is ended.")
@_login
def resume(pool: str | None, **login: Any) -> None:
    """End the pause, or open a closed pool again."""
    where = asked.Login(**login)
    if pool is None:
        _annotate_namespace(where, None)
        click.echo("resumed")
        return
    name, doing = name_of(pool), f"reopen pool {pool}"
    with asked.opened(where) as client:
        try:
            kept = objects.read(client, "ConfigMap", name, where.namespace)
            assert isinstance(kept, ConfigMap)
            at = tell.reopening(memories.read(name, kept.data), int(clock.utc().timestamp()))
            body = {"metadata": {"annotations": {REOPENED: written(at)}}}
            path = one(PLACES["ConfigMap"], where.namespace, name)
            Writer(client=client, manager="trimtab-command").write("PATCH", path, body, doing=doing, content_type=MERGE)
        except NotFound:
            raise Wrong([Mistake(file="--pool", expected="a pool the compactor knows", came=pool)]) from None
    click.echo(f"pool {pool} is open again")


def _annotate_namespace(login: asked.Login, value: str | None) -> None:
    with asked.opened(login) as client:
        body = {"metadata": {"annotations": {PAUSED: value}, **({} if value else {"labels": {PAUSED: None}})}}
        path, doing = one(PLACES["Namespace"], "", login.namespace), f"annotate Namespace {login.namespace}"
        Writer(client=client, manager="trimtab-command").write("PATCH", path, body, doing=doing, content_type=MERGE)


def _emit(form: str, output_file: str | None, report: Any, drawn: Any) -> None:
    output.emit(form, output_file, report, drawn, "trimtab compactor")
