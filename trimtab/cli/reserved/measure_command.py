"""The command line of `trimtab reserved measure`: the source of the measurements, the report, the configuration
snippets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import click

from trimtab.cli.main import EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.output import write_text
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reserved.measure_report import build_report
from trimtab.cli.reserved.measure_table import VIEW
from trimtab.cli.reserved.snippets import SNIPPETS, render_snippet
from trimtab.cli.shared_options import WINDOW
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import flags
from trimtab.inputs import kubelet_sources as measure_sources
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.kubelet_sources import Measurements
from trimtab.inputs.live_cluster import LIVE, ClusterOptions
from trimtab.inputs.option import file_option, option
from trimtab.inputs.plan_inputs import parse_now
from trimtab.inputs.usage_sources import note_warning, parse_headers
from trimtab.reservations.measure import ReservationChange
from trimtab.runtime import clock
from trimtab.sizing.pool_reservations import PoolReservation, assess_pools
from trimtab.usage.cluster_label import Matchers
from trimtab.usage.http_client import HttpApi
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.server_warnings import DistinctWarnings

MAX_DAYS = 60
MIN_STEP_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedMeasureOptions:
    """The options of `trimtab reserved measure`."""

    cluster: ClusterOptions
    summaries: Annotated[
        tuple[str, ...],
        flags.SUMMARY.with_help(
            "The output of kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary. Pass several files for several "
            "nodes or times."
        ),
    ] = ()
    configurations: Annotated[
        tuple[str, ...],
        file_option(
            "--configz",
            help="The output of kubectl get --raw /api/v1/nodes/NODE/proxy/configz, from which the present reservation "
            "is read.",
        ),
    ] = ()
    url: Annotated[
        str | None, flags.PROMETHEUS.with_help("A Prometheus server with the series of kubelets and cAdvisor.")
    ] = None
    headers: Annotated[tuple[str, ...], flags.HEADER.with_help("A header for requests to Prometheus.")] = ()
    token_file: Annotated[str | None, flags.TOKEN_FILE.with_help("A file with a bearer token for Prometheus.")] = None
    ca: Annotated[str | None, flags.CA] = None
    matcher: Annotated[str, flags.MATCHER] = ""
    days: Annotated[int, flags.DAYS.with_help(f"The number of days to read from Prometheus, at most {MAX_DAYS}.")] = 7
    step: Annotated[
        int, flags.STEP.with_help(f"The number of seconds between two points of a series, at least {MIN_STEP_SECONDS}.")
    ] = 3600
    rate: Annotated[str, flags.RATE] = "5m"
    now: Annotated[str | None, flags.NOW_BY_CLOCK] = None
    pools: Annotated[tuple[str, ...], flags.POOL.with_help("Measure only the nodes of this pool.")] = ()
    max_pods: Annotated[
        int | None,
        flags.MAX_PODS.with_help(
            "Recommend reservations for nodes with this many pods. Default: the highest number of pods that a node had."
        ),
    ] = None
    snippet: Annotated[
        str | None,
        option(
            "--snippet",
            type=click.Choice(SNIPPETS),
            help="Print the recommendations in the configuration format of this platform.",
        ),
    ] = None
    output: ReportOutput


@click.command("measure")
@takes(ReservedMeasureOptions)
def measure_reservations(options: ReservedMeasureOptions) -> None:
    """Show what kubelets and container runtimes really use, per pool, and a reservation that covers it.

    With --cluster live the kubelet of every node is read once, and one kubelet of each pool for its configuration; both
    need `get` on nodes/proxy. --prometheus reads days of history instead. With a snapshot, give the kubelets' --summary
    files. Memory is never recommended below its measured maximum; a lower reservation needs seven days; differences
    below 10 percent, 20m and 128Mi change nothing. Exits with 1 if nothing was measured.
    """
    server = _connect_to_prometheus(options)
    seconds, mistakes = parse_now(options.now)
    if mistakes:
        raise UsageError(mistakes)
    measurements = _read_measurements(
        options, server, int(clock.utc_now().timestamp()) if seconds is None else int(seconds)
    )
    measure_sources.select_pools(measurements, options.pools)
    assessed = assess_pools(measurements.nodes, measurements.histories, options.max_pods)
    if options.snippet is not None:
        write_text(_render_snippets(options.snippet, assessed), options.output.file)
        return
    report = build_report(assessed, measurements.sources, measurements.notes)
    write_report(options.output, report, VIEW)
    if all(pool.cpu is None for pool in report.pools):
        print_text("Nothing was measured: no kubelet gave the use of its own processes.", err=True)
        sys.exit(EXIT_FOUND)


def _connect_to_prometheus(options: ReservedMeasureOptions) -> Prometheus | None:
    """Returns the Prometheus server, or None without a URL. Raises UsageError if an option is invalid."""
    mistakes = []
    if options.days > MAX_DAYS:
        mistakes.append(ConfigError(file="--days", expected=f"a number from 1 to {MAX_DAYS}", got=str(options.days)))
    if options.step < MIN_STEP_SECONDS:
        expected = f"a number of seconds from {MIN_STEP_SECONDS} to 86400"
        mistakes.append(ConfigError(file="--step", expected=expected, got=str(options.step)))
    if options.url is not None:
        mistakes += _find_query_mistakes(options, options.url)
    if mistakes:
        raise UsageError(mistakes)
    if options.url is None:
        return None
    queries = QueryPlan(step_seconds=options.step, extra_matcher=options.matcher, rate_window=options.rate)
    headers = parse_headers(options.headers, (), options.token_file, None)
    source = HttpApi(options.url, headers, options.ca, None, None)
    return Prometheus(source, queries, DistinctWarnings(lambda warning: print_text(note_warning(warning), err=True)))


def _find_query_mistakes(options: ReservedMeasureOptions, url: str) -> Iterator[ConfigError]:
    if not url.startswith(("http://", "https://")):
        expected = "an address such as https://prometheus:9090"
        yield ConfigError(file="--prometheus", expected=expected, got=url)
    if not WINDOW.fullmatch(options.rate):
        yield ConfigError(file="--rate", expected="a window such as 5m or 2h", got=repr(options.rate))
    try:
        Matchers.from_text(options.matcher)
    except ValueError as error:
        yield ConfigError(file="--matcher", expected=str(error), got=repr(options.matcher))


def _read_measurements(options: ReservedMeasureOptions, prometheus: Prometheus | None, now: int) -> Measurements:
    """Returns the measurements from the one source that the options name. Raises UsageError and RuntimeFailure."""
    cluster, summaries = options.cluster, options.summaries
    if prometheus is not None:
        if summaries or options.configurations:
            expected = "--cluster live without --summary and --configz"
            raise UsageError(
                [ConfigError(file="--prometheus", expected=expected, got="one of these options in addition")]
            )
        nodes = measure_sources.read_nodes(cluster) if cluster.paths else None
        return measure_sources.measure_prometheus(prometheus, options.days, nodes, now)
    if LIVE in cluster.paths and not summaries:
        return measure_sources.measure_live(cluster, measure_sources.read_nodes(cluster), options.pools, now)
    if not summaries or not cluster.paths:
        expected = "--cluster live, --prometheus URL, or --cluster SNAPSHOT with --summary FILE"
        got = (
            "--summary without --cluster"
            if summaries
            else "none"
            if not cluster.paths
            else "--cluster without --summary"
        )
        raise UsageError([ConfigError(file="command line", expected=expected, got=got)])
    return measure_sources.measure_files(summaries, options.configurations, measure_sources.read_nodes(cluster), now)


def _render_snippets(platform: str, pools: list[PoolReservation]) -> str:
    """Returns the configuration of every pool with a recommendation; for the others, a comment with the reason why
    there is none."""
    parts = []
    for pool in pools:
        name = f"{pool.key.pool} ({pool.key.runtime})" if pool.key.runtime else pool.key.pool
        if isinstance(pool.change, ReservationChange):
            note = f"# {pool.change.kind}: {pool.change.reason}\n"
            parts.append(note + render_snippet(platform, pool.key.pool, pool.change.reserved))
        else:
            parts.append(f"# pool {name}: no recommendation, because {pool.change}\n")
    separator = "\n" if platform == "aks" else "---\n"
    return separator.join(parts)
