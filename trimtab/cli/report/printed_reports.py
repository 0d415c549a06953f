"""What `trimtab report` reads of the reports that other verbs printed as JSON: only the fields that it shows.

The whole reports are in deploy/schemas. A field that a later version adds changes nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trimtab.cluster.config_error import ConfigError


class PrintedPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of what is read: names are camelCase."""


class PrintedAmount(PrintedPart, frozen=True, kw_only=True):
    """An amount with its unit."""

    amount: float
    unit: str


class PrintedStep(PrintedPart, frozen=True, kw_only=True):
    """A node that a plan drains."""

    pool: str
    saves: PrintedAmount
    moves: list[msgspec.Raw]


class PrintedWave(PrintedPart, frozen=True, kw_only=True):
    """A wave of a plan."""

    nodes: list[PrintedStep]


class PrintedKeeper(PrintedPart, frozen=True, kw_only=True):
    """A reason that keeps nodes."""

    code: str
    todo: str
    more_nodes: int
    costs: PrintedAmount


class PrintedPlan(PrintedPart, frozen=True, kw_only=True):
    """A report of `trimtab plan`."""

    nodes_before: int
    nodes_after: int
    evictions: int
    saves: PrintedAmount
    guessed: PrintedAmount
    waves: list[PrintedWave]
    keepers: list[PrintedKeeper]


class PrintedTotal(PrintedPart, frozen=True, kw_only=True):
    """A sum of requests."""

    value: str | None
    containers: int
    changes: int
    monthly_now: float | None
    monthly_proposed: float | None
    monthly_saved: float | None


class PrintedContainer(PrintedPart, frozen=True, kw_only=True):
    """A container with a recommendation."""

    namespace: str
    workload: str
    container: str
    monthly_saved: float | None


class PrintedRecommendation(PrintedPart, frozen=True, kw_only=True):
    """A report of `trimtab recommend`."""

    at: str | None
    containers: list[PrintedContainer]
    saved: float
    changes: int
    unknown: int
    totals: list[PrintedTotal]


class PrintedFinding(PrintedPart, frozen=True, kw_only=True):
    """A finding of lint."""

    rule: str
    severity: str
    kind: str
    namespace: str
    name: str
    sentence: str
    fix: str


class PrintedLint(PrintedPart, frozen=True, kw_only=True):
    """A report of `trimtab lint`."""

    findings: list[PrintedFinding]
    not_checked: list[str]
    objects: int
    rules: int
    counts: dict[str, int]


class PrintedFigures(PrintedPart, frozen=True, kw_only=True):
    """A row of a replay."""

    variant: str
    day: str
    core_hours: float
    saved_core_hours: float | None
    cost: float | None
    saved: float | None
    bought: int
    evictions: int | None
    long_waits: int | None


class PrintedWorkload(PrintedPart, frozen=True, kw_only=True):
    """A workload that a replay disturbs."""

    workload: str
    evictions: int


class PrintedReplay(PrintedPart, frozen=True, kw_only=True):
    """A report of `trimtab replay`."""

    cluster: str
    since: str
    until: str
    hours: float
    command: str
    details: str
    source: str = "captures"
    model_error: float | None
    measured_error: str
    own_drains: int = 0
    notes: list[str] = []
    variants: list[PrintedFigures]
    days: list[PrintedFigures]
    workloads: list[PrintedWorkload]
    missing: list[msgspec.Raw]


class PrintedSavings(PrintedPart, frozen=True, kw_only=True):
    """The removed nodes of a pool, or of all."""

    name: str
    nodes: int | None
    saves: list[PrintedAmount]
    dollars_so_far: float | None


class PrintedSavingsReport(PrintedPart, frozen=True, kw_only=True):
    """A report of `trimtab savings`."""

    since: str
    until: str
    total: PrintedSavings
    pools: list[PrintedSavings]


Printed = PrintedPlan | PrintedRecommendation | PrintedLint | PrintedReplay | PrintedSavingsReport
SHAPES: Mapping[str, type[Printed]] = {
    "ReplayReport": PrintedReplay,
    "PlanReport": PrintedPlan,
    "RecommendReport": PrintedRecommendation,
    "SavingsReport": PrintedSavingsReport,
    "LintReport": PrintedLint,
}
"""Kind of a report → what is read of it, in the order of the page."""


class _Head(msgspec.Struct, frozen=True):
    kind: str = ""


def read_printed(file: str, content: bytes) -> tuple[str, Printed] | ConfigError:
    """Returns (kind, the report) of a file; a mistake if it is none of the reports that can be joined."""
    expected = "the output of trimtab replay, plan, recommend, savings or lint with -o json"
    try:
        kind = msgspec.json.decode(content, type=_Head).kind
        shape = SHAPES.get(kind)
        if shape is None:
            return ConfigError(file=file, expected=expected, got=repr(kind) if kind else "no kind")
        return kind, msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return ConfigError(file=file, expected=expected, got=str(error))
