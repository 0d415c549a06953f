"""May this be a label key, a label value, an annotation key, an object's name?"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_ENDS = "and must start and end with an alphanumeric character"
_KEY_PATTERN, _VALUE_PATTERN, _SUBDOMAIN_PATTERN = map(re.compile, (_KEY, f"({_KEY})?", _SUBDOMAIN))
_LONGEST = 63
_LONGEST_NAME = 253
ANNOTATION_BYTES = 256 << 10
"""All annotations of an object together (apimachinery TotalAnnotationSizeLimitB)."""


def invalid(field: str, value: object, why: str) -> str:
    """`field: Invalid value: "x": why`; strings are quoted, numbers are not."""
    return f"{field}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"


def unsupported(field: str, value: str, supported: Iterable[str]) -> str:
    return f"{field}: Unsupported value: {json.dumps(value)}: supported values: {', '.join(map(json.dumps, supported))}"


def labels(field: str, written: Mapping[str, str]) -> Iterator[str]:
    for key, value in written.items():
        if _key(key):
            yield from key_complaints(field, key)
        for why in value_complaints(value):
            yield invalid(field, value, why)


def annotations(field: str, written: Mapping[str, str]) -> Iterator[str]:
    """Keys as labels' keys, capitals allowed anywhere; values as long as they like, together 256 KiB."""
    for key in written:
        if wrong := _key(key.lower()):
            yield from (invalid(field, key, why) for why in wrong)
    if 4 * sum(map(len, written.values())) + 4 * sum(map(len, written)) <= ANNOTATION_BYTES:
        return  # no character takes more than four bytes
    if sum(len(key.encode()) + len(value.encode()) for key, value in written.items()) > ANNOTATION_BYTES:
        yield f"{field}: Too long: may not be more than {ANNOTATION_BYTES} bytes"


def key_complaints(field: str, key: str) -> Iterator[str]:
    yield from (invalid(field, key, why) for why in _key(key))


_MOST_REMEMBERED = _LONGEST_NAME + 1 + _LONGEST
"""Characters. Whatever is longer is wrong, and a thousand texts of a megabyte each must not stay in memory."""


def value_complaints(value: str) -> tuple[str, ...]:
    """What is wrong with a label's value."""
    return _value_complaints(value) if len(value) <= _MOST_REMEMBERED else tuple(_value(value))


@lru_cache(maxsize=4096)
def _value_complaints(value: str) -> tuple[str, ...]:
    return tuple(_value(value))


def _value(value: str) -> Iterator[str]:
    if len(value.encode()) > _LONGEST:
        yield f"must be no more than {_LONGEST} bytes"
    if not _VALUE_PATTERN.fullmatch(value):
        start = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
        yield _by_pattern(f"{start}, {_ENDS}", f"({_KEY})?", "MyValue", "my_value", "12345")


def subdomain(field: str, name: str) -> Iterator[str]:
    """An object's name where it must be a DNS subdomain."""
    yield from (invalid(field, name, why) for why in _subdomain(name))


def qualified(key: str) -> Iterator[str]:
    """What is wrong with a qualified name such as a resource's."""
    yield from _key(key)


def _key(key: str) -> tuple[str, ...]:
    return _remembered_key(key) if len(key) <= _MOST_REMEMBERED else tuple(_wrong_in_key(key))


@lru_cache(maxsize=4096)
def _remembered_key(key: str) -> tuple[str, ...]:
    """Keys are few and come again in every pod."""
    return tuple(_wrong_in_key(key))


def _wrong_in_key(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        why = _by_pattern(_must(), _KEY, "MyName", "my.name", "123-abc")
        yield f"a valid label key {why} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if slash:
        yield from (f"prefix part {why}" for why in (_subdomain(prefix) if prefix else ["must be non-empty"]))
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > _LONGEST:
        yield f"name part must be no more than {_LONGEST} bytes"
    if not _KEY_PATTERN.fullmatch(name):
        yield f"name part {_by_pattern(_must(), _KEY, 'MyName', 'my.name', '123-abc')}"


def _must() -> str:
    return f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"


def _subdomain(name: str) -> Iterator[str]:
    if len(name.encode()) > _LONGEST_NAME:
        yield f"must be no more than {_LONGEST_NAME} bytes"
    if not _SUBDOMAIN_PATTERN.fullmatch(name):
        start = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        yield _by_pattern(f"{start}, {_ENDS}", _SUBDOMAIN, "example.com")


def _by_pattern(why: str, pattern: str, *examples: str) -> str:
    """The server's own way to list examples, its odd commas included."""
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{why} (e.g. {listed}regex used for validation is '{pattern}')"
