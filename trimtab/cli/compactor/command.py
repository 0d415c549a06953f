"""The command line of `trimtab compactor`: it runs one replica; its subcommands read and change the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from trimtab.cli.compactor.history import VIEW as HISTORY_VIEW
from trimtab.cli.compactor.history import WHOLE_VIEW as WHOLE_HISTORY_VIEW
from trimtab.cli.compactor.history import HistoryFilter, build_history_report, watch_history
from trimtab.cli.compactor.pause_pool import describe_reopening, pause_pool
from trimtab.cli.complete_names import complete_nodes
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reports import compactor_status as report_module
from trimtab.cli.run_process import report_start_faults, run_process
from trimtab.cli.since import parse_since
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pause_mark import PAUSED_MARK
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.pool_state import REOPENED_ANNOTATION
from trimtab.compactor.pool_state_store import config_map_name
from trimtab.compactor.process import run_compactor
from trimtab.compactor.settings import Settings
from trimtab.inputs import compactor_state as state
from trimtab.inputs.command_faults import UsageError, check_names
from trimtab.inputs.compactor_state import ClusterLogin
from trimtab.inputs.flags import KUBECONFIG, LISTEN, POOL, READY_FILE, SINCE, SYSTEM_NAMESPACE, WHY, YES
from trimtab.inputs.option import Argument, option
from trimtab.inputs.stored_state import StoredStateOptions
from trimtab.kube import objects
from trimtab.kube.client import MERGE_PATCH
from trimtab.kube.errors import NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, object_path
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactorOptions:
    """The options of `trimtab compactor`, the process."""

    listen: Annotated[
        str | None,
        LISTEN.with_help(
            "The address for metrics and health. Default: 0.0.0.0:9090; with port 0 the system chooses a free port."
        ),
    ] = None
    namespace: Annotated[
        str | None,
        SYSTEM_NAMESPACE.with_help(f"The namespace in which Trimtab is installed. Default: {Settings().namespace}."),
    ] = None
    kubeconfig: Annotated[
        Path | None, KUBECONFIG.with_help("A kubeconfig file. Default: the pod's account, or your kubeconfig.")
    ] = None
    rehearse: Annotated[
        bool | None, option("--rehearse", help="Start no drain, even if the mode of a pool is `act`.")
    ] = None
    ready_file: Annotated[
        Path | None, READY_FILE.with_help("A file that the process writes as soon as it serves metrics and health.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """The options of `trimtab compactor status`."""

    login: ClusterLogin
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """The options of `trimtab compactor history`."""

    pool: Annotated[str | None, POOL.with_help("Show only decisions about this pool.")] = None
    node: Annotated[str | None, option("--node", metavar="NAME", help="Show only decisions about this node.")] = None
    since: Annotated[
        str | None,
        SINCE.with_help(
            "Show only the decisions since then: an age such as 30m, 12h or 7d, or a date such as 2026-11-01."
        ),
    ] = None
    limit: Annotated[
        int | None,
        option("--limit", minimum=1, metavar="NUMBER", help="Show at most this number of decisions, the latest ones."),
    ] = None
    evictions: Annotated[
        bool, option("--evictions/--no-evictions", help="Whether to print a line for each evicted pod.")
    ] = True
    watch: Annotated[bool, option("-w", "--watch", help="Keep printing new decisions until you stop the command.")] = (
        False
    )
    source: StoredStateOptions
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOptions:
    """The options of `trimtab compactor pause`."""

    why: Annotated[
        str, WHY.with_help("The reason for the pause. Other users see it in the annotation and in the status.")
    ] = ""
    pool: Annotated[
        str | None,
        POOL.with_help(
            "Pause only this pool: set `mode: rehearse` in its ConfigMap. Default: pause everything, so that the "
            "webhook also admits pods unchanged."
        ),
    ] = None
    login: ClusterLogin


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """The options of `trimtab compactor resume`."""

    pool: Annotated[
        str | None,
        POOL.with_help(
            "Reopen this pool after failures closed it; a pool that `pause --pool` paused needs `mode: act` in its "
            "ConfigMap. Default: end the pause."
        ),
    ] = None
    login: ClusterLogin


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOptions:
    """The options of `trimtab compactor release`."""

    names: Annotated[tuple[str, ...], Argument("[NODE]...", is_required=False, complete=complete_nodes)] = ()
    yes: Annotated[
        bool, YES.with_help("Uncordon the named nodes. Without this option the command only lists them.")
    ] = False
    login: ClusterLogin


@click.group(Settings.process, cls=SuggestingGroup, invoke_without_command=True)
@click.pass_context
@takes(CompactorOptions)
def verb(context: click.Context, options: CompactorOptions) -> None:
    """Run the compactor until a signal: plan, wait, check again, drain nodes within their budgets.

    A pool is only rehearsed until its ConfigMap has `mode: act`. You can also set every option in the environment, such
    as TRIMTAB_COMPACTOR_LISTEN; `trimtab explain TRIMTAB_COMPACTOR_LISTEN` explains one.
    """
    if context.invoked_subcommand is not None:
        return
    with report_start_faults():
        run_process(Settings, options, run_compactor)


@verb.command("status")
@takes(StatusOptions)
def show_status(options: StatusOptions) -> None:
    """Show the leader, the drains that are under way, and the next nodes of each pool's plan."""
    report = report_module.build_status_report(state.read_compactor_state(options.login, pods=True))
    write_report(options.output, report, report_module.VIEW)


@verb.command("history")
@takes(HistoryOptions)
def show_history(options: HistoryOptions) -> None:
    """Show the last decisions, each with its reason; the oldest is first."""
    form = options.output.form
    if options.watch and form not in ("table", "wide", "name"):
        raise UsageError([ConfigError(file="--watch", expected="-o table, wide or name", got=form)])
    if options.watch and not options.source.is_live:
        raise UsageError([ConfigError(file="--watch", expected="a live cluster", got="files")])
    compactor_state = options.source.read()
    if options.pool is not None:
        pools = (*compactor_state.pool_states, *(pool.name for pool in compactor_state.pools.pools))
        check_names("--pool", "a pool of the compactor", [options.pool], pools)
    filters = HistoryFilter(
        pool=options.pool,
        node=options.node,
        limit=options.limit,
        evictions=options.evictions,
        since=None if options.since is None else parse_since(options.since, compactor_state.read_at),
    )
    report = build_history_report(compactor_state, filters)
    write_report(options.output, report, HISTORY_VIEW if options.limit is None else WHOLE_HISTORY_VIEW)
    if options.watch:
        watch_history(options.source.login, filters, report, is_wide=form == "wide")


@verb.command("pause")
@takes(PauseOptions)
def pause_compactor(options: PauseOptions) -> None:
    """Pause all pools, or one: cordon no node, evict no pod, and uncordon the nodes that are being drained."""
    login, why = options.login, options.why
    if options.pool is not None:
        if why:
            raise UsageError([ConfigError(file="--why", expected="no reason: --pool stores none", got=why)])
        with state.open_client(login) as client:
            for line in pause_pool(client, login.namespace, options.pool):
                print_text(line)
        return
    _annotate_namespace(login, why or "true")
    print_text("paused")


@verb.command("resume")
@takes(ResumeOptions)
def resume_compactor(options: ResumeOptions) -> None:
    """End the pause, or reopen a closed pool."""
    cluster_login, pool = options.login, options.pool
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
@takes(ReleaseOptions)
def release_drained_nodes(options: ReleaseOptions) -> None:
    """Uncordon nodes and remove their drain annotation; without NODE, list the nodes that have one.

    Use it for nodes that the compactor ignores because the annotation is not authentic: the signing key was lost, or
    another client wrote the annotation. If a drain of the node is under way, the compactor stops it.
    """
    names = options.names
    if options.yes and not names:
        expected = "the names of the nodes to uncordon"
        raise UsageError(
            [ConfigError(file="command line", expected=expected, got="no names of nodes, although --yes needs them")]
        )
    with state.open_client(options.login) as client:
        writer = Writer(client=client, manager="trimtab-command")
        annotated_nodes = state.find_annotated_nodes(writer, options.login.namespace, names)
        for node in annotated_nodes:
            print_text(str(node))
        if options.yes:
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
