"""The options of `trimtab replay --prometheus`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.flags import DAYS, MATCHER, NOW_BY_CLOCK, PROMETHEUS, STEP
from trimtab.inputs.option import option
from trimtab.inputs.prometheus_login import PrometheusLogin
from trimtab.usage.cluster_label import Matchers

MAX_REPLAYED_DAYS = 31
MIN_STEP_SECONDS, MAX_STEP_SECONDS = 30, 600


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMetricsOptions:
    """Where kube-state-metrics is scraped, and which time is read."""

    url: Annotated[
        str | None,
        PROMETHEUS.with_help(
            "The URL of a Prometheus that scrapes kube-state-metrics, in place of captures. It shows less: no "
            "affinity, no spread, not which pods a budget selects."
        ),
    ] = None
    login: PrometheusLogin
    matcher: Annotated[str, MATCHER.with_help('A matcher for every query, such as cluster="prod".')] = ""
    days: Annotated[
        int, DAYS.with_help(f"The number of days to read from Prometheus, at most {MAX_REPLAYED_DAYS}.")
    ] = 7
    hours: Annotated[
        int | None,
        option("--hours", minimum=1, maximum=744, help="The number of hours to read, in place of --days."),
    ] = None
    step: Annotated[
        int,
        STEP.with_help(
            "The number of seconds between two points at which series of Prometheus are read, from "
            f"{MIN_STEP_SECONDS} to {MAX_STEP_SECONDS}."
        ),
    ] = 60
    now: Annotated[str | None, NOW_BY_CLOCK] = None


def find_unused_options(options: StateMetricsOptions) -> Iterator[ConfigError]:
    """Yields a mistake for each option that says which part of Prometheus to read, and is set although captures are
    read, which are read whole."""
    unset = StateMetricsOptions(login=options.login)
    for name in ("matcher", "days", "hours", "step", "now"):
        if getattr(options, name) != getattr(unset, name):
            expected = "--prometheus: captures are read whole"
            yield ConfigError(file=f"--{name}", expected=expected, got=str(getattr(options, name)))


def find_prometheus_mistakes(options: StateMetricsOptions) -> Iterator[ConfigError]:
    """Yields the mistakes in the options."""
    # Imported here: it takes longer to import than the help takes to print.
    from trimtab.inputs.plan_inputs import parse_now

    url = options.url or ""
    if not url.startswith(("http://", "https://")):
        yield ConfigError(file="--prometheus", expected="an address such as https://prometheus:9090", got=url)
    if options.days > MAX_REPLAYED_DAYS:
        yield ConfigError(file="--days", expected=f"a number from 1 to {MAX_REPLAYED_DAYS}", got=str(options.days))
    if not MIN_STEP_SECONDS <= options.step <= MAX_STEP_SECONDS:
        expected = f"a number of seconds from {MIN_STEP_SECONDS} to {MAX_STEP_SECONDS}"
        yield ConfigError(file="--step", expected=expected, got=str(options.step))
    try:
        Matchers.from_text(options.matcher)
    except ValueError as error:
        yield ConfigError(file="--matcher", expected=str(error), got=repr(options.matcher))
    yield from parse_now(options.now)[1]
