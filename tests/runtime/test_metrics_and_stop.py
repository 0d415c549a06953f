"""Labels that cannot grow, gauges that cannot break a scrape, and a stop that is heard."""

import math
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Gauge

from trimtab.runtime import clock
from trimtab.runtime.graceful_shutdown import GracefulShutdown, stop_on_signals
from trimtab.runtime.metrics import Bounded, nan_on_error, render_metrics


def test_a_label_keeps_its_first_values_and_calls_the_rest_other() -> None:
    label = Bounded(2)
    assert [label(value) for value in ("a", "b", "c", "a", "d")] == ["a", "b", "other", "a", "other"]


def test_a_gauge_that_fails_is_unknown_and_the_others_are_there() -> None:
    registry = CollectorRegistry()
    Gauge("trimtab_one", "x", registry=registry).set_function(nan_on_error(lambda: 1 / 0))
    Gauge("trimtab_two", "x", registry=registry).set(2)
    text = render_metrics(registry).decode()
    assert "trimtab_one NaN" in text
    assert "trimtab_two 2.0" in text


def test_unknown_is_not_zero() -> None:
    assert math.isnan(nan_on_error({}.popitem)())


def test_a_stop_wakes_who_waits_for_it() -> None:
    stop, heard = GracefulShutdown(), list[bool]()
    waiting = threading.Thread(target=lambda: heard.append(stop.wait_for_stop(30)))
    waiting.start()
    began = time.monotonic()
    stop.request_stop()
    waiting.join()
    assert heard == [True]
    assert time.monotonic() - began < 5


@pytest.fixture
def signals() -> Iterator[None]:
    """What is done with them now is done with them afterwards."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_wait_ends_it(number: signal.Signals) -> None:
    stop = GracefulShutdown()
    stop_on_signals(stop)
    with stop._event._cond:  # type: ignore[attr-defined]  # held for a moment by whoever begins to wait, or ends
        signal.raise_signal(number)
    assert stop.wait_for_stop(30)


def test_a_wait_without_a_stop_just_passes() -> None:
    assert GracefulShutdown().wait_for_stop(0.001) is False


def test_the_clock_is_aware() -> None:
    assert clock.utc_now().utcoffset() is not None
    assert clock.elapsed_seconds() <= clock.elapsed_seconds()
