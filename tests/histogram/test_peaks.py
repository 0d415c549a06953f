"""Memory is a matter of peaks."""

from trimtab.histogram.time_buckets import PEAK_INTERVAL_SECONDS, MemoryPeaks, peaks_of_series


def test_each_interval_of_a_series_has_one_peak() -> None:
    times = [0, 60, PEAK_INTERVAL_SECONDS - 1, PEAK_INTERVAL_SECONDS, 3 * PEAK_INTERVAL_SECONDS]
    assert peaks_of_series(times, [5, 9, 7, 3, 4]) == {0: 9, 1: 3, 3: 4}


def test_a_peak_is_told_when_the_next_interval_begins() -> None:
    it = MemoryPeaks()
    assert [it.add_value("a", at, value) for at, value in ((0, 5.0), (60, 9.0), (PEAK_INTERVAL_SECONDS, 1.0))] == [
        None,
        None,
        (0, 9.0),
    ]


def test_a_late_value_is_not_lost() -> None:
    it = MemoryPeaks()
    it.add_value("a", PEAK_INTERVAL_SECONDS, 5.0)
    it.add_value("a", PEAK_INTERVAL_SECONDS - 1, 9.0)
    assert it.running["a"] == (1, 9.0)
