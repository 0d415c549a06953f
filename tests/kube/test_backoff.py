"""When does the next try begin?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trimtab.kube.reflector import MAX_RETRY_AFTER_SECONDS, MAX_WAIT_SECONDS, RetryBackoff


@given(st.integers(0, 40), st.floats(0.1, 1000))
def test_no_sooner_than_the_server_asks_and_not_all_at_the_same_moment(tries: int, asked: float) -> None:
    waits = {RetryBackoff(tries=tries).next_wait_seconds(asked) for _ in range(5)}
    assert min(waits) >= min(asked, MAX_RETRY_AFTER_SECONDS)
    assert max(waits) <= max(MAX_WAIT_SECONDS, 1.5 * min(asked, MAX_RETRY_AFTER_SECONDS))
    assert len(waits) > 1


def test_each_wait_is_about_twice_the_one_before_and_there_is_an_end_to_it() -> None:
    it = RetryBackoff()
    waits = [it.next_wait_seconds() for _ in range(12)]
    for number, wait in enumerate(waits):
        whole = min(MAX_WAIT_SECONDS, 0.5 * 2**number)
        assert whole / 2 <= wait <= whole
    it.reset()
    assert it.next_wait_seconds() <= 0.5
