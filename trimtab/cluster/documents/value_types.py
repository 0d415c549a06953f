"""What a field of a document takes: how a value is parsed, its JSON Schema, and how an author writes it.

A parser returns the value that Trimtab works with, or raises `InvalidValue`. The schema rejects what the parser
rejects. Types that only one kind of document has are beside that kind, as those of pools in `pool_values`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trimtab.cluster.config_error import quote_value, suggest_name
from trimtab.cluster.timestamps import parse_duration
from trimtab.cluster.yaml_parser import Path

Parse = Callable[[Any, Path], Any]
Schema = dict[str, Any]
MAX_INTEGER = 10**9


@dataclass(slots=True)
class InvalidValue(Exception):
    """A value that is not valid, with its path in the document, what was expected there, and what to do."""

    path: Path
    expected: str
    got: str = ""
    todo: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ValueType:
    """What a field takes."""

    parse: Parse
    """Returns the value at a path. Raises InvalidValue for any other value."""
    schema: Schema = field(default_factory=dict)
    """Empty if no schema describes the documents that have such values."""
    write: Callable[[Any], str] = str
    """Returns the parsed value as an author writes it."""


def _parse_flag(value: Any, path: Path) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(path, "true or false", quote_value(value))
    return value


FLAG = ValueType(_parse_flag, {"type": "boolean"}, lambda value: str(value).lower())


def whole_number(minimum: int = 0, maximum: int = MAX_INTEGER) -> ValueType:
    """Returns the type of whole numbers between two bounds, both included."""

    def parse(value: Any, path: Path) -> int:
        # To Python a boolean is an integer; to the author `drains: true` is a mistake.
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise InvalidValue(path, f"a whole number from {minimum} to {maximum}", quote_value(value))
        return value

    return ValueType(parse, {"type": "integer", "minimum": minimum, "maximum": maximum})


def _parse_percent(value: Any, path: Path) -> int:
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal():
        # `80%` and `80` are the same: people write both, and other tools require the percent sign.
        value = int(value[:-1])
    percent: int = _PERCENT_NUMBER.parse(value, path)
    return percent


_PERCENT_NUMBER = whole_number(0, 100)
PERCENT = ValueType(
    _parse_percent,
    {"anyOf": [_PERCENT_NUMBER.schema, {"type": "string", "pattern": "^0*([0-9]{1,2}|100)%$"}]},
)
"""A percentage from 0 to 100. It may be a number, or text with a percent sign."""


def _parse_seconds(value: Any, path: Path) -> int:
    # A bare 0 needs no unit, as in Go; any other number without one is refused, because seconds and minutes are easily
    # confused.
    seconds = parse_duration(value) if isinstance(value, str) else value if value == 0 else None
    if seconds is None or isinstance(value, bool):
        raise InvalidValue(path, "a duration such as 90s, 10m or 1h30m", quote_value(value))
    return seconds


def _write_duration(seconds: int) -> str:
    units = ((3600, "h"), (60, "m"), (1, "s"))
    return next((f"{seconds // size}{unit}" for size, unit in units if seconds and seconds % size == 0), "0")


DURATION = ValueType(
    _parse_seconds,
    # The grammar of durations in `timestamps`, which is that of Go's time.ParseDuration without a sign.
    {"anyOf": [{"const": 0}, {"type": "string", "pattern": r"^(0|\s*([0-9]+([.][0-9]+)?(h|ms|us|µs|ns|m|s))+\s*)$"}]},
    _write_duration,
)
"""A duration such as "10m"; the value is in seconds."""


def word_of(values: Mapping[str, Any], expected: str = "") -> ValueType:
    """Returns the type of these words, each of which stands for a value."""

    def parse(value: Any, path: Path) -> Any:
        if not isinstance(value, str) or value not in values:
            todo = suggest_name(str(value), values)
            raise InvalidValue(path, expected or f"one of {', '.join(values)}", quote_value(value), todo)
        return values[value]

    schema = {"enum": [*values]} if len(values) > 1 else {"const": next(iter(values))}
    return ValueType(parse, schema, lambda value: next(word for word, meant in values.items() if meant == value))


def one_of(kind: type[StrEnum]) -> ValueType:
    """Returns the type of the members of an enumeration."""
    return word_of({item.value: item for item in kind})


def mapping_of(kind: ValueType, expected: str) -> ValueType:
    """Returns the type of mappings, sorted by key, from any name to values of a type."""

    def parse(value: Any, path: Path) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise InvalidValue(path, expected, quote_value(value))
        return {name: kind.parse(item, (*path, name)) for name, item in sorted(value.items())}

    return ValueType(parse, {"type": "object", "additionalProperties": kind.schema})


def _parse_names(value: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise InvalidValue(path, "a list of names", quote_value(value))
    return tuple(value)


NAMES = ValueType(_parse_names, {"type": "array", "items": {"type": "string", "minLength": 1}}, ", ".join)


def _parse_labels(value: Any, path: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value or not all(isinstance(item, str) for item in value.values()):
        raise InvalidValue(path, "labels: names with text values, at least one", quote_value(value))
    # Sorted, so that two files with the same labels give equal values whatever the order of their keys.
    return dict(sorted(value.items()))


LABELS = ValueType(_parse_labels, {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}})
"""A mapping of labels to text values, sorted by label."""
