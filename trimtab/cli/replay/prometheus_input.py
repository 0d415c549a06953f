"""Reads the past of a cluster from a Prometheus that scrapes kube-state-metrics into what a replay starts from."""

from __future__ import annotations

from dataclasses import replace

from trimtab.autoscaling.replay.scraped_rounds import list_rounds
from trimtab.cli.replay.recorded_world import RecordedWorld, RecordingSource, build_recorded_world, record_changes
from trimtab.cli.replay.state_metrics_options import StateMetricsOptions
from trimtab.cluster.timestamps import Seconds
from trimtab.inputs.capture_series import describe_gaps
from trimtab.inputs.command_faults import RuntimeFailure
from trimtab.inputs.plan_inputs import parse_now
from trimtab.inputs.progress import progress
from trimtab.machines.prices import PriceFile
from trimtab.runtime import clock

DAY_SECONDS = 86_400


def read_prometheus(options: StateMetricsOptions, price_file: PriceFile) -> RecordedWorld:
    """Returns what a replay starts from. Raises UsageError if the server does not have what a replay needs, and
    RuntimeFailure if it cannot be read."""
    seconds, _ = parse_now(options.now)
    now = int(clock.utc_now().timestamp()) if seconds is None else int(seconds)
    length = options.days * DAY_SECONDS if options.hours is None else options.hours * 3600
    end = now - now % options.step
    return read_between(options, end - length, end, price_file)


def read_between(options: StateMetricsOptions, begin: Seconds, end: Seconds, price_file: PriceFile) -> RecordedWorld:
    """Returns what a replay of the time between these seconds starts from. Raises as `read_prometheus`."""
    # A replay of captures needs no HTTP client.
    from trimtab.inputs.scraped_cluster import QUERIED_PARTS, read_scraped_cluster
    from trimtab.usage.errors import UsageFault
    from trimtab.usage.http_client import HttpApi
    from trimtab.usage.prometheus import Prometheus, QueryPlan
    from trimtab.usage.server_warnings import DistinctWarnings
    from trimtab.usage.state_history import StateHistory

    source = HttpApi(options.url or "", options.login.parse_headers(), options.login.ca, None, None)
    warnings: list[str] = []
    plan = QueryPlan(step_seconds=options.step, extra_matcher=options.matcher)
    history = StateHistory(Prometheus(source, plan, DistinctWarnings(warnings.append)), begin, end, options.step)
    done = 0
    try:
        with progress().show_parts(len(history.parts) * QUERIED_PARTS, "Reading Prometheus") as show:

            def count_query() -> None:
                nonlocal done
                done += 1
                show(done)

            history.on_query = count_query
            scraped = read_scraped_cluster(history)
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    recorder, rounds = record_changes(list_rounds(scraped))
    # The times of these rounds follow from those of the pods.
    recorder.clock_skew = 0
    notes = describe_gaps(scraped.gaps, "kube-state-metrics was not scraped")
    notes += [f"The server of --prometheus returned a warning: {warning}" for warning in warnings]
    recorded = build_recorded_world(recorder, RecordingSource("", options.step, rounds, tuple(notes)), price_file)
    return replace(
        recorded, from_prometheus=True, unknown_budgets=scraped.budgets, absent_metrics=scraped.absent_metrics
    )
