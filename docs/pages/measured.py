"""The measured figures of the pages: docs/measured.json, the marks that join pages to it, and the page of all figures.

A block of a page (a paragraph, a list or a table) in which a number has a unit begins with a mark. No reader sees it:

    <!-- measured: bench-live -->         the numbers are figures of these measurements, separated by commas
    <!-- not measured: settings -->       limits and defaults, examples, or what others publish (`NOT_MEASURED`)

What a bench writes into a page as a whole stands between `<!-- NAME -->` and `<!-- /NAME -->`; the measurement lists
NAME in `writes`.

Pages write each figure of a measurement as `shown` says. When a bench records another value, the text of the figure is
replaced in the marked blocks of all pages, so that no page names an earlier value. A bench records figures alone: each
has the commit of its own run, and the texts of a measurement have the commit at which they were written.

A sentence that a command prints can quote figures too: `SENTENCES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "measured.json"
SENTENCES = {"bench-replay": ROOT / "trimtab" / "cli" / "replay" / "measured_error.py"}
"""Measurement → the module of a sentence that a command prints. Its texts are replaced as those of pages are."""
NOT_MEASURED = {
    "settings": "a limit or a default, which the code sets",
    "examples": "an example, or a size that the text assumes",
    "others": "what another project documents",
}
_UNITS = (
    "ms|µs|s|MB|MiB|KB|kB|KiB|GB|GiB|TiB|%|percent|seconds?|minutes?|hours?|days?|millicores|cores?|bytes|dollars?|"
    "evictions?|nodes?|pods?|containers?|times|requests an hour|reviews"
)
_NUMBER = re.compile(rf"(?<![\w.`/–-])\d[\d ,.]*(?:[–-]\d[\d.,]*)? ?(?:{_UNITS})(?![\w-])")
_HEADER_UNIT = re.compile(r"\b(?:cores|evictions|µs|ms|MB|MiB)\b")
_CELL = re.compile(r"(?<=\|) *(?:\*\*)?(\d[\d ]*(?:\.\d+)?)(?:\*\*)? *(?=\|)")
"""A cell of a table that is one number."""
_MARK = re.compile(r"<!-- (?P<kind>measured|not measured): (?P<names>[^>]*?) -->")
_BLOCK = re.compile(r"(?:[^\n]*\S[^\n]*\n?)+")
_WRITTEN = re.compile(r"<!-- (?P<name>[\w ]+) -->(?P<text>.*?)<!-- /(?P=name) -->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, and its mark."""

    page: str
    text: str
    kind: str
    """measured, not measured, written (by a bench), or empty without a mark."""
    names: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers with a unit that are no code and no part of a link, and the cells of a table of such numbers."""
        text = _without_code(self.text)
        header, _, cells = text.strip().partition("\n")
        of_table = header.startswith("|") and _HEADER_UNIT.search(header)
        rows = tuple(match[1].strip() for match in _CELL.finditer(cells)) if of_table else ()
        return (*(match[0] for match in _NUMBER.finditer(text)), *rows)


def pages() -> tuple[Path, ...]:
    """Returns the pages whose numbers need a mark."""
    return (ROOT / "README.md", *sorted((ROOT / "docs" / "explanation").glob("*.md")))


def _without_fences(text: str) -> str:
    """Returns the page with spaces instead of its fenced code: every other letter is where it was."""
    return re.sub(r"```.*?```", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.DOTALL)


def iter_blocks(page: str, text: str) -> Iterator[Block]:
    """Yields the blocks of a page."""
    text = _without_fences(text)
    written = [(match.span("text"), match["name"]) for match in _WRITTEN.finditer(text)]
    for part in _BLOCK.finditer(text):
        by_bench = tuple(name for (start, end), name in written if start <= part.start() < end)
        mark = _MARK.search(part[0])
        if by_bench:
            yield Block(page, part[0], "written", by_bench)
        else:
            names = tuple(name.strip() for name in mark["names"].split(",")) if mark else ()
            yield Block(page, part[0], mark["kind"] if mark else "", names)


def _without_code(text: str) -> str:
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "", re.sub(r"<!--.*?-->", "", text)))


def read_document() -> dict[str, dict[str, Any]]:
    """Returns the measurements by name."""
    document: dict[str, dict[str, Any]] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return document


def list_texts(measurement: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the texts of all numbers of a measurement: its figures, and the conditions under which it was made."""
    shown = [figure["shown"] for figure in measurement["figures"].values() if figure.get("shown")]
    return (*shown, *map(_bare_number, shown), *measurement["texts"], *measurement["conditions"])


def _bare_number(shown: str) -> str:
    """Returns the number of a figure without its unit, as a table has it."""
    match = re.match(r"\d[\d ]*(?:\.\d+)?", shown)
    return match[0].strip() if match else shown


def find_unresolved(block: Block, document: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns what is wrong with the numbers of a block: no mark, an unknown name, a number that no measurement has."""
    if not block.numbers and not block.kind:
        return []
    if not block.kind:
        return [f"{number}: the block has no mark" for number in block.numbers]
    if block.kind == "written":
        writes = {name for each in document.values() for name in each.get("writes", ())}
        return [f"no bench writes {name}" for name in block.names if name not in writes]
    if block.kind == "not measured":
        return [f"no kind of number: {name}" for name in block.names if name not in NOT_MEASURED]
    unknown = [f"no measurement: {name}" for name in block.names if name not in document]
    texts = {text for name in block.names if name in document for text in list_texts(document[name])}
    return unknown + [f"{number}: not in {', '.join(block.names)}" for number in block.numbers if number not in texts]


def record_figures(name: str, figures: Mapping[str, str], *, commit: str, date: str, machine: str) -> None:
    """Store the figures of a run with its origin, and write them into the pages."""
    document = read_document()
    origin = {"commit": commit, "date": date, "machine": machine}
    empty = {"command": f"make {name}", "texts": [], "conditions": [], "figures": {}, **origin}
    measurement = document.get(name, empty)
    replaced = {}
    stored = dict(measurement["figures"])
    for key, value in figures.items():
        before = stored.get(key, {})
        stored[key] = {**before, "value": value, **origin}
        if before.get("shown"):
            stored[key]["shown"] = show_value(before["shown"], value, before.get("scale", 1))
            replaced[before["shown"]] = stored[key]["shown"]
    document[name] = {**measurement, "figures": dict(sorted(stored.items()))}
    write_document(document)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        changed = replace_figures(text, name, replaced)
        if changed != text:
            page.write_text(changed, encoding="utf-8")
    if name in SENTENCES:
        sentence = SENTENCES[name]
        sentence.write_text(_replace_in(sentence.read_text(encoding="utf-8"), replaced), encoding="utf-8")


def write_document(document: Mapping[str, Any]) -> None:
    """Write the measurements, sorted by name."""
    DOCUMENT.write_text(
        json.dumps(dict(sorted(document.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def show_value(shown: str, value: str, scale: float = 1) -> str:
    """Returns the value in the form of an earlier text: as many decimals, the same spaces and unit.

    scale: how many units of the text are one unit of the value; 100 for a share that the text writes in percent.
    """
    match = re.match(r"\d[\d ,]*(?:\.(\d+))?", shown)
    if match is None:
        raise ValueError(f"the text of a figure begins with its number, and this one does not: {shown!r}")
    decimals = len(match[1] or "")
    number = f"{float(value) * scale:,.{decimals}f}".replace(",", " ")
    space = " " if match[0].endswith(" ") else ""
    return number + space + shown[match.end() :]


def replace_figures(text: str, name: str, replaced: Mapping[str, str]) -> str:
    """Returns the page with new texts of figures, in the blocks that name the measurement."""
    cells = {_bare_number(before): _bare_number(after) for before, after in replaced.items()}

    def replace_part(part: str) -> str:
        part = _replace_in(part, replaced)
        return _CELL.sub(
            lambda cell: cell[0].replace(cell[1].strip(), cells.get(cell[1].strip(), cell[1].strip())), part
        )

    changed, end = "", 0
    spans = [part.span() for part in _BLOCK.finditer(_without_fences(text))]
    for (start, stop), block in zip(spans, iter_blocks("", text), strict=True):
        is_named = block.kind == "measured" and name in block.names
        part = text[start:stop]
        changed, end = changed + text[end:start] + (replace_part(part) if is_named else part), stop
    return changed + text[end:]


def _replace_in(part: str, replaced: Mapping[str, str]) -> str:
    if not replaced:
        return part
    earlier = "|".join(re.escape(text) for text in sorted(replaced, key=len, reverse=True))
    return re.sub(rf"(?<![\w.])(?:{earlier})(?!\w)", lambda match: replaced[match[0]], part)


def page() -> str:
    """Returns the page that lists all measurements."""
    lines = [
        "# Measured figures\n",
        "README and the pages of explanation name figures. Each was measured by one of these commands. Run it in a",
        "clone to measure again: it writes the new figures into the pages and into `docs/measured.json`, which has",
        "every figure with the commit, the date and the machine of its run. What no command repeats was measured",
        "once, by hand.\n",
        "| measurement | command | commit | date |",
        "|---|---|---|---|",
    ]
    by_hand = [""]
    for name, each in read_document().items():
        command = f"`{each['command']}`" if each["command"] else "by hand"
        lines.append(f"| {name} | {command} | {each['commit']} | {each['date']} |")
        if not each["command"]:
            by_hand.append(f"{name}: {each['how']}\n")
    return "\n".join([*lines, *by_hand])
