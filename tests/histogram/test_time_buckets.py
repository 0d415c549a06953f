"""Where a series passes from one day to the next."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.time_buckets import slice_by_length


@given(st.lists(st.integers(0, 5000), max_size=50).map(sorted), st.integers(1, 2000))
def test_the_pieces_are_the_series_each_of_one_number(times: list[int], length: int) -> None:
    pieces = slice_by_length(times, length)
    assert [times[n] for _, start, end in pieces for n in range(start, end)] == times
    assert all({at // length for at in times[start:end]} == {number} for number, start, end in pieces)
    assert len({number for number, _, _ in pieces}) == len(pieces)


@given(st.integers(0, 500), st.integers(1, 300), st.integers(0, 60), st.integers(1, 2000))
def test_a_range_is_cut_as_its_moments_are(first: int, step: int, count: int, length: int) -> None:
    times = range(first, first + step * count, step)
    assert slice_by_length(times, length) == slice_by_length(list(times), length)
