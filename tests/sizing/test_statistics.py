"""How far is a request from what it should be?"""

import pytest

from trimtab.sizing.statistics import GIB, SizingSeverity, most_severe, rate_severity

MI = 1 << 20


@pytest.mark.parametrize(
    ("resource", "request_", "proposed", "pods", "found"),
    [
        ("cpu", None, 100, 1, "medium"),
        ("cpu", 100, 140, 50, "low"),
        ("cpu", 100, 200, 1, "medium"),
        ("cpu", 1000, 1400, 1, "low"),
        ("memory", 10 * MI, 70 * MI, 1, "low"),
        ("memory", 100 * MI, 200 * MI, 1, "high"),
        ("memory", GIB, 5 * GIB // 4, 1, "medium"),
        ("memory", 10 * GIB, 11 * GIB, 1, "low"),
        ("cpu", 1000, 600, 1, "low"),
        ("cpu", 1000, 600, 2, "medium"),
        ("cpu", 1000, 600, 10, "high"),
        ("memory", 4 * GIB, 3 * GIB, 1, "low"),
        ("memory", 4 * GIB, 3 * GIB, 2, "medium"),
        ("memory", 4 * GIB, 3 * GIB, 16, "high"),
    ],
)
def test_short_is_judged_by_its_share_and_waste_by_what_all_pods_reserve(
    resource: str, request_: int | None, proposed: int, pods: float, found: str
) -> None:
    assert rate_severity(resource, request_, proposed, pods) == found


def test_a_kill_is_severe_unless_the_request_covers_it_already() -> None:
    assert rate_severity("memory", 100 * MI, 101 * MI, 1, killed=True) == "high"
    assert rate_severity("memory", 200 * MI, 101 * MI, 1, killed=True) == "low"


def test_the_more_severe_resource_speaks_for_the_container() -> None:
    assert most_severe(SizingSeverity.UNKNOWN, SizingSeverity.NONE) == "none"
    assert most_severe(SizingSeverity.HIGH, SizingSeverity.LOW) == "high"
