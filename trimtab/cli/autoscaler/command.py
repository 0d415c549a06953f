"""The command line of `trimtab autoscaler propose`, which only reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import click

from trimtab.autoscaling.simulation.propose_autoscaler import propose_flags
from trimtab.autoscaling.simulation.replay_nodes import ScaleDownFlags
from trimtab.cli import output
from trimtab.cli.autoscaler.report import VIEW, build_autoscaler_report
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.inputs.autoscaler_history import parse_duration, read_cluster_history
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import AUTOSCALER_FLAGS, PRICES, USAGE
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import duration_option, option
from trimtab.inputs.price_sources import read_price_sources
from trimtab.inputs.stated_quantities import QUANTITY
from trimtab.inputs.usage_series import read_usage_series
from trimtab.machines.prices import PriceFile
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities


@click.group("autoscaler", cls=SuggestingGroup)
def verb() -> None:
    """Replay the cluster autoscaler on your cluster, and propose its flags. Nothing is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerProposeOptions:
    """The options of `trimtab autoscaler propose`."""

    cluster: ClusterOptions
    earlier: Annotated[
        tuple[str, ...],
        option(
            "--earlier", metavar="SNAPSHOT", help="An earlier snapshot of the same cluster. You can repeat the option."
        ),
    ] = ()
    usage: Annotated[
        tuple[str, ...],
        USAGE.with_help("Usage series that name their pods: they show how many pods there were over time."),
    ] = ()
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    autoscaler_flags: Annotated[
        str,
        AUTOSCALER_FLAGS.with_help(
            "The present flags of the cluster autoscaler. Default: the flags of the autoscaler's pod in the snapshot."
        ),
    ] = ""
    price_paths: Annotated[tuple[str, ...], PRICES] = ()
    replay_step: Annotated[
        str,
        duration_option("--replay-step", former=("--step",), help="The time between two steps of the replay."),
    ] = "5m"
    provision_time: Annotated[
        str,
        duration_option("--provision-time", help="The time from a scale-up until the new node accepts pods."),
    ] = "2m"
    min_nodes: Annotated[
        int,
        option(
            "--min-nodes",
            minimum=0,
            maximum=1000,
            help="The number of nodes of each machine type that the replay never removes.",
        ),
    ] = 0
    output: ReportOutput


@verb.command("propose")
@takes(AutoscalerProposeOptions)
@without_garbage_collection()
def propose_autoscaler_flags(options: AutoscalerProposeOptions) -> None:
    """Show what other flags of the cluster autoscaler would have done.

    The threshold, the unneeded time and the delay after a scale-up are replayed on the nodes of the first snapshot and
    on the pods of your history: nodes over time, evictions, nodes that were bought back within an hour, and how long
    pods waited. The cheapest flags are proposed that buy back few nodes and hardly prolong the time that pods wait.
    """
    step, provision = _read_durations(replay_step=options.replay_step, provision_time=options.provision_time)
    prices = _read_prices(options.price_paths)
    series, notes = read_usage_series(options.usage, stated=options.stated) if options.usage else ([], [])
    reading = read_cluster_history(
        options.cluster,
        options.earlier,
        series,
        prices,
        options.autoscaler_flags,
        step_seconds=step,
        min_nodes=options.min_nodes,
        provision_seconds=provision,
    )
    proposal = propose_flags(reading.history, reading.present, on_replay=_show_progress)
    report = build_autoscaler_report(proposal, reading.history, (*notes, *reading.notes))
    write_report(options.output, report, VIEW)


def _show_progress(flag_sets: Sequence[ScaleDownFlags]) -> Iterable[ScaleDownFlags]:
    return output.show_progress(list(flag_sets), "Replaying")


def _read_durations(**texts: str) -> list[int]:
    """Returns the seconds of each option. Raises UsageError for every text that is no duration, or a duration of
    zero."""
    seconds = {name: parse_duration(text) for name, text in texts.items()}
    mistakes = [
        ConfigError(file=f"--{name.replace('_', '-')}", expected="a duration such as 5m", got=repr(texts[name]))
        for name, value in seconds.items()
        if not value
    ]
    if mistakes:
        raise UsageError(mistakes)
    return [value or 0 for value in seconds.values()]


def _read_prices(paths: Sequence[str]) -> PriceFile:
    """Returns the prices of all files together. Raises UsageError with every mistake."""
    prices, mistakes = read_price_sources(paths)
    if mistakes:
        raise UsageError(mistakes)
    return prices
