"""Prints the RESULT line of a bench, and writes its figures into docs/measured.json with the commit and the date.

Only the standard run is recorded, and only within its bounds. `BENCH_BRIEF=1` measures less, and a variable or an
option may change what a bench measures: the RESULT line says so (`brief=1`, `changed=NAME`), and nothing is recorded.
`BENCH_RECORD=0` records nothing either.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from docs.pages.measured import record_figures

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")
_changes: list[str] = []
"""The names of the variables and options by which this process measures something else than the standard run."""


def is_brief() -> bool:
    """Returns whether this run measures less, for a look at every bench within an hour."""
    return os.environ.get("BENCH_BRIEF", "0") not in ("", "0")


def choose_size(whole: T, brief: T) -> T:
    """Returns the size of a bench, or its smaller one in a brief run."""
    return brief if is_brief() else whole


def read_knob(name: str, standard: str) -> str:
    """Returns the value of a variable that changes what a bench measures."""
    value = os.environ.get(name, standard)
    if value != standard:
        note_change(name)
    return value


def choose_parts(name: str, standard: str) -> tuple[str, ...]:
    """Returns the parts of a bench that are measured, of a variable in which commas separate them.

    Unlike a knob, it changes no figure of a part that is measured: those of the others stay as they are recorded.
    """
    return tuple(os.environ.get(name, standard).split(","))


def note_change(name: str) -> None:
    """Remember that this process measures something else than the standard run, which only a process of its own can."""
    _changes.append(name)


def is_standard() -> bool:
    """Returns whether this process measures what the pages name."""
    return not is_brief() and not _changes


def report_result(bench: str, line: str, *, broken: Mapping[str, object], is_generated: bool = False) -> None:
    """Print `RESULT` with the line's figures, written NAME=VALUE, and record those of a standard run.

    broken: each bound, and a true value if the run did not keep it. Then nothing is recorded, and the process ends.
    is_generated: the bench measured a generated set, because a published trace is not here; that is not recorded.
    """
    notes = (" brief=1" if is_brief() else "") + (" generated=1" if is_generated else "")
    notes += f" changed={','.join(_changes)}" if _changes else ""
    print(f"RESULT {line}{notes}", flush=True)
    if reasons := "; ".join(bound for bound, is_broken in broken.items() if is_broken):
        sys.exit(f"bench-{bench} does not keep its bounds: {reasons}")
    if not is_standard() or is_generated or os.environ.get("BENCH_RECORD", "1") == "0":
        return
    figures = dict(part.split("=", 1) for part in line.split() if "=" in part and not part.endswith("=nan"))
    record_figures(
        f"bench-{bench}",
        figures,
        commit=_read_commit(),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=f"{os.cpu_count()} cores",
    )


def _read_commit() -> str:
    """Returns the commit that was measured; with `+` if files differ from it."""
    line = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
