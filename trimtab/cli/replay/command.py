"""The command line of `trimtab replay`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import click
from msgspec import structs

from trimtab.cli.options import takes
from trimtab.cli.repeat_command import repeat_command
from trimtab.cli.replay.state_metrics_options import (
    StateMetricsOptions,
    find_prometheus_mistakes,
    find_unused_options,
)
from trimtab.cli.reporting.emit import PageOutput, write_report
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import PRICES
from trimtab.inputs.option import option

if TYPE_CHECKING:
    from trimtab.cli.replay.report import ReplayReport


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options of `trimtab replay`."""

    captures: Annotated[
        tuple[str, ...],
        option(
            "--captures",
            metavar="FOLDER",
            help="The captures of `trimtab capture --every`: a folder, or its files.",
        ),
    ] = ()
    prometheus: StateMetricsOptions
    presets: Annotated[
        tuple[str, ...],
        option(
            "--preset",
            metavar="PRESET",
            help="Replay only these presets of pools: careful, balanced or keen. Default: all three.",
        ),
    ] = ()
    thresholds: Annotated[
        tuple[int, ...],
        option(
            "--autoscaler-threshold",
            metavar="PERCENT",
            minimum=1,
            maximum=100,
            help="The utilization thresholds of the cluster autoscaler; the first is the present one, with which all "
            "others are compared. Default: 50 and 70.",
        ),
    ] = (50, 70)
    price_paths: Annotated[tuple[str, ...], PRICES] = ()
    output: PageOutput


@click.command("replay")
@takes(ReplayOptions)
def verb(options: ReplayOptions) -> None:
    """Replay recorded days, and show what they would have cost with other settings.

    The command reads what `trimtab capture --every` wrote, or, with --prometheus, what kube-state-metrics showed, which
    is less: the report lists what is missing. It runs the recorded demand again in a simulated cluster, with a stand-in
    for the cluster autoscaler alone, and with the compactor in addition: for each preset, and for the pools as they are
    configured. It shows node hours, money, evictions, waits and purchases for each day, next to what really was. It
    only reads, and changes nothing.
    """
    mistakes = list(_find_mistakes(options))
    if mistakes:
        raise UsageError(mistakes)
    # Imported here: the compactor's loop and its client take longer to import than the help takes to print.
    from trimtab.cli.replay.replay_captures import replay_captures, replay_prometheus
    from trimtab.cli.replay.table import SCREEN_VIEW, VIEW

    thresholds = [percent / 100 for percent in options.thresholds]
    if options.captures:
        report = replay_captures(options.captures, options.presets, thresholds, options.price_paths)
    else:
        report = replay_prometheus(options.prometheus, options.presets, thresholds, options.price_paths)
    report = structs.replace(report, command=repeat_command())
    is_short = options.output.form == "table"
    write_report(options.output, report, SCREEN_VIEW if is_short else replace(VIEW, texts={"html": _render_page}))


def _render_page(report: ReplayReport) -> str:
    from trimtab.cli.replay.page import render_page  # a page needs templates, and a table does not

    return render_page(report)


def _find_mistakes(options: ReplayOptions) -> Sequence[ConfigError]:
    mistakes: list[ConfigError] = []
    if options.captures and options.prometheus.url is not None:
        expected = "--captures or --prometheus"
        mistakes.append(ConfigError(file="command line", expected=expected, got="both"))
    elif options.prometheus.url is not None:
        mistakes += find_prometheus_mistakes(options.prometheus)
    elif not options.captures:
        expected = "--captures FOLDER: what `trimtab capture --every 5m --for 7d -O FOLDER` writes"
        mistakes.append(
            ConfigError(
                file="command line",
                expected=expected,
                got="none",
                todo="or --prometheus URL, of a Prometheus that scrapes kube-state-metrics. The history of the "
                "compactor is no input: it has decisions about nodes, and not what pods requested",
            )
        )
    if options.captures:
        mistakes += find_unused_options(options.prometheus)
    presets = ("careful", "balanced", "keen")
    mistakes += [
        ConfigError(
            file="--preset", expected=f"one of {', '.join(presets)}", got=name, todo=suggest_name(name, presets)
        )
        for name in options.presets
        if name not in presets
    ]
    return mistakes
