"""Windows of pods that no pool can meet."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL
from trimtab.autoscaling.rules.pod_terms import _longest_closed_seconds, _window_problems
from trimtab.cluster.disruption_terms import WINDOWS_ANNOTATION, parse_windows, read_terms
from trimtab.cluster.timestamps import WeeklyWindow

NIGHT = (WeeklyWindow(start=60, end=300),)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("00:00-24:00", 0),
        ("02:00-04:00", 22),
        ("sat 02:00-06:00", 164),
        ("mon-fri 22:00-06:00; sat,sun 00:00-24:00", 22),
    ],
)
def test_the_longest_time_in_which_windows_are_closed(text: str, hours: int) -> None:
    windows = parse_windows(text)
    assert isinstance(windows, tuple)
    assert _longest_closed_seconds(windows, ()) == hours * 3600


@pytest.mark.parametrize(
    ("text", "pool", "count"),
    [
        ("sat 02:00-06:00", ALL, 0),
        ("sat 02:00-06:00", replace(ALL, max_term_delay=86_400), 1),
        ("sat 02:00-06:00", replace(ALL, max_term_delay=0), 0),
        ("12:00-13:00", replace(ALL, windows=NIGHT), 1),
        ("04:00-06:00", replace(ALL, windows=NIGHT), 0),
    ],
)
def test_windows_must_agree_with_those_of_the_pool_and_with_its_ceiling(text: str, pool: object, count: int) -> None:
    assert len(list(_window_problems(read_terms({WINDOWS_ANNOTATION: text}), [pool]))) == count  # type: ignore[list-item]
