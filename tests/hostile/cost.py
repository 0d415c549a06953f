"""What a call costs, counted and not timed: lines of Python that run, calls included.

The same call counts the same on every machine, however busy. What a single line does inside of C (a look through a
tuple, a copy of a mapping) counts as one: that is for `make bench-hostile`, which takes the time.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines(call: Callable[[], object]) -> int:
    """How many lines of Python ran."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def growth(costs: tuple[int, int, int, int]) -> float:
    """How many times as much the second step costs as the first, of the costs at 0, n, 2n and 3n: 1 where it is linear.

    What is there without n does not count, nor does a step of less than a fiftieth of that.
    """
    fixed, once, twice, thrice = costs
    least = max(fixed // 50, 1)
    return max(thrice - twice, least) / max(twice - once, least)
