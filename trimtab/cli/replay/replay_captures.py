"""Replays a series of captures in all variants, and reports what came out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version

from trimtab.autoscaling.replay.daily_outcome import HOUR, DailyOutcome, add_history, recorded_history
from trimtab.cli.replay.missing_inputs import list_missing_inputs
from trimtab.cli.replay.parallel import choose_processes, replay_variants
from trimtab.cli.replay.prometheus_input import read_prometheus
from trimtab.cli.replay.recorded_world import RecordedWorld, preset_pools, read_recording
from trimtab.cli.replay.report import ReplayReport, build_replay_report
from trimtab.cli.replay.run import ReplaySteps, ReplayVariant, average_repeats, choose_repeats, choose_steps
from trimtab.cli.replay.state_metrics_options import StateMetricsOptions
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import PRESETS
from trimtab.inputs.capture_series import find_series_files
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.price_sources import read_price_sources
from trimtab.inputs.progress import progress
from trimtab.machines.prices import PriceFile

CONFIGURED = "Trimtab as configured"


def replay_captures(
    paths: Sequence[str],
    presets: Sequence[str],
    thresholds: Sequence[float],
    price_paths: Sequence[str] = (),
    steps: ReplaySteps | None = None,
) -> ReplayReport:
    """Returns the report of all variants. `thresholds`: those of the autoscaler, the present one first. Raises
    UsageError if the captures cannot be used."""
    files = find_series_files(paths)
    prices = _read_prices(price_paths)
    with progress().show_work("Reading captures"):
        recorded = read_recording(files, prices)
    return replay_recording(recorded, ", ".join(paths), presets, thresholds, steps)


def replay_prometheus(
    options: StateMetricsOptions,
    presets: Sequence[str],
    thresholds: Sequence[float],
    price_paths: Sequence[str] = (),
    steps: ReplaySteps | None = None,
) -> ReplayReport:
    """Returns the report of all variants, from what kube-state-metrics showed. Raises UsageError if it cannot be used,
    and RuntimeFailure if the server cannot be read."""
    recorded = read_prometheus(options, _read_prices(price_paths))
    return replay_recording(recorded, "--prometheus", presets, thresholds, steps)


def _read_prices(paths: Sequence[str]) -> PriceFile:
    prices, mistakes = read_price_sources(paths)
    if mistakes:
        raise UsageError(mistakes)
    return prices


def replay_recording(
    recorded: RecordedWorld,
    where: str,
    presets: Sequence[str],
    thresholds: Sequence[float],
    steps: ReplaySteps | None = None,
) -> ReplayReport:
    """Returns the report of all variants of a recording. `where`: its source, for messages. Raises UsageError if it is
    too short."""
    if not recorded.world.stretches:
        raise UsageError(
            [
                ConfigError(
                    file=where,
                    expected="at least half an hour without a gap",
                    got="; ".join(recorded.notes) or f"{recorded.rounds} rounds",
                )
            ]
        )
    was = DailyOutcome()
    for stretch in recorded.world.stretches:
        groups = {life.node.name: life.group for life in stretch.nodes if life.node.nature.is_machine}
        history = recorded_history(stretch, recorded.world.node_prices)
        add_history(was, history, stretch.begin, stretch.end, groups)
    node_hours = was.sum_pools().node_seconds / HOUR
    steps = steps or choose_steps(node_hours)
    each, repeats = list(list_variants(recorded, presets, thresholds)), choose_repeats(node_hours)
    variants = [replace(variant, repeat=number) for variant in each for number in range(repeats)]
    processes = choose_processes(len(variants), node_hours, recorded.pod_states)
    with progress().show_parts(recorded.seconds * len(variants), "Replaying") as show:
        singles = replay_variants(recorded.world, variants, steps, processes, show)
    replayed = [average_repeats(singles[first : first + repeats]) for first in range(0, len(singles), repeats)]
    with_trimtab = [variant.name for variant in each if variant.pools]
    details = (
        CONFIGURED
        if CONFIGURED in with_trimtab
        else next((name for name in with_trimtab if name == "Trimtab balanced"), with_trimtab[0])
    )
    return build_replay_report(
        recorded, was, replayed, steps, list(list_missing_inputs(recorded)), details=details, version=version("trimtab")
    )


def list_variants(
    recorded: RecordedWorld, presets: Sequence[str], thresholds: Sequence[float]
) -> Iterator[ReplayVariant]:
    """Yields the variants: the autoscaler alone with each threshold, each preset, and the pools as configured."""
    for threshold in dict.fromkeys(thresholds):
        yield ReplayVariant(name=f"autoscaler at {threshold:.0%}".replace("%", " %"), threshold=threshold)
    for preset in dict.fromkeys(presets or PRESETS):
        pools = preset_pools(preset, recorded.nodes)
        yield ReplayVariant(name=f"Trimtab {preset}", threshold=thresholds[0], pools=pools)
    if recorded.pools:
        pools = tuple(replace(pool, dry_run=False) for pool in recorded.pools)
        yield ReplayVariant(name=CONFIGURED, threshold=thresholds[0], pools=pools)
