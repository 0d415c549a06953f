"""A request takes away the doubts that it covers, and only those."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.recommendation import CONFIDENCE_FACTORS, Percentiles, confidence_at, remaining_signs

GI = 1 << 30


def doubtful(*signs: str) -> Percentiles:
    return Percentiles(p5="1Gi", p95="1Gi", max="6Gi", request="2Gi", signs=signs, pod="web-7", pod_use="4Gi")


@pytest.mark.parametrize(
    ("sign", "amount", "left"),
    [
        ("rare-peaks", 4 * GI, True),
        ("rare-peaks", 6 * GI * 4 // 5 + 1, False),
        ("pods-differ", 4 * GI - 1, True),
        ("pods-differ", 4 * GI, False),
        ("changed-recently", 9 * GI, True),
        ("grows", 9 * GI, True),
        ("new", 9 * GI, True),
    ],
)
def test_what_is_covered_is_doubted_no_more(sign: str, amount: int, left: bool) -> None:
    assert remaining_signs("memory", doubtful(sign), amount) == ((sign,) if left else ())


@given(st.lists(st.sampled_from([*CONFIDENCE_FACTORS, "new"]), unique=True), st.integers(1, 9 * GI), st.floats(0, 1))
def test_confidence_is_given_back_never_taken_and_never_more_than_all(
    signs: list[str], amount: int, confidence: float
) -> None:
    actual_confidence = confidence_at("memory", doubtful(*signs), amount, confidence)
    assert actual_confidence is not None
    assert confidence <= actual_confidence <= 1
    if set(signs) <= {"changed-recently", "grows", "new"}:
        assert actual_confidence == confidence


def test_where_no_confidence_is_known_none_is_made_up() -> None:
    assert confidence_at("memory", doubtful("rare-peaks"), 9 * GI, None) is None
