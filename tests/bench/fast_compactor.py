"""Runs `trimtab` with the rules of its compactor on a clock that is faster than the wall, as benches need it that
compress hours: `python -m tests.bench.fast_compactor SPEED compactor`.

A pool's settings and the compactor's are scaled by who starts it. What remains are the times that stand in rules, such
as how long a pool starts no drain after one that made the autoscaler add a node.
"""

from __future__ import annotations

import importlib
import sys

SCALED_TIMES = {
    "trimtab.compaction.plan_types": ("FIRST_WAIT_SECONDS", "MAX_WAIT_SECONDS"),
    "trimtab.compaction.blockers": ("LONG_UNREADY_SECONDS",),
    "trimtab.compaction.drain.timeouts": ("MARGIN_SECONDS",),
    "trimtab.compaction.drain.surging": ("SURGE_RETRY_SECONDS", "FLOOR_RETRY_SECONDS"),
    "trimtab.compaction.drain.backoff": (
        "FIRST_WAIT_SECONDS",
        "MAX_WAIT_SECONDS",
        "FORGET_AFTER_SECONDS",
        "REPLACEMENT_SECONDS",
        "SETTLED_AFTER_SECONDS",
    ),
    "trimtab.compactor.planner": ("AIM",),
}
"""Module → its times in seconds, which are read where they stand."""


def scale_times(speed: float) -> None:
    """Divides all times of the rules by the speed."""
    for name, constants in SCALED_TIMES.items():
        module = importlib.import_module(name)
        for constant in constants:
            setattr(module, constant, max(1, round(getattr(module, constant) / speed)))


def main() -> None:
    speed, *arguments = sys.argv[1:]
    scale_times(float(speed))
    from trimtab.cli.main import main as run

    sys.argv = ["trimtab", *arguments]
    sys.exit(run())


if __name__ == "__main__":
    main()
