"""How often the warnings of a server are reported."""

from dataclasses import dataclass, field

from trimtab.usage.server_warnings import REPEAT_SECONDS, DistinctWarnings


@dataclass
class Reading:
    """Warnings at chosen times, and those that are reported."""

    second: float = 0.0
    reported: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.warn = DistinctWarnings(self.reported.append, lambda: self.second)


def test_a_warning_of_many_answers_is_reported_once() -> None:
    reading = Reading()
    for warning in ("a store is slow", "a store is gone", "a store is slow"):
        reading.warn(warning)
    assert reading.reported == ["a store is slow", "a store is gone"]


def test_a_warning_that_lasts_is_reported_again_after_an_hour() -> None:
    reading = Reading(second=50.0)
    for reading.second in (50.0, 50.0 + REPEAT_SECONDS - 1, 50.0 + REPEAT_SECONDS, 51.0 + REPEAT_SECONDS):
        reading.warn("a store is slow")
    assert len(reading.reported) == 2


def test_many_texts_do_not_silence_the_warnings_of_later_hours() -> None:
    reading = Reading()
    for number in range(100):
        reading.warn(f"series {number} is dropped")
    count, reading.second = len(reading.reported), float(REPEAT_SECONDS)
    reading.warn("a store is slow")
    assert (count, reading.reported[count:]) == (20, ["a store is slow"])
