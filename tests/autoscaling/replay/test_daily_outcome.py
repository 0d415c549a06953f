"""The days and pools of several replays."""

from trimtab.autoscaling.replay.daily_outcome import DailyOutcome, average_outcomes


def test_the_average_has_the_days_and_pools_of_all_outcomes() -> None:
    first, second = DailyOutcome(), DailyOutcome()
    first.pools[1, "web"].core_seconds, second.pools[1, "web"].core_seconds = 100, 300
    second.pools[2, "db"].bought, second.pods[2].evictions = 4, 6
    average = average_outcomes([first, second])
    assert average.sum_pools(1).core_seconds == 200
    assert (average.sum_pools(2, "db").bought, average.sum_pods().evictions) == (2, 3)
