"""The command line of `trimtab autoscaler propose`, which only reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

from trimtab.autoscaling.simulation.propose_autoscaler import propose_flags
from trimtab.autoscaling.simulation.replay_nodes import ScaleDownFlags
from trimtab.cli import output
from trimtab.cli.autoscaler.report import VIEW, build_autoscaler_report
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.quantity_option import add_quantity_option
from trimtab.cli.reporting.emit import add_report_options, emit_report
from trimtab.cli.shared_options import add_cluster_options, add_price_option
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.inputs import live_cluster
from trimtab.inputs.autoscaler_history import parse_duration, read_cluster_history
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.price_sources import read_price_sources
from trimtab.inputs.usage_series import read_usage_series
from trimtab.machines.prices import PriceFile


@click.group("autoscaler", cls=SuggestingGroup)
def verb() -> None:
    """Replay the cluster autoscaler on your cluster, and propose its flags. Nothing is changed."""


@verb.command("propose")
@add_cluster_options
@click.option("--earlier", multiple=True, metavar="SNAPSHOT",
              help="An earlier snapshot of the same cluster. You can repeat the option.")  # fmt: skip
@click.option("--usage", "usage", multiple=True, metavar="PATH",
              help="Usage series that name their pods: they show how many pods there were over time.")  # fmt: skip
@add_quantity_option
@click.option("--autoscaler-flags", metavar="FLAGS", default="",
              help=
                  "The present flags of the cluster autoscaler. Default: the flags of the autoscaler's pod in "
                  "the snapshot.")  # fmt: skip
@add_price_option
@click.option(
    "--step", default="5m", show_default=True, metavar="DURATION", help="The time between two steps of the replay."
)
@click.option("--provision-time", default="2m", show_default=True, metavar="DURATION",
              help="The time from a scale-up until the new node accepts pods.")  # fmt: skip
@click.option("--min-nodes", type=click.IntRange(0, 1000), default=0, show_default=True,
              help="The number of nodes of each machine type that the replay never removes.")  # fmt: skip
@add_report_options
@without_garbage_collection()
def propose_autoscaler_flags(cluster: live_cluster.ClusterOptions, **options: Any) -> None:
    """Show what other flags of the cluster autoscaler would have done.

    The threshold, the unneeded time and the delay after a scale-up are replayed on the nodes of the first snapshot and
    on the pods of your history: nodes over time, evictions, nodes that were bought back within an hour, and how long
    pods waited. The cheapest flags are proposed that buy back few nodes and hardly prolong the time that pods wait.
    """
    step, provision = _read_durations(step=options["step"], provision_time=options["provision_time"])
    prices = _read_prices(options["price_paths"])
    series, notes = read_usage_series(options["usage"], stated=options["stated"]) if options["usage"] else ([], [])
    reading = read_cluster_history(
        cluster, options["earlier"], series, prices, options["autoscaler_flags"],
        step_seconds=step, min_nodes=options["min_nodes"], provision_seconds=provision,
    )  # fmt: skip
    proposal = propose_flags(reading.history, reading.present, on_replay=_show_progress)
    report = build_autoscaler_report(proposal, reading.history, (*notes, *reading.notes))
    emit_report(options["form"], options["output_file"], report, VIEW)


def _show_progress(flag_sets: Sequence[ScaleDownFlags]) -> Iterable[ScaleDownFlags]:
    return output.show_progress(list(flag_sets), "Replaying")


def _read_durations(**texts: str) -> list[int]:
    """Returns the seconds of each option. Raises UsageError for every text that is no duration, or a duration of
    zero."""
    seconds = {name: parse_duration(text) for name, text in texts.items()}
    mistakes = [
        ConfigError(file=f"--{name.replace('_', '-')}", expected="a duration such as 5m", got=repr(texts[name]))
        for name, value in seconds.items() if not value
    ]  # fmt: skip
    if mistakes:
        raise UsageError(mistakes)
    return [value or 0 for value in seconds.values()]


def _read_prices(paths: Sequence[str]) -> PriceFile:
    """Returns the prices of all files together. Raises UsageError with every mistake."""
    prices, mistakes = read_price_sources(paths)
    if mistakes:
        raise UsageError(mistakes)
    return prices
