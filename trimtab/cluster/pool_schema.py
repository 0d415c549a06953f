"""Parsers of the values of a pool's settings, and a JSON Schema of all settings.

Each parser returns the value that a `Pool` holds, or raises `InvalidValue`. The JSON Schema is for the values of a Helm
chart, which are checked before Trimtab reads them. The schema rejects what `pool_config` rejects, except for wrong
names of time zones. A test compares the schema's keys with those of the reader.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.config_error import quote_value, suggest_name
from trimtab.cluster.pool import PRESETS, Goal, Precedence, ProtectCritical, ProtectUnready, Spare
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.cluster.timestamps import DAYS, WeeklyWindow, parse_duration
from trimtab.cluster.yaml_parser import Path

MAX_INTEGER = 10**9
MIN_PRICE = 0.000_001
"""The smallest price in dollars an hour, because prices are stored in whole micro-dollars."""


@dataclass(slots=True)
class InvalidValue(Exception):
    """A value that is not valid, with its path in the document, what was expected there, and what to do."""

    path: Path
    expected: str
    got: str = ""
    todo: str = ""


def parse_flag(value: Any, path: Path) -> bool:
    """Returns the boolean at a path. Raises InvalidValue for any other value."""
    if not isinstance(value, bool):
        raise InvalidValue(path, "true or false", quote_value(value))
    return value


def parse_negated_flag(value: Any, path: Path) -> bool:
    """Returns the opposite of the boolean at a path. The setting says what is protected, but the field of `Pool` says
    what is permitted."""
    return not parse_flag(value, path)


def parse_mode(value: Any, path: Path) -> bool:
    """Returns whether the mode at a path means a dry run."""
    dry_run_by_mode = {"rehearse": True, "act": False}
    if not isinstance(value, str) or value not in dry_run_by_mode:
        raise InvalidValue(path, "rehearse or act", quote_value(value), suggest_name(str(value), dry_run_by_mode))
    return dry_run_by_mode[value]


def integer_parser(minimum: int = 0, maximum: int = MAX_INTEGER) -> Callable[[Any, Path], int]:
    """Returns a parser of whole numbers between two bounds, both included."""

    def parse(value: Any, path: Path) -> int:
        # To Python a boolean is an integer; to the author `drains: true` is a mistake.
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise InvalidValue(path, f"a whole number from {minimum} to {maximum}", quote_value(value))
        return value

    return parse


def parse_percent(value: Any, path: Path) -> int:
    """Returns a percentage from 0 to 100. It may be a number, or text with a percent sign."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        # `80%` and `80` are the same: people write both, and other tools require the percent sign.
        value = int(value[:-1])
    return integer_parser(0, 100)(value, path)


def parse_seconds(value: Any, path: Path) -> int:
    """Returns a duration such as "10m" in seconds."""
    # A bare 0 needs no unit, as in Go; any other number without one is refused, because seconds and minutes are easily
    # confused.
    seconds = parse_duration(value) if isinstance(value, str) else value if value == 0 else None
    if seconds is None or isinstance(value, bool):
        raise InvalidValue(path, "a duration such as 90s, 10m or 1h30m", quote_value(value))
    return seconds


def enum_parser(kind: Any) -> Callable[[Any, Path], Any]:
    """Returns a parser of the members of an enumeration."""
    names = [str(item.value) for item in kind]

    def parse(value: Any, path: Path) -> Any:
        if value not in names:
            raise InvalidValue(path, f"one of {', '.join(names)}", quote_value(value), suggest_name(str(value), names))
        return kind(value)

    return parse


def parse_names(value: Any, path: Path) -> tuple[str, ...]:
    """Returns a list of names."""
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise InvalidValue(path, "a list of names", quote_value(value))
    return tuple(value)


def parse_labels(value: Any, path: Path) -> Mapping[str, str]:
    """Returns a mapping of labels to text values, sorted by label."""
    if not isinstance(value, dict) or not value or not all(isinstance(item, str) for item in value.values()):
        raise InvalidValue(path, "labels: names with text values, at least one", quote_value(value))
    # Sorted, so that two files with the same labels give equal pools whatever the order of their keys.
    return dict(sorted(value.items()))


def parse_prices(value: Any, path: Path) -> Mapping[str, int]:
    """Returns instance type → micro-dollars an hour. The input is in dollars an hour."""
    if not isinstance(value, dict):
        raise InvalidValue(path, "instance types with dollars an hour", quote_value(value))
    micro_dollars = {}
    for name, price in sorted(value.items()):
        if isinstance(price, bool) or not isinstance(price, int | float) or not MIN_PRICE <= price < 100_000:
            raise InvalidValue((*path, name), f"dollars an hour, at least {MIN_PRICE:f}", quote_value(price))
        # Integers from here on: sums of floating-point prices would depend on the order of the nodes.
        micro_dollars[name] = round(price * 1_000_000)
    return micro_dollars


def parse_commitments(value: Any, path: Path) -> Mapping[str, int]:
    """Returns instance type → number of nodes that are paid for whether they run or not."""
    if not isinstance(value, dict):
        raise InvalidValue(path, "instance types with a number of nodes", quote_value(value))
    count = integer_parser()
    return {str(name): count(nodes, (*path, str(name))) for name, nodes in sorted(value.items())}


GROUP_SPANS = {"scaleDownUnneededTime": f.UNNEEDED_TIME.name, "scaleDownUnreadyTime": f.UNREADY_TIME.name}
GROUP_PERCENTS = {
    "scaleDownUtilizationThreshold": f.THRESHOLD.name,
    "scaleDownGpuUtilizationThreshold": f.GPU_THRESHOLD.name,
}
GROUP_FLAGS = {"ignoreDaemonSetsUtilization": f.IGNORE_DAEMON_SETS.name}
GROUP_OPTIONS = {**GROUP_PERCENTS, **GROUP_SPANS, **GROUP_FLAGS}
"""Option of a node group (NodeGroupAutoscalingOptions) → the autoscaler's flag that has the same effect for all
groups."""


def group_option_parser(name: str) -> Callable[[Any, Path], str]:
    """Returns a parser for this option of a node group. It returns the value as the autoscaler's flag would be
    written."""

    def parse(value: Any, path: Path) -> str:
        if name in GROUP_SPANS:
            return f"{parse_seconds(value, path)}s"
        if name in GROUP_FLAGS:
            # In the form in which the autoscaler itself would get the flag: `cluster_autoscaler.with_options` parses
            # both alike.
            return "true" if parse_flag(value, path) else "false"
        return f"{parse_percent(value, path) / 100:.2f}"

    return parse


def parse_schedulers(value: Any, path: Path) -> Mapping[str, SchedulerPlacement]:
    """Returns scheduler name → how that scheduler places pods."""
    if not isinstance(value, dict) or not all(isinstance(name, str) and name for name in value):
        raise InvalidValue(path, "scheduler names, each with spread, pack or unknown", quote_value(value))
    # Any scheduler name is valid here: kube-scheduler profiles can have any name.
    parse = enum_parser(SchedulerPlacement)
    return {name: parse(placement, (*path, name)) for name, placement in sorted(value.items())}


def parse_windows(value: Any, path: Path) -> tuple[WeeklyWindow, ...]:
    """Returns the weekly windows of a list."""
    if not isinstance(value, list):
        raise InvalidValue(path, "a list of windows", quote_value(value))
    return tuple(_parse_window(item, (*path, number)) for number, item in enumerate(value))


def _parse_window(value: Any, path: Path) -> WeeklyWindow:
    keys = ("days", "from", "to", "timeZone")
    if not isinstance(value, dict) or not set(value) <= set(keys) or not {"from", "to"} <= set(value):
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


Schema = dict[str, Any]

_FLAG: Schema = {"type": "boolean"}
_PERCENT: Schema = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": "^0*([0-9]{1,2}|100)%$"}]
}
# The grammar of durations in `timestamps`, which is that of Go's time.ParseDuration without a sign.
_SPAN: Schema = {
    "anyOf": [{"const": 0}, {"type": "string", "pattern": r"^(0|\s*([0-9]+([.][0-9]+)?(h|ms|us|µs|ns|m|s))+\s*)$"}]
}
_NAMES: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
_TIME: Schema = {"type": "string", "pattern": "^0*([0-9]|1[0-9]|2[0-3]):[0-5][0-9]$"}
_PRICE: Schema = {"type": "number", "minimum": MIN_PRICE, "exclusiveMaximum": 100_000}
_LABELS: Schema = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}


def _integer(minimum: int = 0) -> Schema:
    return {"type": "integer", "minimum": minimum, "maximum": MAX_INTEGER}


def _enumeration(kind: type[StrEnum]) -> Schema:
    return {"enum": [one.value for one in kind]}


def _mapping(**properties: Schema) -> Schema:
    """Returns the schema of a mapping that may have only these keys. Null is allowed, because YAML reads a key without
    a value as null."""
    return {"type": ["object", "null"], "additionalProperties": False, "properties": properties}


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
_UNDER: Schema = {
    **_mapping(
        **dict.fromkeys(("cpu", "memory", "pods", "ephemeral-storage"), _PERCENT), count=_integer(1), **{"for": _SPAN}
    ),
    "patternProperties": {"/": _PERCENT},
}


def pool_settings_schema() -> Schema:
    """Returns the JSON Schema of the settings of one pool."""
    return {
        **_mapping(
            preset={"enum": [*PRESETS]},
            nodes={"anyOf": [{"const": "all"}, _mapping(labels=_LABELS)]},
            goal=_enumeration(Goal),
            mode={"enum": ["rehearse", "act"]},
            dryRun=_FLAG,
            enabled=_FLAG,
            underUsed=_UNDER,
            age=_mapping(node=_SPAN, receiver=_SPAN, pod=_SPAN),
            quiet=_SPAN,
            pendingLimit=_SPAN,
            keep=_mapping(
                nodes=_integer(),
                nodesPerZone=_integer(),
                spare=_enumeration(Spare),
                headroom=_mapping(percent=_PERCENT, nodes=_integer(), largestPod=_FLAG),
            ),
            pace=_mapping(
                drains=_integer(1), evictionsPerHour=_integer(1), openingsPerHour=_integer(), leastGain=_integer()
            ),
            resize=_mapping(canary=_integer(1), verify=_SPAN, perHour=_integer()),
            prices={"type": "object", "additionalProperties": _PRICE},
            commitments={"type": "object", "additionalProperties": _integer()},
            autoscaler=_enumeration(Precedence),
            lead=_mapping(maxThreshold=_PERCENT),
            groupOptions=_mapping(
                **dict.fromkeys(GROUP_PERCENTS, _PERCENT),
                **dict.fromkeys(GROUP_SPANS, _SPAN),
                **dict.fromkeys(GROUP_FLAGS, _FLAG),
            ),
            windows={"type": "array", "items": _WINDOW},
            schedulers={"type": "object", "additionalProperties": {"enum": [one.value for one in SchedulerPlacement]}},
            optOut=_mapping(nodes=_NAMES, pods=_NAMES),
            protect=_mapping(
                singleReplicas=_FLAG,
                jobs=_FLAG,
                notReady=_FLAG,
                unready=_enumeration(ProtectUnready),
                criticalPods=_enumeration(ProtectCritical),
                maxGrace=_SPAN,
            ),
        ),
        "type": "object",
        # `mode` and `dryRun` set the same field of the pool; the reader refuses both together, too.
        "not": {"required": ["mode", "dryRun"]},
    }
