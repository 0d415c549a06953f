"""The command line of `trimtab fleet ingest`, which reads whole days of usage from Prometheus or files into a
history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import click

from trimtab.cli.fleet.report import FailureReport, report_failures
from trimtab.cli.main import EXIT_FAILED
from trimtab.cli.options import takes
from trimtab.cli.output import show_spinner
from trimtab.cli.print_text import print_text
from trimtab.cli.shared_options import WINDOW, check_maximum
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import format_timestamp
from trimtab.fleet.money_report import ClusterFailure
from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.daily_rows import rows_of_batch
from trimtab.histogram.time_buckets import DAY
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.flags import BY, DAYS, MATCHER, NOW_BY_CLOCK, PROMETHEUS, RATE, STEP, USAGE
from trimtab.inputs.option import option
from trimtab.inputs.plan_inputs import parse_now
from trimtab.inputs.prometheus_login import PrometheusLogin
from trimtab.inputs.stated_quantities import QUANTITY
from trimtab.inputs.usage_sources import UsageHistories, add_files, note_warning
from trimtab.runtime import clock
from trimtab.usage.cluster_label import LABELS, Matchers, escape_value
from trimtab.usage.daily_ingest import DayReader, last_complete_day
from trimtab.usage.daily_store import DailyStore, import_arrow
from trimtab.usage.errors import UsageFault
from trimtab.usage.http_client import HttpApi
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.server_warnings import DistinctWarnings

MAX_STEP = 3600
"""The largest number of seconds between two points of a series."""
MAX_SAMPLE_DAYS = 366
"""The largest number of days of samples that are read from files."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The series of one cluster in a Prometheus server."""

    cluster: str
    prometheus: Prometheus


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNaming:
    """The options that say which cluster the usage is of."""

    cluster_name: Annotated[
        str,
        option(
            "--cluster-name",
            metavar="NAME",
            help="The name of the cluster, if the server has the series of one cluster only.",
        ),
    ] = ""
    by: Annotated[
        str,
        BY.with_help(
            "The label that names the cluster, if the server has the series of several clusters; Trimtab "
            "stores each cluster separately."
        ),
    ] = ""
    prefix: Annotated[
        str, option("--prefix", metavar="TEXT", help="A prefix for the names of clusters that --by finds.")
    ] = ""
    matcher: Annotated[str, MATCHER] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """The options of `trimtab fleet ingest`."""

    url: Annotated[str | None, PROMETHEUS.with_help("The URL of Prometheus, Thanos, Mimir or VictoriaMetrics.")] = None
    samples: Annotated[
        tuple[str, ...],
        option(
            "--samples",
            metavar="PATH",
            help="Read these files instead of --prometheus, in the forms of `trimtab recommend --usage`.",
        ),
    ] = ()
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    usage: Annotated[
        str,
        replace(
            USAGE,
            metavar="FOLDER|URL",
            help="The history of usage to write: a folder, or an object store such as s3://bucket/history.",
        ),
    ]
    naming: ClusterNaming
    login: PrometheusLogin
    days: Annotated[
        int,
        DAYS.with_help(
            "The number of whole days to read, up to yesterday. Days that the history already contains are skipped."
        ),
    ] = 14
    again: Annotated[
        bool, option("--again", help="Also read days that the history already contains, and replace them.")
    ] = False
    step: Annotated[
        int, STEP.with_help(f"The number of seconds between two points of a series, at most {MAX_STEP}.")
    ] = 300
    rate: Annotated[str, RATE] = "5m"
    now: Annotated[str | None, NOW_BY_CLOCK] = None


@click.command("ingest")
@takes(IngestOptions)
def verb(options: IngestOptions) -> None:
    """Read whole days of usage from Prometheus or files, and write them to a history as daily histograms.

    Days that are in the history are not read again, so a nightly run reads one day. The usage of two clusters is never
    mixed: a server with several clusters needs --by or --matcher. A cluster that cannot be read is named, and the
    others are still read.
    """
    now_seconds = _check_options(options)
    naming, days = options.naming, options.days
    if options.url is None:
        _ingest_samples(options)
        return
    plan = QueryPlan(step_seconds=options.step, rate_window=options.rate, extra_matcher=naming.matcher)
    api = HttpApi(options.url, options.login.parse_headers(), options.login.ca, None, None)
    server = Prometheus(api, plan, DistinctWarnings(_print_warning))
    last = last_complete_day(now_seconds)
    wanted = range(last - days + 1, last + 1)
    store = DailyStore(options.usage)
    try:
        import_arrow()
        present = {(one.cluster, one.day) for one in store.list_days()} if not options.again else set()
        with show_spinner("Listing clusters"):
            parts = list(_list_parts(server, naming, wanted))
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    failures = [failure for part in parts for failure in _ingest_cluster(part, store, wanted, present)]
    _finish(report_failures(failures), len(parts))


def _print_warning(warning: str) -> None:
    print_text(note_warning(warning), err=True)


def _check_options(options: IngestOptions) -> int:
    """Returns the present time. Raises UsageError with every mistake."""
    url, by, rate, matcher = options.url, options.naming.by, options.rate, options.naming.matcher
    now_seconds, mistakes = parse_now(options.now)
    mistakes += check_maximum("--step", options.step, MAX_STEP)
    if (url is None) == (not options.samples):
        got = "both" if options.samples else "neither"
        mistakes.append(ConfigError(file="command line", expected="--prometheus URL or --samples PATH", got=got))
    if url is not None and not url.startswith(("http://", "https://")):
        expected = "a URL such as https://prometheus:9090"
        mistakes.append(ConfigError(file="--prometheus", expected=expected, got=url))
    if bool(options.naming.cluster_name) == bool(by):
        expected = "--cluster-name NAME for one cluster, or --by LABEL for several"
        got = "both" if by else "neither"
        mistakes.append(ConfigError(file="command line", expected=expected, got=got))
    if by and by not in LABELS:
        expected = f"a label that distinguishes clusters: {', '.join(LABELS)}"
        mistakes.append(ConfigError(file="--by", expected=expected, got=repr(by)))
    if not WINDOW.fullmatch(rate):
        mistakes.append(ConfigError(file="--rate", expected="a window such as 5m or 2h", got=repr(rate)))
    try:
        Matchers.from_text(matcher)
    except ValueError as error:
        mistakes.append(ConfigError(file="--matcher", expected=str(error), got=repr(matcher)))
    if mistakes:
        raise UsageError(mistakes)
    return now_seconds if now_seconds is not None else int(clock.utc_now().timestamp())


def _ingest_samples(options: IngestOptions) -> None:
    """Write all days of the samples to the history. Days that the history already has are replaced.

    Raises UsageError with all mistakes of the files, also if the usage of several clusters would be mixed. Raises
    RuntimeFailure if the history cannot be written."""
    naming, store = options.naming, DailyStore(options.usage)
    histories = UsageHistories(lambda: BatchHistory(MAX_SAMPLE_DAYS), Matchers.from_text(naming.matcher), naming.by)
    for note in add_files(histories, options.samples, OwnerIndex(), None, options.stated):
        print_text(note, err=True)
    try:
        for value, history in sorted(histories.histories.items()):
            cluster = naming.prefix + value if naming.by else naming.cluster_name
            for day in sorted({day for window in history.dense_windows.values() for day in window.days}):
                rows = list(rows_of_batch(history, day))
                store.write_day(cluster, day, rows)
                print_text(_describe_day(cluster, day, len(rows), 0))
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None


def _list_parts(prometheus: Prometheus, naming: ClusterNaming, days: range) -> Iterator[_Part]:
    """Yields the series of each cluster in the server. Raises UsageFault, also if the usage of several clusters would
    be mixed."""
    start, end = days[0] * DAY, days[-1] * DAY + DAY - 1
    if not naming.by:
        yield _Part(naming.cluster_name, prometheus)
        return
    for value in prometheus.list_label_values(naming.by, start, end):
        if value:
            matchers = ",".join(
                part for part in (prometheus.query_plan.extra_matcher, f'{naming.by}="{escape_value(value)}"') if part
            )
            plan = replace(prometheus.query_plan, extra_matcher=matchers)
            yield _Part(naming.prefix + value, replace(prometheus, query_plan=plan))


def _ingest_cluster(
    part: _Part, store: DailyStore, days: range, present: set[tuple[str, int]]
) -> Iterator[ClusterFailure]:
    """Read the missing days of one cluster and store them. If a day cannot be read, yield that failure and read no
    further day."""
    missing = [day for day in days if (part.cluster, day) not in present]
    try:
        if missing:
            # Two tenants behind one label would be one history: each cluster is checked by itself.
            part.prometheus.check_one_cluster(missing[0] * DAY, missing[-1] * DAY + DAY - 1)
        for day in missing:
            with show_spinner(f"Reading {part.cluster}, {format_timestamp(day * DAY)[:10]}"):
                read = DayReader(part.prometheus).read_day(day)
            if read.rows:
                store.write_day(part.cluster, day, read.rows)
            print_text(_describe_day(part.cluster, day, len(read.rows), read.dropped_values))
    except UsageFault as error:
        yield ClusterFailure(part.cluster, str(error))


def _describe_day(cluster: str, day: int, rows: int, dropped: int) -> str:
    ignored = f", {dropped} impossible values are left out" if dropped else ""
    return f"{cluster} {format_timestamp(day * DAY)[:10]}: {format_count(rows, 'row')} stored{ignored}"


def _finish(failures: Iterable[FailureReport], of: int) -> None:
    all_failures = list(failures)
    for failure in all_failures:
        print_text(f"{failure.cluster}: {failure.problem}", err=True)
    if all_failures:
        is_are = "is" if len(all_failures) == 1 else "are"
        print_text(
            f"{len(all_failures)} of {format_count(of, 'cluster')} {is_are} not complete; the other clusters are "
            "complete.",
            err=True,
        )
        click.get_current_context().exit(EXIT_FAILED)
