"""Which words does the policy language have for its values?

Every class of the language is a frozen dataclass made by `words`; every scalar is a checked type here. A check that
fails says what was expected; the loader adds the place, what came and the nearest valid name.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from trimtab.cluster import quantity

C = TypeVar("C")

_CONFIG = ConfigDict(extra="forbid", alias_generator=to_camel, use_attribute_docstrings=True)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def words(cls: type[C]) -> type[C]:
    """A class of the language: immutable, camelCase in YAML, unknown fields refused, docstrings in the schema."""
    cls.__pydantic_config__ = _CONFIG  # type: ignore[attr-defined]
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


_INT_OR_STRING = {"x-kubernetes-int-or-string": True}


def _quantity(value: Any) -> str:
    if not quantity.is_quantity(value) or isinstance(value, bool):
        raise ValueError("a quantity such as 250m, 1.5, 128Mi or 1e3")
    if isinstance(value, float):
        raise ValueError('quotes around a fraction, such as "0.5", or 500m')
    if quantity.parse(value) <= 0:
        raise ValueError("a quantity above zero")
    return str(value)


Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], **_INT_OR_STRING}),
]
"""A Kubernetes quantity above zero, kept as written."""


def _percent(value: Any) -> int:
    text = str(value).strip().removesuffix("%")
    if isinstance(value, bool) or not text.isdecimal() or not 0 <= int(text) <= 100:
        raise ValueError("a whole percentage from 0% to 100%")
    return int(text)


Percent = Annotated[
    int,
    BeforeValidator(_percent),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], **_INT_OR_STRING}),
]
"""A whole percentage, "25%" or 25."""


def _pattern(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a name or a pattern such as team-*")
    return value


Pattern = Annotated[str, BeforeValidator(_pattern)]
"""A shell pattern for a name: `*`, `?`, `[a-c]`."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def _label_key(value: Any) -> str:
    prefix, slash, name = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not _NAME.fullmatch(name) or (slash and (not _SUBDOMAIN.fullmatch(prefix) or len(prefix) > 253)):
        raise ValueError("a label key such as pool or example.com/pool")
    return str(value)


def _label_value(value: Any) -> str:
    if not isinstance(value, str) or (value and not _NAME.fullmatch(value)):
        raise ValueError("a label value: text of at most 63 letters, digits, - _ . (quote numbers and booleans)")
    return value


def _object_name(value: Any) -> str:
    if not isinstance(value, str) or not _SUBDOMAIN.fullmatch(value) or len(value) > 253:
        raise ValueError("the name of an object: lower case letters, digits, - and .")
    return value


LabelKey = Annotated[str, BeforeValidator(_label_key)]
LabelValue = Annotated[str, BeforeValidator(_label_value)]
ObjectName = Annotated[str, BeforeValidator(_object_name)]
Whole = Annotated[int, Field(strict=True)]
"""A whole number; "3" in quotes is not one."""
Flag = Annotated[bool, Field(strict=True)]

Role = Literal["main", "init", "sidecar"]
Mode = Literal["apply", "warn", "audit"]
