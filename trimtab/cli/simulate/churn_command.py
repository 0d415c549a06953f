"""`trimtab simulate --churn`: hours of a cluster that never rests, with and without Trimtab."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trimtab.autoscaling.churn.attainable import add_frontiers, count_needed_machines, find_frontier
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape, generate_shapes, read_trace
from trimtab.cli.simulate.churn_flags import ChurnFlags
from trimtab.cli.simulate.churn_report import ChurnReport, build_churn_report
from trimtab.cli.simulate.churn_run import VARIANTS, run_variant
from trimtab.cluster.config_error import ConfigError
from trimtab.inputs.command_faults import UsageError


def simulate_churn(flags: ChurnFlags) -> ChurnReport:
    """Runs every variant of every seed, and returns the report. Raises UsageError if the trace cannot be read."""
    shapes = _read_shapes(flags.trace)
    options = ChurnOptions(hours=flags.hours)
    churns = [draw_churn(replace(options, seed=seed), shapes) for seed in dict.fromkeys(flags.seeds)]
    runs = [run_variant(churn, variant) for churn in churns for variant in VARIANTS]
    frontier = add_frontiers([find_frontier(count_needed_machines(churn)) for churn in churns])
    return build_churn_report(options, runs, frontier, is_from_trace=flags.trace is not None)


def _read_shapes(path: Path | None) -> Sequence[ChurnPodShape]:
    if path is None:
        return generate_shapes()
    try:
        with path.open(encoding="utf-8") as lines:
            shapes = read_trace(lines)
    except (OSError, ValueError, OverflowError, KeyError, TypeError, csv.Error) as error:
        raise UsageError(
            [ConfigError(file=str(path), expected="a pod list of the openb trace", got=f"{error or 'another file'}")]
        ) from error
    if not shapes:
        raise UsageError([ConfigError(file=str(path), expected="a pod list of the openb trace", got="no pod")])
    return shapes
