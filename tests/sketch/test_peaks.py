"""Memory is a matter of peaks."""

from trimtab.sketch.peaks import INTERVAL, Peaks, of_series, wanted

MI = 1 << 20


def test_each_interval_of_a_series_has_one_peak() -> None:
    times = [0, 60, INTERVAL - 1, INTERVAL, 3 * INTERVAL]
    assert of_series(times, [5, 9, 7, 3, 4]) == {0: 9, 1: 3, 3: 4}


def test_a_peak_is_told_when_the_next_interval_begins() -> None:
    it = Peaks()
    assert [it.see("a", at, value) for at, value in ((0, 5.0), (60, 9.0), (INTERVAL, 1.0))] == [None, None, (0, 9.0)]


def test_a_late_value_is_not_lost() -> None:
    it = Peaks()
    it.see("a", INTERVAL, 5.0)
    it.see("a", INTERVAL - 1, 9.0)
    assert it.running["a"] == (1, 9.0)


def test_a_pod_that_is_gone_tells_its_last_peak() -> None:
    it = Peaks()
    it.see("a", 0, 5.0)
    it.see("b", 0, 6.0)
    assert list(it.gone(["b"])) == [(0, 5.0)]
    assert list(it.running) == ["b"]


def test_an_oom_kill_raises_the_peak() -> None:
    it = Peaks()
    it.see("a", 0, 900.0 * MI)
    it.kill("a", 60, 1000.0 * MI)
    assert it.running["a"] == (0, 1200.0 * MI)


def test_a_limit_that_no_machine_has_tells_nothing_of_what_was_wanted() -> None:
    it = Peaks()
    it.kill("a", 0, 2.0**60, most=2.0**46)
    assert it.running["a"] == (0, 100.0 * MI)
    it.kill("b", 0, 0.9 * 2.0**46, most=2.0**46)
    assert it.running["b"] == (0, 2.0**46)


def test_a_small_container_that_was_killed_gets_a_hundred_mebibytes_more() -> None:
    assert wanted(10 * MI, 50 * MI) == 150 * MI
