"""What changed since an earlier report: requests, recommendations, containers that came and went."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from trimtab.cli.main import UsageError
from trimtab.cli.output import ReportPart
from trimtab.cli.recommend.build_report import Question
from trimtab.cli.recommend.report import (
    ComparisonReport,
    ContainerReport,
    DifferenceReport,
    PlaceReport,
    RecommendReport,
    ResourceReport,
)
from trimtab.cluster import quantity
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.quantity import NotAQuantity
from trimtab.sizing.statistics import SizingSeverity

APPLIED, REQUEST, RECOMMENDATION = "applied", "request-changed", "recommendation-changed"
TOLERANCE = 0.05
"""A recommendation within a twentieth is the same recommendation."""


class _Resource(ReportPart, frozen=True, kw_only=True):
    now: str | None = None
    proposed: str | None = None


class _Container(ReportPart, frozen=True, kw_only=True):
    cluster: str | None = None
    namespace: str
    kind: str
    workload: str
    container: str
    cpu: _Resource
    memory: _Resource


class Earlier(ReportPart, frozen=True, kw_only=True):
    """An earlier report, as far as it is compared: also one of a version that knew less."""

    kind: str
    at: str | None = None
    containers: list[_Container]
    saved: float = 0.0


_Row = _Container | ContainerReport
_Key = tuple[str | None, str, str, str, str]


def read(path: str) -> Earlier:
    """What `-o json` wrote. Raises Wrong."""
    expected = "a report that `trimtab recommend -o json` wrote"
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=Earlier)
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=path, expected="a file that can be read", got=got)]) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError([ConfigError(file=path, expected=expected, got=f"something else ({error})")]) from None
    if found.kind != "RecommendReport":
        raise UsageError([ConfigError(file=path, expected=expected, got=f"a {found.kind}")])
    return found


def compared(earlier: Earlier, report: RecommendReport, question: Question) -> ComparisonReport:
    """What is otherwise now. What the selection leaves out did not go. By label and severity it is not known what the
    earlier report would have had: containers that came or went are not told then."""
    selection = question.selection
    is_whole = not selection.labels and question.least_severity is SizingSeverity.UNKNOWN
    before = {_key(row): row for row in earlier.containers}
    after = {_key(row): row for row in report.containers}
    gone = [row for key, row in before.items() if key not in after and selection.names(row.namespace, row.kind)]
    return ComparisonReport(
        at=earlier.at, saved=earlier.saved,
        differences=[one for key, row in after.items() if key in before for one in _differences(before[key], row)],
        new=[_place(row) for key, row in after.items() if is_whole and key not in before],
        gone=[_place(row) for row in gone if is_whole],
    )  # fmt: skip


def _key(row: _Row) -> _Key:
    return row.cluster, row.namespace, row.kind, row.workload, row.container


def _place(row: _Row) -> PlaceReport:
    return PlaceReport(
        cluster=row.cluster, namespace=row.namespace, kind=row.kind, workload=row.workload, container=row.container
    )


def _differences(before: _Container, after: ContainerReport) -> Iterator[DifferenceReport]:
    for resource in ("cpu", "memory"):
        old, new = getattr(before, resource), getattr(after, resource)
        for what, was, came in _changes(resource, old, new):
            yield DifferenceReport(place=_place(after), resource=resource, what=what, before=was, after=came)


def _changes(
    resource: str, old: _Resource, new: ResourceReport
) -> Iterable[tuple[str, str | None, str | None]]:  # fmt: skip
    if not _same(resource, old.now, new.now):
        was_proposed = old.proposed is not None and _same(resource, old.proposed, new.now)
        yield (APPLIED if was_proposed else REQUEST), old.now, new.now
    wanted, wants = old.proposed or old.now, new.proposed or new.now
    if (old.proposed or new.proposed) and not _same(resource, wanted, wants, TOLERANCE):
        yield RECOMMENDATION, wanted, wants


def _same(resource: str, one: str | None, other: str | None, tolerance: float = 0.0) -> bool:
    if one is None or other is None:
        return one == other
    try:
        a, b = quantity.scheduler_value(resource, one), quantity.scheduler_value(resource, other)
    except NotAQuantity:
        return one == other
    return abs(a - b) <= tolerance * max(a, b)
