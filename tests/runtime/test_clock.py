"""Durations, also those in which the machine was suspended."""

import time

import pytest

from trimtab.runtime import clock


def test_the_time_of_a_suspended_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {getattr(time, "CLOCK_BOOTTIME", None): 7200.0}
    monkeypatch.setattr(time, "clock_gettime", lambda which: clocks.get(which, 60.0))
    monkeypatch.setattr(time, "monotonic", lambda: 60.0)
    assert clock.elapsed_seconds() == (7200.0 if hasattr(time, "CLOCK_BOOTTIME") else 60.0)


def test_a_kernel_without_such_a_clock_has_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_BOOT_CLOCK", None)
    monkeypatch.setattr(time, "monotonic", lambda: 60.0)
    assert clock.elapsed_seconds() == 60.0
