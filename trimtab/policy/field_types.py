"""Types that check the values of the policy language.

Every class of the language is a frozen dataclass made by `policy_type`; every scalar has a checked type of this module.
A failed check says what it expects; the loader adds the place, the value, and the most similar valid name.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema
from pydantic.alias_generators import to_camel

from trimtab.cluster import quantity, usage_rule
from trimtab.policy.shell_regex import character_classes

C = TypeVar("C")

_CONFIG = ConfigDict(extra="forbid", alias_generator=to_camel)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def policy_type(cls: type[C]) -> type[C]:
    """Makes a class part of the policy language: immutable, camelCase in YAML, unknown fields refused."""
    cls.__pydantic_config__ = _CONFIG  # type: ignore[attr-defined]
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


@contextmanager
def described_fields() -> Iterator[None]:
    """While it is open, types that pydantic builds have the docstrings of their fields. Only the schema needs them, and
    reading the source of the classes takes twice as long as all else."""
    _CONFIG["use_attribute_docstrings"] = True
    try:
        yield
    finally:
        _CONFIG["use_attribute_docstrings"] = False


_INT_OR_STRING = {"x-kubernetes-int-or-string": True}


def _check_quantity(value: Any) -> str:
    if not quantity.is_quantity(value) or isinstance(value, bool):
        raise ValueError("a quantity such as 250m, 1.5, 128Mi or 1e3")
    # YAML reads 0.5 as a binary fraction; the text keeps the author's digits.
    if isinstance(value, float):
        raise ValueError('a fraction in quotes, such as "0.5", or 500m')
    if quantity.parse(value) <= 0:
        raise ValueError("a quantity above zero")
    return str(value)


Quantity = Annotated[
    str,
    BeforeValidator(_check_quantity),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], **_INT_OR_STRING}),
]
"""A Kubernetes quantity above zero, kept as it is written."""


def _check_percent(value: Any) -> int:
    text = str(value).strip().removesuffix("%")
    if isinstance(value, bool) or not text.isdecimal() or not 0 <= int(text) <= 100:
        raise ValueError("a whole percentage from 0% to 100%")
    return int(text)


Percent = Annotated[
    int,
    BeforeValidator(_check_percent),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], **_INT_OR_STRING}),
]
"""A whole percentage from 0 to 100, written "25%" or 25."""


def _check_percentage(value: Any) -> int:
    text = str(value).strip().removesuffix("%")
    if isinstance(value, bool) or not text.isdecimal() or len(text) > 4 or not 1 <= int(text) <= 1000:
        raise ValueError("a whole percentage from 1% to 1000%")
    return int(text)


Percentage = Annotated[
    int,
    BeforeValidator(_check_percentage),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], **_INT_OR_STRING}),
]
"""A whole percentage that may exceed 100, written "150%" or 150."""


_SECONDS_BY_UNIT = {"d": 86400, "h": 3600, "m": 60}


def _check_age(value: Any) -> int:
    match = re.fullmatch(r"([1-9]\d{0,5})([dhm])", value.strip(), re.ASCII) if isinstance(value, str) else None
    if match is None:
        raise ValueError("an age such as 14d, 36h or 90m")
    return int(match[1]) * _SECONDS_BY_UNIT[match[2]]


Age = Annotated[
    int, BeforeValidator(_check_age), WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,5}[dhm]$"})
]
"""A maximum age, written "14d", "36h" or "90m"; stored in seconds."""


def _check_confidence(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1, such as 0.5")
    return float(value)


Confidence = Annotated[
    float, BeforeValidator(_check_confidence), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
"""The confidence of a recommendation, from 0 to 1."""


def _check_usage_rule(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(usage_rule.EXPECTED_RULE)
    rule = usage_rule.parse(value)
    if not rule.is_published:
        raise ValueError("a percentile that recommendations contain: p5, p50, p90, p95, p99, max or adaptive")
    return str(rule)


UsageRule = Annotated[
    str,
    BeforeValidator(_check_usage_rule),
    WithJsonSchema({"type": "string", "pattern": r"^\s*(adaptive|max|[Pp][0-9]{1,2}|\+)"}),
]
"""Which number of the usage becomes the request, in the grammar of `cluster.usage_rule`: adaptive, p95, p99 +15%,
max.
"""


@dataclass(frozen=True, slots=True)
class Authoring:
    """The context of validation for a policy that is written now: rules count that a stored policy may break."""


def _check_pattern(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a name or a pattern such as team-*")
    if isinstance(info.context, Authoring):
        for inner in character_classes(value):
            # The API server's expression language negates a class with "^", which is an ordinary character here.
            if inner.startswith("^"):
                raise ValueError("a class that is negated with `[!`: in a pattern, `^` is an ordinary character")
            if any(dash == "-" and low > high for low, dash, high in zip(inner, inner[1:], inner[2:], strict=False)):
                raise ValueError("a range such as [a-z], whose first character is not after its last")
    return value


Pattern = Annotated[str, BeforeValidator(_check_pattern)]
"""A shell pattern for a name, with `*`, `?` and `[a-c]`."""

# Names and subdomains as apimachinery validates them (util/validation: qualified names, RFC 1123 subdomains).
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def _check_label_key(value: Any) -> str:
    prefix, slash, name = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not _NAME.fullmatch(name) or (slash and (not _SUBDOMAIN.fullmatch(prefix) or len(prefix) > 253)):
        raise ValueError("a label key such as pool or example.com/pool")
    return str(value)


def _check_label_value(value: Any) -> str:
    if not isinstance(value, str) or (value and not _NAME.fullmatch(value)):
        raise ValueError("a label value: text of at most 63 letters, digits, - _ . (quote numbers and booleans)")
    return value


def _check_object_name(value: Any) -> str:
    if not isinstance(value, str) or not _SUBDOMAIN.fullmatch(value) or len(value) > 253:
        raise ValueError("the name of an object: lower case letters, digits, - and .")
    return value


def _check_lease(value: Any) -> str:
    parts = value.split("/") if isinstance(value, str) else ()
    if value != "none" and not (len(parts) == 2 and all(_SUBDOMAIN.fullmatch(part) for part in parts)):
        raise ValueError("a Lease as NAMESPACE/NAME, such as kube-system/trimtab-pack, or none")
    return str(value)


def _check_extended_resource(value: Any) -> str:
    host, slash, _ = _check_label_key(value).partition("/")
    # `requests.` is the prefix of quota entries (IsExtendedResourceName excludes it).
    if not slash or host == "kubernetes.io" or host.endswith(".kubernetes.io") or host.startswith("requests."):
        raise ValueError("an extended resource of a vendor's domain, such as example.com/license")
    return str(value)


LabelKey = Annotated[str, BeforeValidator(_check_label_key)]
ExtendedResource = Annotated[str, BeforeValidator(_check_extended_resource)]
"""A resource that a device plugin or an administrator adds to nodes (pkg/apis/core/v1/helper,
`IsExtendedResourceName`)."""
Pieces = Annotated[int, Field(strict=True, ge=1, le=10_000)]
"""A number of pieces of an extended resource, which cannot be divided."""
LabelValue = Annotated[str, BeforeValidator(_check_label_value)]
ObjectName = Annotated[str, BeforeValidator(_check_object_name)]
LeaseReference = Annotated[str, BeforeValidator(_check_lease)]
Whole = Annotated[int, Field(strict=True)]
"""A whole number; a text such as "3" in quotes is not accepted."""
Flag = Annotated[bool, Field(strict=True)]

Required = Annotated[
    bool,
    Field(
        strict=True,
        description="Deny a pod that would run without this action, and state why. The field needs `match.namespaces`. "
        "While the webhook is down, such pods are admitted.",
    ),
]
"""True: a pod without what this action sets is refused."""

OptOut = Literal["pod", "namespace", "nobody"]
"""Who may opt out of a policy with `trimtab.dev/opt-out`: a pod, only a namespace, or nobody."""

Role = Literal["main", "init", "sidecar"]
Mode = Literal["apply", "warn", "audit"]
