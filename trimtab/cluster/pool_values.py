"""How is one value of a pool's settings read? Each function returns the value a `Pool` holds, or raises `Bad`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trimtab.cluster.mistake import nearest, shown
from trimtab.cluster.span import seconds_of
from trimtab.cluster.windows import DAYS, Window
from trimtab.cluster.yaml_text import Path

MOST = 10**9
LEAST_PRICE = 0.000_001
"""Prices are kept in whole micro-dollars."""


@dataclass(slots=True)
class Bad(Exception):
    """Wrong at a path: what was expected, and what to do."""

    path: Path
    expected: str
    came: str = ""
    todo: str = ""


def flag(value: Any, path: Path) -> bool:
    if not isinstance(value, bool):
        raise Bad(path, "true or false", shown(value))
    return value


def unless(value: Any, path: Path) -> bool:
    """A protection is the opposite of a permission."""
    return not flag(value, path)


def mode(value: Any, path: Path) -> bool:
    """Whether nothing is done."""
    known = {"rehearse": True, "act": False}
    if not isinstance(value, str) or value not in known:
        raise Bad(path, "rehearse or act", shown(value), nearest(str(value), known))
    return known[value]


def whole(least: int = 0, most: int = MOST) -> Callable[[Any, Path], int]:
    def parse(value: Any, path: Path) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Bad(path, f"a whole number from {least} to {most}", shown(value))
        return value

    return parse


def percent(value: Any, path: Path) -> int:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        value = int(value[:-1])
    return whole(0, 100)(value, path)


def span(value: Any, path: Path) -> int:
    found = seconds_of(value) if isinstance(value, str) else value if value == 0 else None
    if found is None or isinstance(value, bool):
        raise Bad(path, "a duration such as 90s, 10m or 1h30m", shown(value))
    return found


def one_of(kind: Any) -> Callable[[Any, Path], Any]:
    names = [str(item.value) for item in kind]

    def parse(value: Any, path: Path) -> Any:
        if value not in names:
            raise Bad(path, f"one of {', '.join(names)}", shown(value), nearest(str(value), names))
        return kind(value)

    return parse


def texts(value: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise Bad(path, "a list of names", shown(value))
    return tuple(value)


def labels(value: Any, path: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value or not all(isinstance(item, str) for item in value.values()):
        raise Bad(path, "labels: names with text values, at least one", shown(value))
    return dict(sorted(value.items()))


def prices(value: Any, path: Path) -> Mapping[str, int]:
    if not isinstance(value, dict):
        raise Bad(path, "instance types with dollars an hour", shown(value))
    found = {}
    for name, price in sorted(value.items()):
        if isinstance(price, bool) or not isinstance(price, int | float) or not LEAST_PRICE <= price < 100_000:
            raise Bad((*path, name), f"dollars an hour, at least {LEAST_PRICE:f}", shown(price))
        found[name] = round(price * 1_000_000)
    return found


def windows(value: Any, path: Path) -> tuple[Window, ...]:
    if not isinstance(value, list):
        raise Bad(path, "a list of windows", shown(value))
    return tuple(_window(item, (*path, number)) for number, item in enumerate(value))


def _window(value: Any, path: Path) -> Window:
    known = ("days", "from", "to", "timeZone")
    if not isinstance(value, dict) or not set(value) <= set(known) or not {"from", "to"} <= set(value):
        raise Bad(path, "a window with from and to, and maybe days and timeZone", shown(value))
    days = value.get("days", list(DAYS))
    if not isinstance(days, list) or not days or not all(day in DAYS for day in days):
        wrong = [shown(day) for day in days if day not in DAYS] if isinstance(days, list) else []
        raise Bad((*path, "days"), f"some of {', '.join(DAYS)}", ", ".join(wrong) or shown(days))
    zone = value.get("timeZone", "UTC")
    try:
        ZoneInfo(str(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Bad((*path, "timeZone"), "a time zone such as Europe/Berlin", shown(zone)) from None
    start, end = (_minute(value[key], (*path, key)) for key in ("from", "to"))
    return Window(days=tuple(day for day in DAYS if day in days), start=start, end=end, zone=zone)


def _minute(value: Any, path: Path) -> int:
    hour, _, minute = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60):
        raise Bad(path, 'a time of day such as "22:00", in quotes', shown(value))
    return int(hour) * 60 + int(minute)
