"""Checks of the VPAs that name Trimtab as their recommender: whether it recommends for them, and how old that is.

The status of a VPA has no end: if the recommender stops, the VPA's own processes apply what it wrote last, for as long
as it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import VPA_RECOMMENDER_NAME
from trimtab.cluster.timestamps import format_age
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import DeploymentState, ObservedCluster
from trimtab.diagnosis.process_states import find_recommender
from trimtab.diagnosis.vpa.reasons import (
    VPA_RECOMMENDATION_MISSING,
    VPA_RECOMMENDATION_OLD,
    VPA_SEVERAL_RECOMMENDERS,
    VPA_WITHOUT_RECOMMENDER,
)
from trimtab.diagnosis.vpa.state import VpaStatusState

MAX_AGE_SECONDS = 7200
"""The age of the usage, in seconds, from which a status is reported as old. While the recommender works, the time in a
status is at most an hour behind."""
MAX_NAMES = 3


def check_vpa_recommendations(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether each VPA that names Trimtab has a recommendation from recent usage."""
    states, process = cluster.vpa_statuses, find_recommender(cluster.processes)
    for part in (states, process):
        if isinstance(part, Unreadable):
            yield report_unknown(part)
    if isinstance(states, Unreadable) or isinstance(process, Unreadable):
        return
    if not states:
        yield report_ok(f"no VPA names {VPA_RECOMMENDER_NAME} as its recommender")
        return
    findings = list(_find_problems(states, process, cluster.present))
    yield from findings or [report_ok(f"{format_count(len(states), 'VPA has a', 'VPAs have a')} recent recommendation")]


@dataclass(frozen=True, slots=True)
class _Groups:
    """The VPAs of each problem."""

    several: tuple[VpaStatusState, ...]
    missing: tuple[VpaStatusState, ...]
    old: tuple[VpaStatusState, ...]


def _group_states(states: Iterable[VpaStatusState], now: datetime) -> _Groups:
    several, missing, old = [], [], []
    for state in states:
        if not state.is_only_recommender:
            several.append(state)
        elif not state.has_recommendation:
            missing.append(state)
        elif state.has_pods and state.used_until is not None and _age(state.used_until, now) > MAX_AGE_SECONDS:
            old.append(state)
    return _Groups(tuple(several), tuple(missing), tuple(old))


def _age(moment: datetime, now: datetime) -> int:
    return int((now - moment).total_seconds())


def _find_problems(
    states: Iterable[VpaStatusState], process: DeploymentState | None, now: datetime
) -> Iterator[DoctorFinding]:
    groups = _group_states(states, now)
    if process is None or not process.writes_vpa_status:
        count = format_count(
            len(tuple(states)), f"VPA names {VPA_RECOMMENDER_NAME}", f"VPAs name {VPA_RECOMMENDER_NAME}"
        )
        yield report_error(VPA_WITHOUT_RECOMMENDER, f"{count}, but no process writes the recommendation")
    if groups.several:
        yield report_warning(VPA_SEVERAL_RECOMMENDERS, f"{_join_names(groups.several)}: more than one recommender")
    if groups.missing:
        yield report_warning(VPA_RECOMMENDATION_MISSING, f"{_join_names(groups.missing)}: no recommendation yet")
    if groups.old:
        oldest = max(_age(state.used_until, now) for state in groups.old if state.used_until is not None)
        yield report_error(
            VPA_RECOMMENDATION_OLD,
            f"{_join_names(groups.old)}: the recommendation is from usage of up to {format_age(oldest)} ago, and the "
            "VPA applies it nevertheless",
        )


def _join_names(states: tuple[VpaStatusState, ...]) -> str:
    return join_first([state.name for state in states], MAX_NAMES)


CHECKS = (
    Check(
        name="vpa-recommendations",
        asks="Do the VPAs that name Trimtab have a recommendation from recent usage?",
        judge=check_vpa_recommendations,
        may=(
            VPA_WITHOUT_RECOMMENDER,
            VPA_SEVERAL_RECOMMENDERS,
            VPA_RECOMMENDATION_MISSING,
            VPA_RECOMMENDATION_OLD,
        ),
    ),
)
