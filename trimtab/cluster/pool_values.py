"""What the settings of a pool take, where no other document takes it: the mode, prices, weekly times and others."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trimtab.cluster.config_error import quote_value
from trimtab.cluster.documents.value_types import (
    DURATION,
    FLAG,
    PERCENT,
    InvalidValue,
    Schema,
    ValueType,
    mapping_of,
    one_of,
    whole_number,
    word_of,
)
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.cluster.timestamps import DAYS, WeeklyWindow
from trimtab.cluster.yaml_parser import Path

MIN_PRICE = 0.000_001
"""The smallest price in dollars an hour, because prices are stored in whole micro-dollars."""
MAX_PRICE = 100_000
"""An amount in dollars an hour that is higher than any price."""
NEGATED_FLAG = ValueType(
    lambda value, path: not FLAG.parse(value, path), FLAG.schema, lambda value: FLAG.write(not value)
)
"""The setting says what is protected, but the field of `Pool` says what is permitted."""


class GroupMode(StrEnum):
    """Whether pods that live and die together are moved while they are on several nodes."""

    STAY = "stay"
    MOVE = "move"
    """All pods of the group are evicted together."""


class ReplaceMode(StrEnum):
    """Whether plans advise to replace nodes of a pool by cheaper new nodes."""

    OFF = "off"
    ADVISE = "advise"


class ReplaceAcross(StrEnum):
    """What a cheaper new node may have otherwise than the nodes that it replaces."""

    ZONES = "zones"
    CAPACITY_TYPES = "capacityTypes"
    """Spot, or on demand."""
    ARCHITECTURES = "architectures"


MODE = word_of({"rehearse": True, "act": False}, "rehearse or act")
"""The value is whether the mode means a dry run."""
ALL = word_of({"all": True})
_REPLACE = word_of({mode.value: mode for mode in ReplaceMode})


def _parse_replace(value: Any, path: Path) -> ReplaceMode:
    # YAML 1.1 reads the word off as false.
    return ReplaceMode.OFF if value is False else ReplaceMode(_REPLACE.parse(value, path))


REPLACE = ValueType(_parse_replace, {"enum": [*map(str, ReplaceMode), False]}, _REPLACE.write)


_ACROSS = one_of(ReplaceAcross)


def _parse_across(value: Any, path: Path) -> frozenset[ReplaceAcross]:
    if not isinstance(value, list):
        raise InvalidValue(path, f"a list of {', '.join(ReplaceAcross)}", quote_value(value))
    return frozenset(_ACROSS.parse(item, (*path, number)) for number, item in enumerate(value))


REPLACE_ACROSS = ValueType(
    _parse_across,
    {"type": "array", "items": {"enum": [*map(str, ReplaceAcross)]}},
    lambda value: ", ".join(sorted(value)) or "[]",
)


def _parse_price(value: Any, path: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_PRICE <= value < MAX_PRICE:
        raise InvalidValue(path, f"dollars an hour, at least {MIN_PRICE:f}", quote_value(value))
    # Integers from here on: sums of floating-point prices would depend on the order of the nodes.
    return round(value * 1_000_000)


_PRICE = ValueType(_parse_price, {"type": "number", "minimum": MIN_PRICE, "exclusiveMaximum": MAX_PRICE})
PRICES = mapping_of(_PRICE, "instance types with dollars an hour")
"""Instance type → dollars an hour; the value is in micro-dollars an hour."""
COMMITMENTS = mapping_of(whole_number(), "instance types with a number of nodes")
"""Instance type → number of nodes that are paid for whether they run or not."""


def _option_of(kind: ValueType, write: Callable[[Any], str]) -> ValueType:
    """Returns the type of an option of a node group (NodeGroupAutoscalingOptions). Its value is text, as the
    autoscaler's flag that has the same effect for all groups would be written."""
    return ValueType(lambda value, path: write(kind.parse(value, path)), kind.schema)


GROUP_SHARE = _option_of(PERCENT, lambda percent: f"{percent / 100:.2f}")
GROUP_DURATION = _option_of(DURATION, lambda seconds: f"{seconds}s")
# In the form in which the autoscaler itself would get the flag: `cluster_autoscaler.with_options` parses both alike.
GROUP_FLAG = _option_of(FLAG, FLAG.write)
_EXPECTED_PLACEMENTS = "scheduler names, each with spread, pack or unknown"
_PLACEMENTS = mapping_of(one_of(SchedulerPlacement), _EXPECTED_PLACEMENTS)


def _parse_schedulers(value: Any, path: Path) -> Mapping[str, SchedulerPlacement]:
    # Any scheduler name is valid here, because kube-scheduler profiles can have any name; but each has one.
    if isinstance(value, dict) and "" in value:
        raise InvalidValue(path, _EXPECTED_PLACEMENTS, quote_value(value))
    placements: Mapping[str, SchedulerPlacement] = _PLACEMENTS.parse(value, path)
    return placements


SCHEDULERS = ValueType(_parse_schedulers, _PLACEMENTS.schema)
"""Scheduler name → how that scheduler places pods."""


def _parse_windows(value: Any, path: Path) -> tuple[WeeklyWindow, ...]:
    if not isinstance(value, list):
        raise InvalidValue(path, "a list of windows", quote_value(value))
    return tuple(_parse_window(item, (*path, number)) for number, item in enumerate(value))


_TIME: Schema = {"type": "string", "pattern": "^0*([0-9]|1[0-9]|2[0-3]):[0-5][0-9]$"}
_WINDOW: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["from", "to"],
    "properties": {
        "days": {"type": "array", "minItems": 1, "items": {"enum": [*DAYS]}},
        "from": _TIME,
        "to": _TIME,
        "timeZone": {"type": "string"},
    },
}
WINDOWS = ValueType(_parse_windows, {"type": "array", "items": _WINDOW})
"""Weekly windows."""


def _parse_window(value: Any, path: Path) -> WeeklyWindow:
    if not isinstance(value, dict) or not set(value) <= set(_WINDOW["properties"]) or not {"from", "to"} <= set(value):
        raise InvalidValue(path, "a window with from and to, and optionally days and timeZone", quote_value(value))
    days = value.get("days", list(DAYS))
    if not isinstance(days, list) or not days or not all(day in DAYS for day in days):
        other_days = [quote_value(day) for day in days if day not in DAYS] if isinstance(days, list) else []
        raise InvalidValue((*path, "days"), f"some of {', '.join(DAYS)}", ", ".join(other_days) or quote_value(days))
    zone = value.get("timeZone", "UTC")
    try:
        # The zones are those of the machine that reads the settings; a JSON Schema cannot check them.
        ZoneInfo(str(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValue((*path, "timeZone"), "a time zone such as Europe/Berlin", quote_value(zone)) from None
    start, end = (_parse_minute(value[key], (*path, key)) for key in ("from", "to"))
    # In the order of the week, whatever order the author chose.
    return WeeklyWindow(days=tuple(day for day in DAYS if day in days), start=start, end=end, zone=zone)


def _parse_minute(value: Any, path: Path) -> int:
    hour, _, minute = value.partition(":") if isinstance(value, str) else ("", "", "")
    # Many YAML 1.1 parsers read an unquoted 22:00 as a number in base 60, so the message asks for quotes.
    if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60):
        raise InvalidValue(path, 'a time of day such as "22:00", in quotes', quote_value(value))
    return int(hour) * 60 + int(minute)
