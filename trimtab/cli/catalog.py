"""The catalog of `trimtab explain`: one entry for each reason code, lint rule, doctor check, alert, setting, field,
annotation, label, taint, metric, word of the vocabulary, column of a table and field of a report.

`catalog.json` is generated from the declarations themselves, as the reference pages are (docs/pages/explain.py). It is
read instead of them because an import of every module that declares a reason takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.resources import files
from typing import Final

import msgspec

REASON, RULE, CHECK, ALERT, SETTING, POLICY_FIELD, POOL_FIELD, METRIC, WORD, COLUMN, REPORT_FIELD = (
    "reason",
    "rule",
    "check",
    "alert",
    "setting",
    "policy field",
    "pool field",
    "metric",
    "word",
    "column",
    "report field",
)
ORDER_FIELD: Final = "DrainOrder field"
FILE: Final = "catalog.json"
MAX_SUGGESTIONS = 5
MAX_MEANINGS, MAX_COMMANDS = 4, 3
"""How many meanings of a report's field are shown, unless its command is given, and how many commands of a meaning. A
name such as `pods` is in many reports."""
MARK_PREFIX = "trimtab.dev/"
"""The prefix of Trimtab's annotations, labels and taints. `trimtab explain` also finds them without this prefix."""


class CatalogEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name that `trimtab explain` knows, with its meaning."""

    kind: str
    name: str
    means: str
    """What the name means; of a field of reports, a line for each meaning, after the commands whose reports have it."""
    todo: str = ""
    """What the user should do; empty if nothing is to be done."""
    value: str = ""
    """The type of a field, the default of a setting, the labels and the unit of a metric, the kinds that have an
    annotation, label or taint, the origin of a word, or the commands that print a column."""
    page: str
    """The page of the documentation, with its anchor."""


def load_catalog() -> tuple[CatalogEntry, ...]:
    """Returns all entries of the catalog, in the order of the file."""
    content = files("trimtab.cli").joinpath(FILE).read_bytes()
    return msgspec.json.decode(content, type=tuple[CatalogEntry, ...])


def encode_catalog(entries: Iterable[CatalogEntry]) -> str:
    """Returns the text of the file: one entry per line, so that a change is one line of a diff."""
    lines = ",\n".join(msgspec.json.encode(entry).decode() for entry in entries)
    return f"[\n{lines}\n]\n"


def find_entries(catalog: Sequence[CatalogEntry], name: str) -> list[CatalogEntry]:
    """Returns the entries of this name, ignoring case.

    Fields of a policy are found with and without their first words (`podpolicy.spec.rollout`, `spec.rollout`,
    `rollout`), fields of a pool with and without `pool.`. If there is no such field, the fields whose paths end with
    the name are returned (`requests.cpu`), of a single word (`override`) the first ones. The name of a group of pool
    fields (`pace`) stands for its fields. A field of a report has the meanings in all reports (`waves`), or in those of
    a command (`plan.waves`, `fleet plan.nodes`).
    """
    wanted = _normalize(name)
    exact = [_select_meanings(entry) for entry in catalog if wanted in _spellings(entry)]
    group = _find_group(catalog, wanted.removeprefix("pool."))
    if group is not None and all(entry.kind != POOL_FIELD for entry in exact):
        return [*exact, group]
    if exact:
        return exact
    ends = [entry for entry in catalog if _normalize(entry.name).endswith(f".{wanted}")]
    if "." in wanted:
        return ends or _find_report_field(catalog, wanted)
    return [entry for entry in ends if entry.kind in (POLICY_FIELD, POOL_FIELD, ORDER_FIELD)][:MAX_SUGGESTIONS]


def _find_report_field(catalog: Sequence[CatalogEntry], wanted: str) -> list[CatalogEntry]:
    """Returns the field of a path inside a report, `COMMAND.….FIELD` or `FIELD.….FIELD`; nothing if there is none."""
    first, last = wanted.partition(".")[0], wanted.rpartition(".")[2]
    command = f"`trimtab {first}`"
    fields = [entry for entry in catalog if entry.kind == REPORT_FIELD]
    if not any(command in entry.means or first in _spellings(entry) for entry in fields):
        return []
    return [_select_meanings(entry, command) for entry in fields if last in _spellings(entry)]


def _select_meanings(entry: CatalogEntry, command: str = "") -> CatalogEntry:
    """Returns a field of reports with the meanings that are shown: all in the reports of the command, if it has any,
    else the most frequent ones, where many commands are not named. Returns every other entry as it is."""
    if entry.kind != REPORT_FIELD:
        return entry
    meanings = [(commands, means) for commands, _, means in (line.partition(": ") for line in entry.means.splitlines())]
    lines = [means for commands, means in meanings if command in commands.split(", ")]
    if not lines:
        shown, rest = meanings[:MAX_MEANINGS], meanings[MAX_MEANINGS:]
        lines = [
            f"{commands if commands.count(',') < MAX_COMMANDS else 'In many reports'}: {means}"
            for commands, means in shown
        ]
        if rest:
            example = f"{rest[0][0].partition(',')[0].strip('`').removeprefix('trimtab ')}.{entry.name}"
            word = f'"{example}"' if " " in example else example
            lines.append(f"{len(rest)} more in the reports of other commands, such as `trimtab explain {word}`.")
    return msgspec.structs.replace(entry, means="\n".join(lines))


def _find_group(catalog: Sequence[CatalogEntry], wanted: str) -> CatalogEntry | None:
    """Returns an entry for a group of pool fields, such as `keep` and `keep.headroom`; None if there is no such
    group."""
    inside = next(
        (entry for entry in catalog if entry.kind == POOL_FIELD and _normalize(entry.name).startswith(f"{wanted}.")),
        None,
    )
    if inside is None:
        return None
    name = ".".join(inside.name.split(".")[: wanted.count(".") + 1])
    means = f"The fields of a pool under `{name}`. `trimtab explain {inside.name}` explains one of them."
    return CatalogEntry(kind=POOL_FIELD, name=name, means=means, page=inside.page)


def find_children(catalog: Sequence[CatalogEntry], entry: CatalogEntry) -> list[CatalogEntry]:
    """Returns the entries of the fields directly inside this entry's field."""
    prefix = f"{entry.name}."
    starts = (prefix, f"{entry.name}[].", f"{entry.name}{{}}.")
    return [
        child
        for child in catalog
        if child.kind == entry.kind
        for start in starts
        if child.name.startswith(start) and "." not in child.name.removeprefix(start)
    ]


def suggest_entries(catalog: Sequence[CatalogEntry], name: str) -> list[str]:
    """Returns names that resemble `name` or contain it, the most similar first."""
    names = {spelling: entry.name for entry in catalog for spelling in _spellings(entry)}
    wanted = _normalize(name)
    near = get_close_matches(wanted, names, MAX_SUGGESTIONS, 0.75)
    containing = [entry_name for entry_name in names if wanted and wanted in entry_name]
    return list(dict.fromkeys(names[entry_name] for entry_name in (*near, *containing)))[:MAX_SUGGESTIONS]


def _normalize(name: str) -> str:
    return " ".join(name.split()).casefold().replace("[]", "").replace("{}", "")


def _spellings(entry: CatalogEntry) -> set[str]:
    name = _normalize(entry.name)
    if entry.kind == POLICY_FIELD:
        return {name, f"podpolicy.{name}", name.removeprefix("spec.")}
    if entry.kind == POOL_FIELD:
        return {name, f"pool.{name}"}
    if entry.kind == WORD:
        return {name, name.partition(" (")[0]}
    if entry.kind == REPORT_FIELD:
        return {name, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", entry.name).casefold()}
    if entry.kind == METRIC and entry.value.startswith("histogram"):
        return {name, f"{name}_bucket", f"{name}_count", f"{name}_sum"}
    if entry.kind == METRIC:
        return {name, name.removesuffix("_total")}
    if name.startswith(MARK_PREFIX):
        return {name, name.removeprefix(MARK_PREFIX)}
    return {name}
