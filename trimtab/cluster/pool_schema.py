"""What may stand in a pool's settings, as a JSON Schema: for who checks them before we are asked (a chart's values).

It refuses what `pool_file` refuses, but for time zones, whose names it does not know. Nothing here names a section
twice: a test holds its keys against the reader's own.

How is one value of a pool's settings read? Each function returns the value a `Pool` holds, or raises `InvalidValue`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trimtab.cluster.config_error import nearest, shown
from trimtab.cluster.pool import PRESETS, Goal, Precedence, ProtectCritical, ProtectUnready, Spare
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.cluster.timestamps import DAYS, WeeklyWindow, seconds_of
from trimtab.cluster.yaml_parser import Path

MOST = 10**9
LEAST_PRICE = 0.000_001
"""Prices are kept in whole micro-dollars."""


@dataclass(slots=True)
class InvalidValue(Exception):
    """Wrong at a path: what was expected, and what to do."""

    path: Path
    expected: str
    got: str = ""
    todo: str = ""


def flag(value: Any, path: Path) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(path, "true or false", shown(value))
    return value


def unless(value: Any, path: Path) -> bool:
    """A protection is the opposite of a permission."""
    return not flag(value, path)


def mode(value: Any, path: Path) -> bool:
    """Whether nothing is done."""
    known = {"rehearse": True, "act": False}
    if not isinstance(value, str) or value not in known:
        raise InvalidValue(path, "rehearse or act", shown(value), nearest(str(value), known))
    return known[value]


def whole(least: int = 0, most: int = MOST) -> Callable[[Any, Path], int]:
    def parse(value: Any, path: Path) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidValue(path, f"a whole number from {least} to {most}", shown(value))
        return value

    return parse


def percent(value: Any, path: Path) -> int:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        value = int(value[:-1])
    return whole(0, 100)(value, path)


def span(value: Any, path: Path) -> int:
    found = seconds_of(value) if isinstance(value, str) else value if value == 0 else None
    if found is None or isinstance(value, bool):
        raise InvalidValue(path, "a duration such as 90s, 10m or 1h30m", shown(value))
    return found


def one_of(kind: Any) -> Callable[[Any, Path], Any]:
    names = [str(item.value) for item in kind]

    def parse(value: Any, path: Path) -> Any:
        if value not in names:
            raise InvalidValue(path, f"one of {', '.join(names)}", shown(value), nearest(str(value), names))
        return kind(value)

    return parse


def texts(value: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise InvalidValue(path, "a list of names", shown(value))
    return tuple(value)


def labels(value: Any, path: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value or not all(isinstance(item, str) for item in value.values()):
        raise InvalidValue(path, "labels: names with text values, at least one", shown(value))
    return dict(sorted(value.items()))


def prices(value: Any, path: Path) -> Mapping[str, int]:
    if not isinstance(value, dict):
        raise InvalidValue(path, "instance types with dollars an hour", shown(value))
    found = {}
    for name, price in sorted(value.items()):
        if isinstance(price, bool) or not isinstance(price, int | float) or not LEAST_PRICE <= price < 100_000:
            raise InvalidValue((*path, name), f"dollars an hour, at least {LEAST_PRICE:f}", shown(price))
        found[name] = round(price * 1_000_000)
    return found


def commitments(value: Any, path: Path) -> Mapping[str, int]:
    if not isinstance(value, dict):
        raise InvalidValue(path, "instance types with a number of nodes", shown(value))
    count = whole()
    return {str(name): count(nodes, (*path, str(name))) for name, nodes in sorted(value.items())}


GROUP_SPANS = {
    "scaleDownUnneededTime": "scale-down-unneeded-time", "scaleDownUnreadyTime": "scale-down-unready-time",
}  # fmt: skip
GROUP_PERCENTS = {
    "scaleDownUtilizationThreshold": "scale-down-utilization-threshold",
    "scaleDownGpuUtilizationThreshold": "scale-down-gpu-utilization-threshold",
}
GROUP_FLAGS = {"ignoreDaemonSetsUtilization": "ignore-daemonsets-utilization"}
GROUP_OPTIONS = {**GROUP_PERCENTS, **GROUP_SPANS, **GROUP_FLAGS}
"""Options of a node group (NodeGroupAutoscalingOptions) → the flag that says the same of all groups."""


def group_option(name: str) -> Callable[[Any, Path], str]:
    """A parser of the option's value, as the flag would be written."""

    def parse(value: Any, path: Path) -> str:
        if name in GROUP_SPANS:
            return f"{span(value, path)}s"
        if name in GROUP_FLAGS:
            return "true" if flag(value, path) else "false"
        return f"{percent(value, path) / 100:.2f}"

    return parse


def schedulers(value: Any, path: Path) -> Mapping[str, SchedulerPlacement]:
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value):
        raise InvalidValue(path, "scheduler names, each with spread, pack or unknown", shown(value))
    parse = one_of(SchedulerPlacement)
    return {name: parse(placement, (*path, name)) for name, placement in sorted(value.items())}


def windows(value: Any, path: Path) -> tuple[WeeklyWindow, ...]:
    if not isinstance(value, list):
        raise InvalidValue(path, "a list of windows", shown(value))
    return tuple(_window(item, (*path, number)) for number, item in enumerate(value))


def _window(value: Any, path: Path) -> WeeklyWindow:
    known = ("days", "from", "to", "timeZone")
    if not isinstance(value, dict) or not set(value) <= set(known) or not {"from", "to"} <= set(value):
        raise InvalidValue(path, "a window with from and to, and maybe days and timeZone", shown(value))
    days = value.get("days", list(DAYS))
    if not isinstance(days, list) or not days or not all(day in DAYS for day in days):
        wrong = [shown(day) for day in days if day not in DAYS] if isinstance(days, list) else []
        raise InvalidValue((*path, "days"), f"some of {', '.join(DAYS)}", ", ".join(wrong) or shown(days))
    zone = value.get("timeZone", "UTC")
    try:
        ZoneInfo(str(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValue((*path, "timeZone"), "a time zone such as Europe/Berlin", shown(zone)) from None
    start, end = (_minute(value[key], (*path, key)) for key in ("from", "to"))
    return WeeklyWindow(days=tuple(day for day in DAYS if day in days), start=start, end=end, zone=zone)


def _minute(value: Any, path: Path) -> int:
    hour, _, minute = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not (hour.isdecimal() and minute.isdecimal() and len(minute) == 2 and int(hour) < 24 and int(minute) < 60):
        raise InvalidValue(path, 'a time of day such as "22:00", in quotes', shown(value))
    return int(hour) * 60 + int(minute)


Schema = dict[str, Any]

_FLAG: Schema = {"type": "boolean"}
_PERCENT: Schema = {"anyOf": [
    {"type": "integer", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": "^0*([0-9]{1,2}|100)%$"},
]}  # fmt: skip
_SPAN: Schema = {"anyOf": [
    {"const": 0}, {"type": "string", "pattern": r"^(0|\s*([0-9]+([.][0-9]+)?(h|ms|us|µs|ns|m|s))+\s*)$"},
]}  # fmt: skip
_NAMES: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TIME: Schema = {"type": "string", "pattern": "^0*([0-9]|1[0-9]|2[0-3]):[0-5][0-9]$"}
_PRICE: Schema = {"type": "number", "minimum": LEAST_PRICE, "exclusiveMaximum": 100_000}
_LABELS: Schema = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}


def _whole(least: int = 0) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": MOST}


def _one_of(kind: type[StrEnum]) -> Schema:
    return {"enum": [one.value for one in kind]}


def _section(**properties: Schema) -> Schema:
    """Nothing said is nothing there."""
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


_WINDOW: Schema = {
    "type": "object", "additionalProperties": False, "required": ["from", "to"],
    "properties": {
        "days": {"type": "array", "minItems": 1, "items": {"enum": [*DAYS]}},
        "from": _TIME, "to": _TIME, "timeZone": {"type": "string"},
    },
}  # fmt: skip
_UNDER: Schema = {
    **_section(**dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage"), _PERCENT), count=_whole(1),
               **{"for": _SPAN}),
    "patternProperties": {"/": _PERCENT},
}  # fmt: skip


def schema() -> Schema:
    """Of the settings of one pool."""
    return {
        **_section(
            preset={"enum": [*PRESETS]},
            nodes={"anyOf": [{"const": "all"}, _section(labels=_LABELS)]},
            goal=_one_of(Goal),
            mode={"enum": ["rehearse", "act"]},
            dryRun=_FLAG,
            enabled=_FLAG,
            underUsed=_UNDER,
            age=_section(node=_SPAN, receiver=_SPAN, pod=_SPAN),
            quiet=_SPAN,
            pendingLimit=_SPAN,
            keep=_section(
                nodes=_whole(), nodesPerZone=_whole(), spare=_one_of(Spare),
                headroom=_section(percent=_PERCENT, nodes=_whole(), largestPod=_FLAG),
            ),
            pace=_section(drains=_whole(1), evictionsPerHour=_whole(1), openingsPerHour=_whole(), leastGain=_whole()),
            prices={"type": "object", "additionalProperties": _PRICE},
            commitments={"type": "object", "additionalProperties": _whole()},
            autoscaler=_one_of(Precedence),
            lead=_section(maxThreshold=_PERCENT),
            groupOptions=_section(
                **dict.fromkeys(GROUP_PERCENTS, _PERCENT), **dict.fromkeys(GROUP_SPANS, _SPAN),
                **dict.fromkeys(GROUP_FLAGS, _FLAG),
            ),
            windows={"type": "array", "items": _WINDOW},
            schedulers={"type": "object", "additionalProperties": {"enum": [one.value for one in SchedulerPlacement]}},
            optOut=_section(nodes=_NAMES, pods=_NAMES),
            protect=_section(
                singleReplicas=_FLAG, jobs=_FLAG, notReady=_FLAG, unready=_one_of(ProtectUnready),
                criticalPods=_one_of(ProtectCritical),
            ),
        ),
        "type": "object",
        "not": {"required": ["mode", "dryRun"]},
    }  # fmt: skip
