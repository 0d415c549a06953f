import pytest

from trimtab.cli.since import parse_age, parse_day, parse_since
from trimtab.inputs.command_faults import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2d", 172800), ("1w", 604800), ("2", None), ("d", None), ("", None)],
)
def test_an_age_is_a_number_and_a_unit(text: str, seconds: int | None) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize(("text", "day"), [("2027-01-15", 1_799_971_200), ("2027-1-15", None), ("yesterday!", None)])
def test_a_day_is_a_date(text: str, day: int | None) -> None:
    assert parse_day(text) == day


def test_the_start_of_a_report_is_an_age_or_a_day() -> None:
    assert parse_since("1h", 1_800_000_000) == 1_799_996_400
    assert parse_since("2027-01-15", 1_800_000_000) == 1_799_971_200
    with pytest.raises(UsageError):
        parse_since("soon", 1_800_000_000)
