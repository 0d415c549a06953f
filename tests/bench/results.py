"""Prints the RESULT line of a bench, and writes its figures into docs/measured.json with the commit and the date.

`BENCH_BRIEF=1` measures less: a run says so in its RESULT line (`brief=1`), and its figures are not recorded.
`BENCH_RECORD=0` records nothing either.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from docs.pages.measured import record_figures

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def is_brief() -> bool:
    """Returns whether this run measures less, for a look at every bench within an hour."""
    return os.environ.get("BENCH_BRIEF", "0") not in ("", "0")


def choose_size(whole: T, brief: T) -> T:
    """Returns the size of a bench, or its smaller one in a brief run."""
    return brief if is_brief() else whole


def report_result(bench: str, line: str, *, is_generated: bool = False) -> None:
    """Print `RESULT` with the line's figures, written NAME=VALUE, and record those of a whole run.

    is_generated: the bench measured a generated set, because a published trace is not here; that is not recorded.
    """
    notes = (" brief=1" if is_brief() else "") + (" generated=1" if is_generated else "")
    print(f"RESULT {line}{notes}", flush=True)
    if is_brief() or is_generated or os.environ.get("BENCH_RECORD", "1") == "0":
        return
    figures = dict(part.split("=", 1) for part in line.split() if "=" in part and not part.endswith("=nan"))
    record_figures(f"bench-{bench}", figures, commit=_read_commit(), date=f"{datetime.now(UTC):%Y-%m-%d}",
                   machine=f"{os.cpu_count()} cores")  # fmt: skip


def _read_commit() -> str:
    """Returns the commit that was measured; with `+` if files differ from it."""
    line = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
