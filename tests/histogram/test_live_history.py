"""What is seen as time passes and what history tells, in the same windows, and nothing twice."""

from hypothesis import given
from hypothesis import strategies as st

from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.live_history import HistoryImport, LiveHistory
from trimtab.histogram.oom_kills import OomKill
from trimtab.histogram.time_buckets import DAY, PEAK_INTERVAL_SECONDS
from trimtab.histogram.time_buckets import hours_of_times as hours_of

APP = ContainerKey("shop", "Deployment", "web", "app")
OTHER = ContainerKey("team", "Deployment", "api", "app")
START = 20_000 * DAY
MI = 1 << 20


def read(diary: LiveHistory, resource: str, start: int, end: int, step: int = 300, pods: int = 2) -> None:
    """A namespace's history to its end: pod n uses n + 1 at every moment, a million times as much of memory."""
    reading = HistoryImport(diary)
    times = list(range(start, end + 1, step))
    for pod in range(pods):
        value = (pod + 1.0) * (MI if resource == "memory" else 1)
        reading.add_series(APP, f"web-{pod}", resource, times, [value] * len(times))
    reading.commit(APP.namespace, end)


def totals(diary: LiveHistory, resource: str = "cpu") -> int:
    return diary.get_window(APP, resource).merge_days().total_count


def test_a_moment_that_was_seen_counts_once() -> None:
    diary = LiveHistory()
    assert [diary.add_sample(APP, "web-0", "cpu", START + at, 1.0) for at in (0, 0, 60, 30)] == [
        True,
        False,
        True,
        False,
    ]
    assert diary.add_sample(APP, "web-1", "cpu", START, 1.0)  # another pod's moment is its own
    assert totals(diary) == 3


def test_the_peak_of_an_interval_that_runs_is_told_and_goes_into_the_window_when_it_is_over() -> None:
    diary = LiveHistory()
    for at, value in ((0, 5.0), (60, 9.0), (120, 3.0)):
        diary.add_sample(APP, "web-0", "memory", START + at, value)
    assert (diary.running_peaks(APP, "memory"), totals(diary, "memory")) == ((9.0,), 0)
    diary.close_intervals(START + PEAK_INTERVAL_SECONDS)
    assert (diary.running_peaks(APP, "memory"), totals(diary, "memory")) == ((), 1)
    assert diary.get_window(APP, "memory").merge_days().top == 9.0


def killed(at: int, **bytes_: float) -> OomKill:
    return OomKill(at=at, **bytes_)


def floor(diary: LiveHistory, now: int) -> float:
    return diary.oom_records[APP].floor_at(now, diary.days * DAY)


def test_a_kill_is_a_floor_and_counts_once() -> None:
    diary = LiveHistory()
    diary.add_sample(APP, "web-0", "memory", START, 900.0 * MI)
    assert [diary.add_oom_kill(APP, "web-0", killed(START + 60, request=512.0 * MI)) for _ in range(2)] == [True, False]
    assert diary.running_peaks(APP, "memory") == (900.0 * MI,)  # it is no sample
    assert (floor(diary, START + 60), diary.oom_records[APP].count) == (1080.0 * MI, 1)
    diary.close_intervals(START + PEAK_INTERVAL_SECONDS)
    assert diary.add_oom_kill(APP, "web-0", killed(START + 61, limit=1000.0 * MI))  # told late: it counts nevertheless
    assert floor(diary, START + 61) == 1200.0 * MI


def test_two_kills_in_one_interval_count_from_what_was_used() -> None:
    diary = LiveHistory()
    for at in range(START, START + 3600, 300):
        diary.add_sample(APP, "web-0", "memory", at, 500.0 * MI)
        diary.add_oom_kill(APP, "web-0", killed(at + 1, request=512.0 * MI))
    assert (floor(diary, START + 3600), diary.oom_records[APP].count) == (1.2 * 512 * MI, 12)


def test_kills_from_before_the_window_are_none() -> None:
    diary = LiveHistory()
    diary.add_sample(APP, "web-0", "memory", START, 1.0)
    diary.close_intervals(START + PEAK_INTERVAL_SECONDS)
    assert not diary.add_oom_kill(APP, "web-0", killed(START - 14 * DAY))
    assert diary.add_oom_kill(APP, "web-0", killed(START - 13 * DAY))
    diary.drop_stale(START + 2 * DAY)
    assert diary.oom_records == {}


@given(st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_history_read_in_pieces_is_history_read_at_once(pieces: list[int]) -> None:
    ends = [START + 300 * sum(pieces[: n + 1]) for n in range(len(pieces))]
    for resource in ("cpu", "memory"):
        once, often = LiveHistory(), LiveHistory()
        read(once, resource, START, ends[-1])
        at = START
        for end in ends:
            read(often, resource, at, end)
            at = end  # the moment between two pieces is asked for twice
        assert often.get_window(APP, resource) == once.get_window(APP, resource)
        assert often.running_peaks(APP, resource) == once.running_peaks(APP, resource)


def test_history_fills_what_lies_before_and_after_what_was_seen() -> None:
    diary, whole = LiveHistory(), LiveHistory()
    read(diary, "cpu", START + 6000, START + 9000)
    read(diary, "cpu", START, START + 12_000)
    read(whole, "cpu", START, START + 12_000)
    assert totals(diary) == totals(whole)


def test_a_reading_that_does_not_come_to_its_end_leaves_nothing() -> None:
    diary = LiveHistory()
    HistoryImport(diary).add_series(APP, "web-0", "cpu", [START], [1.0])
    assert (diary.list_containers(), diary.imported_until) == ([], {})


def test_one_namespace_read_further_ends_no_peak_of_another() -> None:
    diary = LiveHistory()
    diary.add_sample(OTHER, "api-0", "memory", START, 5.0)
    read(diary, "memory", START, START + 2 * PEAK_INTERVAL_SECONDS)
    assert diary.running_peaks(OTHER, "memory") == (5.0,)


def test_who_was_not_seen_for_the_whole_window_is_forgotten() -> None:
    diary = LiveHistory(days=2)
    read(diary, "cpu", START, START + DAY)
    diary.close_intervals(START + 2 * DAY)
    assert diary.list_containers() == [APP]
    diary.close_intervals(START + 4 * DAY)
    assert diary.list_containers() == []


def test_what_others_counted_is_taken_as_it_is() -> None:
    diary, book = LiveHistory(), BatchHistory()
    book.add_series(APP, "cpu", [START, START + 60], [1.0, 2.0])
    diary.add_batch(book)
    assert totals(diary) == 2


def test_a_kill_of_days_before_we_looked_is_no_history() -> None:
    diary, boundary = LiveHistory(), START + PEAK_INTERVAL_SECONDS
    diary.add_oom_kill(APP, "web-0", killed(START - 5 * DAY, limit=1000.0 * MI))
    for at in range(boundary - 600, boundary + 600, 60):
        diary.add_sample(APP, "web-0", "cpu", at, 1.0)
        diary.add_sample(APP, "web-0", "memory", at, 100.0 * MI)
        diary.close_intervals(at)
    assert diary.get_window(APP, "memory").first == boundary - 600
    assert diary.get_window(APP, "memory").merge_days().top == 100.0 * MI
    assert floor(diary, boundary) == 1200.0 * MI  # it needs that much nevertheless


def test_a_gap_is_no_history_of_cpu_and_none_of_memory() -> None:
    diary, back = LiveHistory(), START + 13 * DAY
    for at in (*range(START, START + 3600, 60), *range(back - 1800, back + 3600, 60)):
        for resource in ("cpu", "memory"):
            diary.add_sample(APP, "web-0", resource, at, 1.0)
        diary.close_intervals(at)
    diary.close_intervals(back + DAY)
    assert {diary.get_window(APP, resource).observed_seconds for resource in ("cpu", "memory")} == {3 * 3600}


def test_a_gap_in_what_prometheus_tells_is_no_history() -> None:
    diary, reading = LiveHistory(), HistoryImport(LiveHistory())
    times = [*range(START, START + 3600, 300), *range(START + 5 * DAY, START + 5 * DAY + 7200, 300)]
    for resource in ("cpu", "memory"):
        reading.add_series(APP, "web-0", resource, times, [1.0] * len(times))
    diary = reading.history
    reading.commit(APP.namespace, START + 6 * DAY)
    assert {diary.get_window(APP, resource).observed_seconds for resource in ("cpu", "memory")} == {3 * 3600}


def both(diary: LiveHistory, times: list[int], end: int) -> None:
    """What Prometheus tells of these moments, read to their end."""
    reading = HistoryImport(diary)
    for resource in ("cpu", "memory"):
        reading.add_series(APP, "web-0", resource, times, [1.0] * len(times))
    reading.commit(APP.namespace, end)


sparse = st.sets(st.integers(0, 3 * 288), min_size=1, max_size=30).map(lambda n: sorted(START + 300 * at for at in n))


@given(sparse, st.lists(st.integers(START, START + 3 * DAY), max_size=3).map(sorted))
def test_history_with_gaps_is_as_old_in_pieces_as_at_once(times: list[int], ends: list[int]) -> None:
    once, often, before = LiveHistory(), LiveHistory(), START
    both(once, times, START + 4 * DAY)
    for end in (*ends, START + 4 * DAY):
        both(often, [at for at in times if before <= at <= end], end)
        before = end
    for resource in ("cpu", "memory"):
        assert (
            often.get_window(APP, resource).hours_by_day()
            == once.get_window(APP, resource).hours_by_day()
            == hours_of(times)
        )


@given(sparse)
def test_memory_is_as_old_as_the_hours_in_which_it_was_looked_at(times: list[int]) -> None:
    diary = LiveHistory()
    for at in times:
        for resource in ("cpu", "memory"):
            diary.add_sample(APP, "web-0", resource, at, 1.0)
        diary.close_intervals(at)
    diary.close_intervals(START + 4 * DAY)
    assert diary.get_window(APP, "memory").hours_by_day() == hours_of(times)


def test_a_kill_of_days_before_is_no_history_where_prometheus_tells_little() -> None:
    diary, now = LiveHistory(), START + 5 * DAY
    diary.add_oom_kill(APP, "web-0", killed(START, limit=1000.0 * MI))
    reading, times = HistoryImport(diary), range(now - 3600, now + 1, 300)
    for resource in ("cpu", "memory"):
        reading.add_series(APP, "web-1", resource, times, [1.0] * len(times))
    reading.commit(APP.namespace, now)
    window = diary.get_window(APP, "memory")
    assert (window.first, window.observed_seconds) == (now - 3600, 3300)
    assert window.merge_days().top == 1.0
    assert floor(diary, now) == 1200.0 * MI  # it needs that much nevertheless


def test_what_no_machine_has_moves_no_percentile() -> None:
    for resource, usual, wrong in (("cpu", 0.1, 3e9), ("memory", 100.0 * MI, 1.8e19)):
        diary, reading, times = LiveHistory(), HistoryImport(LiveHistory()), range(START, START + DAY, 300)
        reading.add_series(APP, "web-0", resource, times, [wrong, *[usual] * (len(times) - 1)])
        reading.commit(APP.namespace, START + 2 * DAY)
        assert reading.history.get_window(APP, resource).merge_days().top == usual
        assert not diary.add_sample(APP, "web-0", resource, START, wrong)
        assert not diary.add_sample(APP, "web-0", resource, START, -1.0)
        assert (diary.dropped_values, reading.history.dropped_values) == (2, 1)
        book = BatchHistory()
        book.add_series(APP, resource, times, [*[usual] * (len(times) - 1), wrong])
        assert book.compressed_window(APP, resource).merge_days().top == usual
