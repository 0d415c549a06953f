"""The days of a replay: which of them are compared, and that their whole numbers have the sum of all."""

from msgspec import structs

from tests.cli.replay_reports import DETAILS, figures
from trimtab.cli.replay.report import choose_days, round_parts


def days(*amounts: tuple[float, float]) -> list[str]:
    """The best and the worst of days with these (recorded hours, saved core hours)."""
    rows = [
        structs.replace(figures(DETAILS, saved, day=f"day {number}"), hours=hours)
        for number, (hours, saved) in enumerate(amounts, 1)
    ]
    return list(choose_days(rows))


def test_a_day_that_is_recorded_in_part_is_neither_the_best_nor_the_worst() -> None:
    assert days((10, 3), (24, 30), (23.9, 20), (24, 40), (2, 0)) == ["day 4", "day 3"]


def test_equal_days_and_a_single_one_are_neither() -> None:
    assert days((24, 5), (24, 5)) == days((24, 5)) == days() == ["", ""]


def test_no_day_is_the_best_one_if_none_saves() -> None:
    assert days((24, -5), (24, 0)) == ["", "day 1"]


def test_whole_numbers_of_averages_add_up() -> None:
    assert round_parts([0.4, 0.4, 0.4, 0.4]) == [0, 1, 0, 1]
    assert round_parts([5.0, 0.0, 7.0]) == [5, 0, 7]
    assert round_parts([]) == []
