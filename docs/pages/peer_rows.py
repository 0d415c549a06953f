"""The rows of docs/explanation/peers.md that `make bench-peers` measured: one for each peer and version.

They are made from docs/measured.json alone. A version that is no longer measured keeps its row, with its own date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docs.pages.measured import ROOT, read_document

PAGE = ROOT / "docs" / "explanation" / "peers.md"
MEASUREMENT, MARK = "bench-peers", "peer rows"
NAMES = {
    "karpenter": "Karpenter",
    "stand-in": "stand-in for the cluster autoscaler",
    "trimtab": "Trimtab",
    "trimtab-leads": "Trimtab, which leads,",
    "vpa": "VPA",
}
_KEY = re.compile(r"(?P<name>[a-z-]+)-(?P<version>\d[\w.]*)/(?P<figure>\w+)")

Row = Mapping[str, str]
"""Figure → its value, of one peer and version; `peer`, `date` and `commit` are there, too."""


def page() -> str:
    """Returns the page with the rows of the measurements."""
    return fill(PAGE.read_text(encoding="utf-8"), read_document().get(MEASUREMENT, {"figures": {}})["figures"])


def fill(text: str, figures: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the page with other rows between its marks."""
    begin, end = f"<!-- {MARK} -->", f"<!-- /{MARK} -->"
    head, tail = text.partition(begin)[0], text.partition(end)[2]
    rows = "\n".join(write_tables(list_rows(figures)))
    return f"{head}{begin}\n\n{rows}\n\n{end}{tail}"


def list_rows(figures: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Returns the figures by peer and version, in the order of their names."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for key, figure in figures.items():
        if match := _KEY.fullmatch(key):
            name, version = NAMES[match["name"]], match["version"]
            row = rows.setdefault((name, version), {"peer": f"{name} {version}"})
            row |= {match["figure"]: figure["value"], "date": figure["date"], "commit": figure["commit"]}
    return [row for _, row in sorted(rows.items())]


def write_tables(rows: list[Row]) -> Iterator[str]:
    """Yields the lines of the tables; a table without rows is left out."""
    emptying = [row for row in rows if "nodes" in row]
    if emptying:
        yield "| | nodes | dollars an hour | evictions | bought | pod-seconds not ready | longest wait, s | seconds |"
        yield "|---|---|---|---|---|---|---|---|"
        yield from (_describe_rest(row) for row in emptying)
        yield "\n| once the load is back | nodes | dollars an hour | bought | pod-seconds Pending | longest wait, s |"
        yield "|---|---|---|---|---|---|"
        yield from (_describe_load(row) for row in emptying)
    sizing = [row for row in rows if "cpu_waste" in row]
    if sizing:
        yield "\n| requests | waste of cpu | time short of cpu | waste of memory | episodes above it |"
        yield "|---|---|---|---|---|"
        yield from (
            f"| {row['peer']} | {row['cpu_waste']} | {row['cpu_short']} | {row['memory_waste']} | "
            f"{row['memory_episodes']} |"
            for row in sizing
        )
    if rows:
        yield "\n| row | settings | measured | commit |"
        yield "|---|---|---|---|"
        yield from (
            f"| {row['peer']} | {row.get('settings', '–').replace(',', ', ')} | {row['date']} | {row['commit']} |"
            for row in rows
        )


def _describe_rest(row: Row) -> str:
    seconds = row["seconds"] if row["rests"] == "1" else f"> {row['seconds']}"
    broken = "" if row["broken"] == "0" else f", {row['broken']} broken"
    return (
        f"| {row['peer']} | {row['nodes_first']} → {row['nodes']} | {row['dollars_first']} → {row['dollars']} | "
        f"{row['evictions']}{broken} | {row['bought']} | {row['not_ready_s']} | {row['wait_s']} | {seconds} |"
    )


def _describe_load(row: Row) -> str:
    return (
        f"| {row['peer']} | {row['nodes_load']} | {row['dollars_load']} | {row['bought_load']} | "
        f"{row['pending_s_load']} | {row['wait_s_load']} |"
    )
