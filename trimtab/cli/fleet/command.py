"""The command line of `trimtab fleet`: ingest, recommend, plan, machines and report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click
import msgspec

from trimtab.cli.fleet import report as reports
from trimtab.cli.fleet import table
from trimtab.cli.fleet.machine_groups import list_price_notes, report_machine_groups
from trimtab.cli.main import EXIT_FAILED, LazyGroup
from trimtab.cli.options import takes
from trimtab.cli.output import show_spinner
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster import usage_rule
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.fleet.cluster_digest import ClusterDigest
from trimtab.fleet.cluster_merge import MergeRules, find_merges
from trimtab.fleet.container_decisions import DecisionSettings
from trimtab.fleet.engine import LOCAL, Engine, LocalEngine
from trimtab.fleet.engine_spark import SparkEngine
from trimtab.fleet.money_report import MICRO_DOLLARS, ClusterFailure
from trimtab.fleet.run_decisions import FleetDecisions, decide_fleet
from trimtab.histogram.time_buckets import DAY
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.flags import DAYS, KUBECONFIG, NOW, ROWS, RULE, TEAM_LABEL, USAGE, WRITE
from trimtab.inputs.fleet_clusters import ClusterList, DigestJob, decode_digests, list_clusters, read_current
from trimtab.inputs.option import option
from trimtab.inputs.plan_inputs import parse_now
from trimtab.sizing.request import SizingSettings
from trimtab.usage.daily_store import DailyStore, StoredDay, select_days
from trimtab.usage.errors import UsageFault

SPARK_PREFIXES = ("spark://", "sc://", "local[", "k8s://", "yarn")
SUBCOMMANDS = {"ingest": "trimtab.cli.fleet.ingest"}
"""Subcommand → the module of its command line, which is imported only when the subcommand is used."""
NO_HISTORY_NOTE = (
    "Without --usage there is no history of usage, so Trimtab does not know how much of the requests is not needed."
)
MODEL_NOTE = (
    "Machine types are ranked by the sum of the requests in each group of clusters; `trimtab machines rank` also "
    "places the pods of one cluster."
)


@click.group("fleet", cls=LazyGroup, modules=SUBCOMMANDS)
def verb() -> None:
    """Recommend, plan and report for many clusters at once, on this machine or on Apache Spark.

    A cluster that cannot be read is named and left out, and the exit code is then 3.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetClusters:
    """The options that name the clusters."""

    clusters: Annotated[
        tuple[str, ...],
        option(
            "--clusters",
            metavar="FOLDER|CONTEXTS",
            help="A folder with a snapshot of each cluster (a file or a folder with the name of the "
            "cluster), or contexts of the kubeconfig, separated by commas. May be repeated.",
        ),
    ] = ()
    kubeconfig: Annotated[
        str | None, KUBECONFIG.with_help("The kubeconfig that contains the contexts of --clusters.")
    ] = None
    team_label: Annotated[str, TEAM_LABEL] = "team"
    now: Annotated[str | None, NOW] = None

    def list_clusters(self) -> ClusterList:
        """Returns the clusters, with those that cannot be read."""
        return list_clusters(self.clusters, self.kubeconfig, self.team_label)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHistory:
    """The options about the history of usage, and about the requests that are computed from it."""

    usage: Annotated[
        str | None,
        replace(
            USAGE,
            metavar="FOLDER|URL",
            help="The history of usage that `trimtab fleet ingest` or the recommender wrote.",
        ),
    ] = None
    days: Annotated[int, DAYS.with_help("The number of days of history to read.")] = 14
    rule: Annotated[str, RULE] = "adaptive"
    rows: Annotated[int, ROWS.with_help("The number of containers with the largest changes in the report.")] = 20
    write_to: Annotated[
        str, WRITE.with_help("Write the recommended request of every container to this folder as Parquet.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The options that choose where the work is done."""

    name: Annotated[
        str,
        option(
            "--engine",
            metavar="ENGINE",
            help="The engine: `local`, or the URL of a Spark master (spark://HOST:7077) or of Spark "
            "Connect (sc://HOST).",
        ),
    ] = LOCAL
    spark_conf: Annotated[
        tuple[str, ...],
        option(
            "--spark-conf",
            metavar="NAME=VALUE",
            help="A setting of the Spark session, such as spark.executor.memory=1g. May be repeated.",
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlanOptions:
    """The options of `trimtab fleet plan` and `trimtab fleet machines`."""

    clusters: FleetClusters
    engine: EngineOptions
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecommendOptions:
    """The options of `trimtab fleet recommend`."""

    clusters: FleetClusters
    history: FleetHistory
    engine: EngineOptions
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetReportOptions:
    """The options of `trimtab fleet report`."""

    clusters: FleetClusters
    history: FleetHistory
    control_plane_cost: Annotated[
        float,
        option(
            "--control-plane-cost",
            metavar="DOLLARS",
            minimum=0,
            help="The fixed monthly cost of a cluster, in addition to its nodes.",
        ),
    ] = 73.0
    engine: EngineOptions
    output: ReportOutput


@contextmanager
def open_engine(options: EngineOptions) -> Iterator[Engine]:
    """Yields the engine of this name. Raises UsageError for an unknown name."""
    name, spark_conf = options.name, options.spark_conf
    mistakes = [
        ConfigError(file="--spark-conf", expected="NAME=VALUE, such as spark.executor.memory=1g", got=repr(text))
        for text in spark_conf
        if "=" not in text
    ]
    if name != LOCAL and not name.startswith(SPARK_PREFIXES):
        expected = "local, or the URL of a Spark master such as spark://host:7077 or sc://host"
        mistakes.append(ConfigError(file="--engine", expected=expected, got=repr(name)))
    if mistakes:
        raise UsageError(mistakes)
    pairs = {part.partition("=")[0]: part.partition("=")[2] for part in spark_conf}
    engine: Engine = LocalEngine() if name == LOCAL else SparkEngine(name, pairs)
    try:
        yield engine
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    finally:
        engine.close()


def _finish(failures: Iterable[ClusterFailure], of: int) -> None:
    """Print the clusters that are left out to standard error, and exit with 3 if there are any."""
    all_failures = sorted(set(failures))
    for failure in all_failures:
        print_text(f"{failure.cluster}: {failure.problem}", err=True)
    if all_failures:
        count = len({failure.cluster for failure in all_failures})
        is_are = "is" if count == 1 else "are"
        print_text(
            f"{count} of {format_count(of, 'cluster')} {is_are} left out; the report covers the other clusters.",
            err=True,
        )
        click.get_current_context().exit(EXIT_FAILED)


def _list_history(location: str, days: int) -> list[StoredDay]:
    """Returns the files of the last days of the history. Raises UsageError if there are none, and RuntimeFailure if it
    cannot be read."""
    try:
        files = select_days(DailyStore(location).list_days(), None, days)
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    if not files:
        expected = "a history with files such as dt=2026-01-05/cluster=prod/usage.parquet"
        raise UsageError([ConfigError(file="--usage", expected=expected, got=f"no file of this form in {location}")])
    return files


def _parse_settings(rule: str, now: str | None) -> tuple[SizingSettings, int | None]:
    now_seconds, mistakes = parse_now(now)
    try:
        sizing = SizingSettings(rule=usage_rule.parse(rule))
    except ValueError as error:
        mistakes.append(ConfigError(file="--rule", expected=str(error), got=repr(rule)))
    if mistakes:
        raise UsageError(mistakes)
    return sizing, now_seconds


def _decide(
    engine: Engine,
    history: FleetHistory,
    files: Sequence[StoredDay],
    listed: ClusterList,
    sizing: SizingSettings,
    now: int,
) -> FleetDecisions:
    # Executors have another working directory.
    # A path as an absolute path; a URL or an empty text is returned unchanged.
    location, target = (
        text if not text or "://" in text else str(Path(text).resolve())
        for text in (history.usage or "", history.write_to)
    )
    settings = DecisionSettings(
        location=location, bucket_count=1, days=history.days, now=now, sizing=sizing, rows=history.rows, output=target
    )
    with show_spinner("Deciding"):
        return decide_fleet(engine, files, listed.states, settings, read_current)


def _history_notes(files: Sequence[StoredDay], listed: ClusterList) -> list[str]:
    with_usage, with_snapshot = {one.cluster for one in files}, {one.cluster for one in listed.sources}
    notes = []
    if with_snapshot and (missing := sorted(with_usage - with_snapshot)):
        notes.append(
            f"These clusters have no snapshot, so their present requests and costs are not known: {', '.join(missing)}."
        )
    if missing := sorted(with_snapshot - with_usage):
        notes.append(f"The history has no usage of these clusters: {', '.join(missing)}.")
    if not with_snapshot:
        notes.append("Without --clusters Trimtab does not know the present requests, and computes no saving.")
    return notes


@verb.command("recommend")
@takes(FleetRecommendOptions)
def recommend(options: FleetRecommendOptions) -> None:
    """Recommend requests for all containers of all clusters in a history, with sums by cluster, team and namespace.

    Reads the history of --usage, and the present requests of --clusters, and changes nothing. The result does not
    depend on the engine.
    """
    history = options.history
    sizing, now_seconds = _parse_settings(history.rule, options.clusters.now)
    if not history.usage:
        raise UsageError([ConfigError(file="command line", expected="--usage FOLDER|URL", got="none")])
    with open_engine(options.engine) as opened:
        files = _list_history(history.usage, history.days)
        listed = options.clusters.list_clusters()
        at = now_seconds if now_seconds is not None else (max(one.day for one in files) + 1) * DAY
        decided = _decide(opened, history, files, listed, sizing, at)
    failures = [*listed.failures, *decided.failures]
    report = reports.build_recommend_report(
        decided, listed.failures, at, history.days, str(sizing.rule), _history_notes(files, listed)
    )
    write_report(options.output, report, table.RECOMMEND_VIEW)
    _finish(failures, len({one.cluster for one in files} | {one.cluster for one in listed.sources}))


def _digest(engine: Engine, listed: ClusterList) -> tuple[list[ClusterDigest], list[ClusterFailure]]:
    with show_spinner("Planning"):
        digests, failures = decode_digests(
            engine.run_items(DigestJob(), [msgspec.msgpack.encode(one) for one in listed.sources])
        )
    return digests, [*listed.failures, *failures]


def _list_required(options: FleetClusters) -> ClusterList:
    _, mistakes = parse_now(options.now)
    if not options.clusters:
        mistakes.append(ConfigError(file="command line", expected="--clusters FOLDER|CONTEXTS", got="none"))
    if mistakes:
        raise UsageError(mistakes)
    return list_clusters(options.clusters, options.kubeconfig, options.team_label, options.now)


@verb.command("plan")
@takes(FleetPlanOptions)
def plan(options: FleetPlanOptions) -> None:
    """Plan the compaction of each cluster, with its own pools and policies, and show what the fleet saves.

    `trimtab plan` shows one cluster's plan in full. Nodes that Karpenter created are left to Karpenter.
    """
    listed = _list_required(options.clusters)
    with open_engine(options.engine) as opened:
        digests, failures = _digest(opened, listed)
    report = reports.build_plan_report(digests, failures)
    write_report(options.output, report, table.PLAN_VIEW)
    _finish(failures, len(listed.sources) + len(listed.failures))


@verb.command("machines")
@takes(FleetPlanOptions)
def machines(options: FleetPlanOptions) -> None:
    """Rank machine types for groups of similar clusters: one region, the same architectures, a similar ratio of GiB to
    cores."""
    listed = _list_required(options.clusters)
    with open_engine(options.engine) as opened:
        digests, failures = _digest(opened, listed)
    groups = report_machine_groups(digests)
    report = reports.FleetMachinesReport(
        groups=groups,
        failures=reports.report_failures(failures),
        notes=[*_workload_notes(digests), MODEL_NOTE, *list_price_notes(groups)],
    )
    write_report(options.output, report, table.MACHINES_VIEW)
    _finish(failures, len(listed.sources) + len(listed.failures))


def _workload_notes(digests: Iterable[ClusterDigest]) -> list[str]:
    return [f"{one.cluster}: {one.missing_workload}" for one in digests if one.workload is None]


@verb.command("report")
@takes(FleetReportOptions)
def report(options: FleetReportOptions) -> None:
    """Report the costs of the fleet by cluster, team and pool, the most wasteful first; and which clusters to merge.

    The report also names machine types for groups of similar clusters. Reads --clusters, and the history of --usage for
    the waste by requests; changes nothing.
    """
    history = options.history
    sizing, now_seconds = _parse_settings(history.rule, options.clusters.now)
    listed = _list_required(options.clusters)
    decided, at, notes = None, now_seconds, [NO_HISTORY_NOTE]
    with open_engine(options.engine) as opened:
        files = _list_history(history.usage, history.days) if history.usage else []
        digests, failures = _digest(opened, listed)
        if files:
            failed = {failure.cluster for failure in failures}
            readable = ClusterList(tuple(one for one in listed.sources if one.cluster not in failed))
            names = {one.cluster for one in readable.sources}
            at = now_seconds if now_seconds is not None else (max(one.day for one in files) + 1) * DAY
            own = [one for one in files if one.cluster in names]
            decided = _decide(opened, history, own, readable, sizing, at)
            notes = _history_notes([one for one in files if one.cluster not in failed], readable)
    if decided is not None:
        failures = [*failures, *decided.failures]
        digests = [one for one in digests if one.cluster not in {failure.cluster for failure in failures}]
    rules = MergeRules(control_plane_cost=round(options.control_plane_cost * MICRO_DOLLARS))
    groups = report_machine_groups(digests)
    built = reports.build_fleet_report(
        digests,
        decided,
        find_merges(digests, rules),
        groups,
        failures,
        at,
        [*notes, *_workload_notes(digests), MODEL_NOTE, *list_price_notes(groups)],
    )
    write_report(options.output, built, table.REPORT_VIEW)
    _finish(failures, len(listed.sources) + len(listed.failures))
