"""The value of `--since`: an age such as 12h, or a day such as 2026-11-01."""

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.inputs.command_faults import UsageError


def parse_since(text: str, now: Seconds) -> Seconds:
    """Returns the time that the text names. Raises UsageError if it is neither an age nor a day."""
    age = parse_age(text)
    begin = now - age if age is not None else parse_day(text)
    if begin is None:
        expected = "a duration such as 12h, 30d or 4w, or a date such as 2026-11-01"
        raise UsageError([ConfigError(file="--since", expected=expected, got=text)])
    return begin


def parse_age(text: str) -> int | None:
    """Returns the seconds of a text such as 90s, 30m, 12h, 7d or 2w, or None for any other text."""
    number, unit = text[:-1], text[-1:]
    sizes = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
    if not number.isascii() or not number.isdecimal() or len(number) > 6 or unit not in sizes:
        return None
    return int(number) * sizes[unit]


def parse_day(text: str) -> Seconds | None:
    """Returns the beginning of a day in UTC, such as 2026-11-01, or None if the text is no day."""
    return parse_timestamp(f"{text}T00:00:00Z") if len(text) == 10 else None
