"""Is a weakness known of what we depend on? `python .ci/audit.py [constraints.txt]`.

Exit 0 where none is known that is not accepted, also where nobody answered ("not audited"): a build must not fail for
want of a network. Exit 1 for a known weakness, and for an acceptance that is over, or for nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ACCEPTED = HERE / "accepted.txt"
PATIENCE = 120
"""Seconds."""
_LINE = re.compile(r"(\S+) (\S+) until (\d{4}-\d\d-\d\d): (\S.*)")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A weakness we live with for some time."""

    name: str
    weakness: str
    until: date
    reason: str


def accepted(lines: Iterable[str]) -> tuple[Accepted, ...]:
    """`NAME ID until YYYY-MM-DD: reason`. Raises ValueError for anything else, comments and empty lines apart."""
    found = []
    for line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{ACCEPTED.name}: NAME ID until YYYY-MM-DD: reason, not {line.strip()!r}")
        name, weakness, until, reason = match.groups()
        found.append(Accepted(name.lower(), weakness, date.fromisoformat(until), reason))
    return tuple(found)


def judged(report: dict[str, Any], known: Iterable[Accepted], today: date) -> tuple[list[str], list[str]]:
    """(what must not stay, what is only told)."""
    left = {(one.name, one.weakness): one for one in known}
    bad, told = [], []
    asked = [one for one in report["dependencies"] if "skip_reason" not in one]
    silent = len(report["dependencies"]) - len(asked)
    for one in asked:
        for weakness in one["vulns"]:
            names = (weakness["id"], *weakness.get("aliases", ()))
            keys = [(one["name"].lower(), name) for name in names]
            entry = next((left.pop(key) for key in keys if key in left), None)
            fixed = ", ".join(weakness.get("fix_versions", ())) or "no version yet"
            line = f"{one['name']} {one['version']}: {weakness['id']}, mended in {fixed}"
            if entry is None:
                bad.append(line)
            elif entry.until < today:
                bad.append(f"{line}; accepted until {entry.until} only")
            else:
                told.append(f"{line}; accepted until {entry.until}: {entry.reason}")
    if asked and not silent:
        bad += [f"{one.name}: {one.weakness} is accepted and no longer there" for one in left.values()]
    if silent:
        told.append(f"not audited: nobody answered for {silent} of {silent + len(asked)} packages")
    if asked:
        told.append(f"{len(asked)} packages audited")
    return bad, told


def reported(constraints: str) -> dict[str, Any] | str:
    """pip-audit's report, or why there is none."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "--requirement",
        constraints,
        "--no-deps",
        "--disable-pip",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE} s"
    except ValueError:
        return (done.stderr.strip().splitlines() or ["no report"])[-1]
    return found if isinstance(found, dict) else "no report"


def main() -> int:
    report = reported(sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")
    if isinstance(report, str):
        print(f"not audited: {report}")
        return 0
    bad, told = judged(report, accepted(ACCEPTED.read_text().splitlines()), datetime.now(UTC).date())
    print("\n".join([*told, *bad]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
