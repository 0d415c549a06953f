"""The command line of `trimtab reserved measure`: the source of the measurements, the report, the configuration
snippets."""

from __future__ import annotations

from collections.abc import Sequence

import click

from trimtab.cli.output import write_text
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import add_report_options, emit_report
from trimtab.cli.reserved.measure_report import build_report
from trimtab.cli.reserved.measure_table import VIEW
from trimtab.cli.reserved.snippets import SNIPPETS, render_snippet
from trimtab.cli.shared_options import WINDOW, add_cluster_options
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs import kubelet_sources as measure_sources
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.kubelet_sources import Measurements
from trimtab.inputs.live_cluster import LIVE
from trimtab.inputs.plan_inputs import parse_now
from trimtab.inputs.usage_sources import note_warning, parse_headers
from trimtab.reservations.measure import ReservationChange
from trimtab.runtime import clock
from trimtab.sizing.pool_reservations import PoolReservation, assess_pools
from trimtab.usage.cluster_label import Matchers
from trimtab.usage.http_client import HttpApi
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.server_warnings import DistinctWarnings


@click.command("measure")
@add_cluster_options
@click.option(
    "--summary", "summaries", multiple=True, metavar="FILE",
    help="The output of kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary. Pass several files for several "
         "nodes or times.",
)  # fmt: skip
@click.option(
    "--configz", "configurations", multiple=True, metavar="FILE",
    help="The output of kubectl get --raw /api/v1/nodes/NODE/proxy/configz, from which the present reservation is "
         "read.",
)  # fmt: skip
@click.option(
    "--prometheus", "url", metavar="URL", help="A Prometheus server with the series of kubelets and cAdvisor."
)
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="A header for requests to Prometheus."
)
@click.option("--token-file", metavar="FILE", help="A file with a bearer token for Prometheus.")
@click.option("--ca", metavar="FILE", help="A file with the authorities that sign Prometheus' certificate.")
@click.option("--matcher", default="", metavar="MATCHER", help='A matcher for every query, such as cluster="prod".')
@click.option(
    "--days",
    default=7,
    show_default=True,
    type=click.IntRange(1, 60),
    help="The number of days to read from Prometheus.",
)
@click.option(
    "--step",
    default=3600,
    show_default=True,
    type=click.IntRange(60, 86400),
    help="The number of seconds between two points of a series.",
)
@click.option(
    "--rate", default="5m", show_default=True, metavar="WINDOW",
    help="The window over which cpu usage is averaged. It must span at least four scrapes.",
)  # fmt: skip
@click.option(
    "--now", metavar="TIME", help="The end of the history that is read from Prometheus. Ages are relative to this time."
)
@click.option("--pool", "pools", multiple=True, metavar="NAME", help="Measure only the nodes of this pool.")
@click.option(
    "--max-pods", type=click.IntRange(1, 10_000),
    help="Recommend reservations for nodes with this many pods. Default: the highest number of pods that a node had.",
)  # fmt: skip
@click.option(
    "--snippet",
    type=click.Choice(SNIPPETS),
    help="Print the recommendations in the configuration format of this platform.",
)
@add_report_options
def measure_reservations(
    cluster: live_cluster.ClusterOptions,
    summaries: tuple[str, ...],
    configurations: tuple[str, ...],
    url: str | None,
    headers: tuple[str, ...],
    token_file: str | None,
    ca: str | None,
    matcher: str,
    days: int,
    step: int,
    rate: str,
    now: str | None,
    pools: tuple[str, ...],
    max_pods: int | None,
    snippet: str | None,
    form: str,
    output_file: str | None,
) -> None:
    """Show what kubelets and container runtimes really use, per pool, and a reservation that covers it.

    With --cluster live the kubelet of every node is read once, and one kubelet of each pool for its configuration; both
    need `get` on nodes/proxy. --prometheus reads days of history instead. With a snapshot, give the kubelets' --summary
    files. Memory is never recommended below its measured maximum; a lower reservation needs seven days; differences
    below 10 percent, 20m and 128Mi change nothing.
    """
    queries = QueryPlan(step_seconds=step, extra_matcher=matcher, rate_window=rate)
    server = _connect_to_prometheus(url, headers, token_file, ca, queries)
    now_seconds = _parse_moment(now)
    measurements = _read_measurements(cluster, summaries, configurations, server, days, pools, now_seconds)
    measure_sources.select_pools(measurements, pools)
    assessed = assess_pools(measurements.nodes, measurements.histories, max_pods)
    if snippet is not None:
        write_text(_render_snippets(snippet, assessed), output_file)
        return
    report = build_report(assessed, measurements.sources, measurements.notes)
    emit_report(form, output_file, report, VIEW)


def _parse_moment(text: str | None) -> int:
    seconds, mistakes = parse_now(text)
    if mistakes:
        raise UsageError(mistakes)
    return int(clock.utc_now().timestamp()) if seconds is None else int(seconds)


def _connect_to_prometheus(
    url: str | None, headers: tuple[str, ...], token_file: str | None, ca: str | None, queries: QueryPlan
) -> Prometheus | None:
    """Returns the Prometheus server, or None without a URL. Raises UsageError if an option is invalid."""
    if url is None:
        return None
    mistakes = []
    if not url.startswith(("http://", "https://")):
        expected = "an address such as https://prometheus:9090"
        mistakes.append(ConfigError(file="--prometheus", expected=expected, got=url))
    if not WINDOW.fullmatch(queries.rate_window):
        expected = "a window such as 5m or 2h"
        mistakes.append(ConfigError(file="--rate", expected=expected, got=repr(queries.rate_window)))
    try:
        Matchers.from_text(queries.extra_matcher)
    except ValueError as error:
        mistakes.append(ConfigError(file="--matcher", expected=str(error), got=repr(queries.extra_matcher)))
    if mistakes:
        raise UsageError(mistakes)
    source = HttpApi(url, parse_headers(headers, (), token_file, None), ca, None, None)
    return Prometheus(source, queries, DistinctWarnings(lambda warning: print_text(note_warning(warning), err=True)))


def _read_measurements(
    cluster: live_cluster.ClusterOptions,
    summaries: tuple[str, ...],
    configurations: tuple[str, ...],
    server: Prometheus | None,
    days: int,
    pools: Sequence[str],
    now: int,
) -> Measurements:
    """Returns the measurements from the one source that the options name. Raises UsageError and RuntimeFailure."""
    is_live = LIVE in cluster.paths
    if server is not None:
        if summaries or configurations:
            raise UsageError(
                [
                    ConfigError(
                        file="--prometheus",
                        expected="--cluster live without --summary and --configz",
                        got="one of these options in addition",
                    )
                ]
            )
        nodes = measure_sources.read_nodes(cluster) if cluster.paths else None
        return measure_sources.measure_prometheus(server, days, nodes, now)
    if is_live and not summaries:
        return measure_sources.measure_live(cluster, measure_sources.read_nodes(cluster), pools, now)
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
    return measure_sources.measure_files(summaries, configurations, measure_sources.read_nodes(cluster), now)


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
