"""Rules about what pods state about themselves: windows, costs and daily numbers of evictions."""

from collections.abc import Iterable, Iterator

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, lint_rule
from trimtab.cluster.disruption_terms import MIN_WINDOW_MINUTES, WINDOWS_ANNOTATION, DisruptionTerms, read_terms
from trimtab.cluster.pool import Pool
from trimtab.cluster.timestamps import WeeklyWindow, format_age, is_any_open

_MONDAY = 1_767_571_200
"""2026-01-05T00:00:00Z, the begin of a week without a change of daylight saving time."""
_STEP_SECONDS = 60 * MIN_WINDOW_MINUTES
_WEEK_SECONDS = 7 * 86_400


@lint_rule(
    "L51",
    LintSeverity.WARNING,
    "Terms of pods for their evictions that cannot be met",
    why="A term that cannot be read, or that is never met, counts as the most that the pool permits: its pods keep "
    "their nodes for podTerms.maxDelay, and are then evicted at any time.",
    source="docs/how-to/terms-of-pods.md",
    fix="Correct the annotation in the template of the pods, or raise podTerms.maxDelay of the pool.",
)
def unmet_terms(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each annotation about evictions that cannot be read, for windows that never open while a
    pool's are open, and for windows that are closed for longer than every pool permits."""
    pools = [pool for pool in snapshot.pools if pool.enabled]
    for workload in snapshot.workloads:
        if workload.subject.kind == "DaemonSet" or not workload.pod_annotations:
            continue
        terms, path = read_terms(workload.pod_annotations), (*workload.template_path[:-1], "metadata", "annotations")
        for mistake in terms.mistakes:
            yield rule.report_problem(
                workload.subject, f"In {workload.subject}, {mistake}.", path=(*path, mistake.annotation)
            )
        for problem in _window_problems(terms, pools):
            yield rule.report_problem(
                workload.subject, f"In {workload.subject}, {problem}.", path=(*path, WINDOWS_ANNOTATION)
            )


def _window_problems(terms: DisruptionTerms, pools: Iterable[Pool]) -> Iterator[str]:
    """Yields what is wrong with windows that can be read, as parts of sentences."""
    obeying = [pool for pool in pools if pool.max_term_delay]
    if not isinstance(terms.windows, tuple) or not terms.windows or not obeying:
        return
    closed_seconds = [_longest_closed_seconds(terms.windows, pool.windows) for pool in obeying]
    if None in closed_seconds:
        pool = obeying[closed_seconds.index(None)]
        yield f"the windows of the pods are never open while those of pool {pool.name} are"
        return
    known = [seconds for seconds in closed_seconds if seconds is not None]
    if all(seconds > pool.max_term_delay for seconds, pool in zip(known, obeying, strict=True)):
        longest = max(pool.max_term_delay for pool in obeying)
        yield (
            f"the windows of the pods are closed for {format_age(min(known))}, but no pool permits more than "
            f"{format_age(longest)} (podTerms.maxDelay)"
        )


def _longest_closed_seconds(own: tuple[WeeklyWindow, ...], pools: tuple[WeeklyWindow, ...]) -> int | None:
    """Returns for how many seconds at most the windows of both are not open together; None if they never are."""
    times = range(_MONDAY, _MONDAY + _WEEK_SECONDS, _STEP_SECONDS)
    opened = [time for time in times if is_any_open(own, time) and is_any_open(pools, time)]
    if not opened:
        return None
    following = (*opened[1:], opened[0] + _WEEK_SECONDS)
    return max(later - time for time, later in zip(opened, following, strict=True)) - _STEP_SECONDS
