"""The command line of `trimtab compactor`: it runs one replica; its subcommands read and change the cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from trimtab.cli.compactor.history import VIEW as HISTORY_VIEW
from trimtab.cli.compactor.history import HistoryFilter, build_history_report, watch_history
from trimtab.cli.compactor.pause_pool import describe_reopening, pause_pool
from trimtab.cli.complete_names import complete_nodes, complete_pools
from trimtab.cli.main import EXIT_USAGE, SuggestingGroup
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import add_report_options, emit_report
from trimtab.cli.reports import compactor_status as report_module
from trimtab.cli.shared_options import DURATION, add_login_options
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import PAUSED_MARK
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.pool_state import REOPENED_ANNOTATION
from trimtab.compactor.pool_state_store import config_map_name
from trimtab.compactor.process import run_compactor
from trimtab.compactor.settings import Settings
from trimtab.inputs import compactor_state as state
from trimtab.inputs.command_faults import UsageError
from trimtab.kube import objects
from trimtab.kube.client import MERGE_PATCH
from trimtab.kube.errors import NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, object_path
from trimtab.runtime import clock, environment, log
from trimtab.runtime.files import RuntimeFault

F = TypeVar("F", bound=Callable[..., Any])


def _add_login_options(function: F) -> F:
    """Decorate a subcommand with the options of a login, and with the compactor's namespace."""
    function = click.option(
        "-n", "--namespace", default=Settings().namespace, show_default=True, help="The namespace of the compactor."
    )(function)
    return add_login_options(function)


@click.group("compactor", cls=SuggestingGroup, invoke_without_command=True)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="The address for metrics and health. Default: 0.0.0.0:9090; with port 0 the system chooses a free port.",
)
@click.option("-n", "--namespace", help=f"Trimtab's own namespace. Default: {Settings().namespace}.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="A kubeconfig file. Default: the pod's account, or your kubeconfig.",
)
@click.option("--rehearse", is_flag=True, default=None, help="Start no drain, even if the mode of a pool is `act`.")
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path),
    help="A file that the process writes as soon as it serves metrics and health.",
)
@click.pass_context
def verb(context: click.Context, /, listen: str | None, **more: Any) -> None:
    """Run the compactor until a signal: plan, wait, check again, drain nodes within their budgets.

    A pool is only rehearsed until its ConfigMap has `mode: act`. You can also set every option in the environment, such
    as TRIMTAB_COMPACTOR_LISTEN; `trimtab explain TRIMTAB_COMPACTOR_LISTEN` explains one.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        settings = environment.read_with_options(os.environ, Settings, listen, more)
        run_compactor(settings, log.build_logger(settings.log_level, settings.log_format))
    except (RuntimeFault, ValueError) as error:
        print_text(str(error), err=True)
        sys.exit(EXIT_USAGE)


@verb.command("status")
@_add_login_options
@add_report_options
def show_status(form: str, output_file: str | None, **login: Any) -> None:
    """Show the leader, the drains that are under way, and the next nodes of each pool's plan."""
    report = report_module.build_status_report(state.read_compactor_state(state.ClusterLogin(**login), pods=True))
    emit_report(form, output_file, report, report_module.VIEW)


@verb.command("history")
@click.option("--pool", shell_complete=complete_pools, help="Show only decisions about this pool.")
@click.option("--node", shell_complete=complete_nodes, help="Show only decisions about this node.")
@click.option(
    "--since",
    "since_seconds",
    type=DURATION,
    metavar="DURATION",
    help="Show only the decisions of the last 30m, 12h or 7d, for example.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="NUMBER", help="Show at most this number of decisions, the latest ones."
)
@click.option(
    "--evictions/--no-evictions", default=True, show_default=True, help="Whether to print a line for each evicted pod."
)
@click.option("-w", "--watch", is_flag=True, help="Keep printing new decisions until you stop the command.")
@_add_login_options
@add_report_options
def show_history(
    pool: str | None, node: str | None, since_seconds: int | None, limit: int | None, evictions: bool, watch: bool,
    form: str, output_file: str | None, **login: Any,
) -> None:  # fmt: skip
    """Show the last decisions, each with its reason; the oldest is first."""
    if watch and form not in ("table", "wide", "name"):
        raise UsageError([ConfigError(file="--watch", expected="-o table, wide or name", got=form)])
    cluster_login = state.ClusterLogin(**login)
    compactor_state = state.read_compactor_state(cluster_login)
    filters = HistoryFilter(
        pool=pool, node=node, limit=limit, evictions=evictions,
        since=None if since_seconds is None else compactor_state.read_at - since_seconds,
    )  # fmt: skip
    report = build_history_report(compactor_state, filters)
    emit_report(form, output_file, report, HISTORY_VIEW)
    if watch:
        watch_history(cluster_login, filters, report, is_wide=form == "wide")


@verb.command("pause")
@click.option(
    "--why", default="true", help="The reason for the pause. Other users see it in the annotation and in the status."
)
@click.option(
    "--pool",
    shell_complete=complete_pools,
    help="Pause only this pool: set `mode: rehearse` in its ConfigMap. Default: pause everything, so that the "
    "webhook also admits pods unchanged.",
)
@_add_login_options
def pause_compactor(why: str, pool: str | None, **login: Any) -> None:
    """Pause all pools, or one: cordon no node, evict no pod, and uncordon the nodes that are being drained."""
    if pool is not None:
        if why != "true":
            raise UsageError([ConfigError(file="--why", expected="no reason: --pool stores none", got=why)])
        cluster_login = state.ClusterLogin(**login)
        with state.open_client(cluster_login) as client:
            for line in pause_pool(client, cluster_login.namespace, pool):
                print_text(line)
        return
    _annotate_namespace(state.ClusterLogin(**login), why or "true")
    print_text("paused")


@verb.command("resume")
@click.option(
    "--pool",
    shell_complete=complete_pools,
    help="Reopen this pool after failures closed it; a pool that `pause --pool` paused needs `mode: act` in its "
    "ConfigMap. Default: end the pause.",
)
@_add_login_options
def resume_compactor(pool: str | None, **login: Any) -> None:
    """End the pause, or reopen a closed pool."""
    cluster_login = state.ClusterLogin(**login)
    if pool is None:
        _annotate_namespace(cluster_login, None)
        print_text("resumed")
        return
    name, doing = config_map_name(pool), f"reopen pool {pool}"
    with state.open_client(cluster_login) as client:
        try:
            state_shape = objects.read_object(client, "ConfigMap", name, cluster_login.namespace)
            assert isinstance(state_shape, ConfigMap)
            pool_state = memories.decode_state(name, state_shape.data)
            reopened_at = report_module.choose_reopening_time(pool_state, int(clock.utc_now().timestamp()))
            body = {"metadata": {"annotations": {REOPENED_ANNOTATION: format_timestamp(reopened_at)}}}
            path = object_path(LIST_SOURCES["ConfigMap"], cluster_login.namespace, name)
            Writer(client=client, manager="trimtab-command").write(
                "PATCH", path, body, doing=doing, content_type=MERGE_PATCH
            )
            print_text(describe_reopening(client, cluster_login.namespace, pool, pool_state))
        except NotFound:
            raise UsageError(
                [ConfigError(file="--pool", expected="a pool whose state the compactor has stored", got=pool)]
            ) from None


@verb.command("release")
@click.argument("names", metavar="[NODE]...", nargs=-1, shell_complete=complete_nodes)
@click.option("--yes", is_flag=True, help="Uncordon the named nodes. Without this option the command only lists them.")
@_add_login_options
def release_drained_nodes(names: tuple[str, ...], yes: bool, **login: Any) -> None:
    """Uncordon nodes and remove their drain annotation; without NODE, list the nodes that have one.

    Use it for nodes that the compactor ignores because the annotation is not authentic: the signing key was lost, or
    another client wrote the annotation. If a drain of the node is under way, the compactor stops it.
    """
    if yes and not names:
        expected = "the names of the nodes to uncordon"
        raise UsageError(
            [ConfigError(file="command line", expected=expected, got="no names of nodes, although --yes needs them")]
        )
    cluster_login = state.ClusterLogin(**login)
    with state.open_client(cluster_login) as client:
        writer = Writer(client=client, manager="trimtab-command")
        annotated_nodes = state.find_annotated_nodes(writer, cluster_login.namespace, names)
        for node in annotated_nodes:
            print_text(str(node))
        if yes:
            for outcome in state.release_nodes(writer, annotated_nodes):
                print_text(outcome)
        elif annotated_nodes:
            node_names = " ".join(node.node.name for node in annotated_nodes if node.can_be_opened)
            print_text(f"Nothing was changed. To uncordon the nodes, run: trimtab compactor release --yes {node_names}")
        else:
            print_text("no node has a drain annotation of Trimtab")


def _annotate_namespace(login: state.ClusterLogin, value: str | None) -> None:
    with state.open_client(login) as client:
        # The pause may be an annotation or a label: null in a merge patch (RFC 7386) removes both.
        body = {"metadata": {"annotations": {PAUSED_MARK: value}, **({} if value else {"labels": {PAUSED_MARK: None}})}}
        path, doing = (
            object_path(LIST_SOURCES["Namespace"], "", login.namespace),
            f"annotate Namespace {login.namespace}",
        )
        Writer(client=client, manager="trimtab-command").write(
            "PATCH", path, body, doing=doing, content_type=MERGE_PATCH
        )
