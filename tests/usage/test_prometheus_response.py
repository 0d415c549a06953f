"""The quick way through an answer of Prometheus gives what the decoder of every field gives."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.usage.errors import GarbledSource
from trimtab.usage.prometheus_response import parse_exact_series, parse_series

START = 20_000 * 86400
APP = {"namespace": "shop", "pod": "web-1", "container": "app"}

numbers = st.one_of(
    st.floats(0, 1e12).map(repr),
    st.integers(0, 2**70).map(str),
    st.sampled_from(["5e-324", "1e-05", "5e+06", "1.5E3", "0", "-1", "-0.5", "1.7976931348623157e+308"]),
)
odd = st.sampled_from(["NaN", "+Inf", "-Inf", "Infinity", "1e999", "", " 1", "1 2", "01", "1,2", "0x10", "1_0"])
names = st.sampled_from(["web-1", 'a"b', "]]},{", '{"metric":', "}", "ü", '"]]}'])


@st.composite
def some_series(draw: st.DrawFn) -> dict[str, Any]:
    """Mostly a point at each step; some with a gap, fractions of seconds, values that are no numbers, or nothing."""
    step = draw(st.sampled_from([300, 60, 15, 0.5]))
    values = draw(st.lists(numbers, max_size=12))
    points: list[Any] = [[START + n * step, value] for n, value in enumerate(values)]
    if points and draw(st.booleans()):
        points.pop(draw(st.integers(0, len(points) - 1)))
    if points and draw(st.integers(0, 3)) == 0:
        points[draw(st.integers(0, len(points) - 1))][1] = draw(odd)
    return {"metric": {**APP, "pod": draw(names)}, "values": points}


def answered(*result: dict[str, Any], compact: bool = True, **more: Any) -> bytes:
    data = {"resultType": "matrix", "result": list(result)}
    separators = (",", ":") if compact else None
    return json.dumps({"status": "success", "data": data, **more}, separators=separators).encode()


Told = list[tuple[str, list[int], list[float]]]


def quickly(body: bytes) -> Told | str:
    try:
        return [(s.pod, list(s.times), list(s.values)) for s in parse_series(body, "cpu")]
    except GarbledSource:
        return "garbled"


def field_by_field(result: list[dict[str, Any]]) -> Told | str:
    try:
        read = [parse_exact_series(msgspec.json.encode(one)) for one in result]
    except msgspec.DecodeError:
        return "garbled"
    return [(metric.pod, list(times), list(values)) for metric, times, values, _ in read]


@given(st.lists(some_series(), max_size=4), st.booleans(), st.booleans())
def test_both_ways_through_an_answer_give_the_same(found: list[dict[str, Any]], compact: bool, more: bool) -> None:
    body = answered(*found, compact=compact, **({"warnings": ["]]},"]} if more else {}))
    assert quickly(body) == field_by_field(found)


def regular(pod: str, points: int = 3) -> dict[str, Any]:
    return {"metric": {**APP, "pod": pod}, "values": [[START + 300 * n, f"{n}.5"] for n in range(points)]}


def test_a_regular_series_has_its_moments_as_a_range() -> None:
    (result, _) = parse_series(answered(regular("a"), regular("b")), "cpu")
    assert result.times == range(START, START + 900, 300)
    assert list(result.values) == [0.5, 1.5, 2.5]


def test_points_that_are_no_number_are_left_out_and_counted() -> None:
    odd = {"metric": APP, "values": [[START, "NaN"], [START + 300, "1"], [START + 600, "+Inf"]]}
    (result, other) = parse_series(answered(odd, regular("b")), "cpu")
    assert (list(result.values), result.dropped_values, other.dropped_values) == ([1.0], 2, 0)


def test_what_lies_in_the_future_is_cut_off() -> None:
    (series,) = parse_series(answered(regular("a", 9)), "cpu", now=START)
    assert list(series.times) == [START, START + 300]


@pytest.mark.parametrize("points", [[[0, "1", "2"], [300, "3", "4"]], [[0, "1", "2"], [300, "3"]], [[0, "1,2"]]])
def test_a_number_too_many_is_never_taken_for_another(points: list[Any]) -> None:
    results = [regular("a"), {"metric": APP, "values": points}, regular("b")]
    assert quickly(answered(*results)) == field_by_field(results)


def test_an_error_behind_the_series_is_seen() -> None:
    body = answered(regular("a"), regular("b")).replace(b"success", b"error")
    assert quickly(body) == "garbled"


def test_an_answer_cut_short_is_garbled() -> None:
    body = answered(regular("a"), regular("b"), regular("c"))
    assert quickly(body[:-4]) == quickly(body[: len(body) // 2]) == "garbled"
