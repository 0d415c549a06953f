"""The comparison with an earlier report: changed requests and recommendations, new and missing containers."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

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
from trimtab.inputs.command_faults import UsageError
from trimtab.sizing.statistics import SizingSeverity

APPLIED, REQUEST, RECOMMENDATION = "applied", "request-changed", "recommendation-changed"
TOLERANCE = 0.05
"""The relative difference up to which two recommendations count as equal."""


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
    """The fields of an earlier report that are compared; an older version of the report may lack the optional ones."""

    kind: str
    at: str | None = None
    containers: list[_Container]
    saved: float = 0.0


_Row = _Container | ContainerReport
_Key = tuple[str | None, str, str, str, str]


def read_earlier_report(path: str) -> Earlier:
    """Read a report that `-o json` wrote. Raises UsageError if it is no such report."""
    expected = "a report that `trimtab recommend -o json` wrote"
    try:
        report = msgspec.json.decode(Path(path).read_bytes(), type=Earlier)
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=path, expected="a file that can be read", got=got)]) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise UsageError(
            [ConfigError(file=path, expected=expected, got=f"a document with another structure ({error})")]
        ) from None
    if report.kind != "RecommendReport":
        raise UsageError([ConfigError(file=path, expected=expected, got=f"a report of the kind {report.kind}")])
    return report


def compare_reports(earlier: Earlier, report: RecommendReport, question: Question) -> ComparisonReport:
    """Returns what changed since the earlier report.

    A container that the selection leaves out does not count as missing. If containers are selected by label or
    severity, new and missing containers are not reported: the earlier report does not contain the data for such a
    selection.
    """
    selection = question.selection
    is_whole = not selection.labels and question.least_severity is SizingSeverity.UNKNOWN
    before = {_key(row): row for row in earlier.containers}
    after = {_key(row): row for row in report.containers}
    missing = [
        row for key, row in before.items() if key not in after and selection.includes_workload(row.namespace, row.kind)
    ]
    return ComparisonReport(
        at=earlier.at,
        saved=earlier.saved,
        differences=[
            difference
            for key, row in after.items()
            if key in before
            for difference in _find_differences(before[key], row)
        ],
        new=[_place(row) for key, row in after.items() if is_whole and key not in before],
        gone=[_place(row) for row in missing if is_whole],
    )


def _key(row: _Row) -> _Key:
    return row.cluster, row.namespace, row.kind, row.workload, row.container


def _place(row: _Row) -> PlaceReport:
    return PlaceReport(
        cluster=row.cluster, namespace=row.namespace, kind=row.kind, workload=row.workload, container=row.container
    )


def _find_differences(before: _Container, after: ContainerReport) -> Iterator[DifferenceReport]:
    for resource in ("cpu", "memory"):
        old, new = getattr(before, resource), getattr(after, resource)
        for what, was, now in _find_changes(resource, old, new):
            yield DifferenceReport(place=_place(after), resource=resource, what=what, before=was, after=now)


def _find_changes(resource: str, old: _Resource, new: ResourceReport) -> Iterable[tuple[str, str | None, str | None]]:
    if not _is_same(resource, old.now, new.now):
        was_proposed = old.proposed is not None and _is_same(resource, old.proposed, new.now)
        yield (APPLIED if was_proposed else REQUEST), old.now, new.now
    old_request, new_request = old.proposed or old.now, new.proposed or new.now
    if (old.proposed or new.proposed) and not _is_same(resource, old_request, new_request, TOLERANCE):
        yield RECOMMENDATION, old_request, new_request


def _is_same(resource: str, first: str | None, second: str | None, tolerance: float = 0.0) -> bool:
    if first is None or second is None:
        return first == second
    try:
        first_value, second_value = (
            quantity.scheduler_value(resource, first),
            quantity.scheduler_value(resource, second),
        )
    except NotAQuantity:
        return first == second
    return abs(first_value - second_value) <= tolerance * max(first_value, second_value)
