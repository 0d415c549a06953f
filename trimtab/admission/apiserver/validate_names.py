"""Validates label keys and values, annotation keys, object names and qualified names, with the API server's
messages."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from trimtab.cluster.bounded_cache import cache_short_strings

_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_ENDS_RULE = "and must start and end with an alphanumeric character"
_KEY_PATTERN, _VALUE_PATTERN, _SUBDOMAIN_PATTERN = map(re.compile, (_KEY, f"({_KEY})?", _SUBDOMAIN))
_MAX_LENGTH = 63
_MAX_SUBDOMAIN_LENGTH = 253
ANNOTATION_BYTES = 256 << 10
"""The maximum size of all annotations of an object together, in bytes (apimachinery TotalAnnotationSizeLimitB)."""


def format_invalid(field: str, value: object, why: str) -> str:
    """Returns an error in the form `field: Invalid value: "x": why`; strings are quoted, numbers are not."""
    return f"{field}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"


def format_unsupported(field: str, value: str, supported: Iterable[str]) -> str:
    return f"{field}: Unsupported value: {json.dumps(value)}: supported values: {', '.join(map(json.dumps, supported))}"


def label_errors(field: str, labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        if _key_errors(key):
            yield from label_key_errors(field, key)
        for why in label_value_errors(value):
            yield format_invalid(field, value, why)


def annotation_errors(field: str, annotations: Mapping[str, str]) -> Iterator[str]:
    """Yields the errors of annotations. Keys follow the rules for label keys, but in upper or lower case; values may
    have any length; all together may have at most 256 KiB."""
    for key in annotations:
        if errors := _key_errors(key.lower()):
            yield from (format_invalid(field, key, why) for why in errors)
    if are_surely_small(annotations):
        return
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATION_BYTES:
        yield f"{field}: Too long: may not be more than {ANNOTATION_BYTES} bytes"


def are_surely_small(annotations: Mapping[str, str]) -> bool:
    """Returns whether the annotations have at most the permitted size, however their characters are encoded: UTF-8
    needs at most four bytes for a character, so the exact size need not be computed."""
    return 4 * sum(map(len, annotations.values())) + 4 * sum(map(len, annotations)) <= ANNOTATION_BYTES


def label_key_errors(field: str, key: str) -> Iterator[str]:
    yield from (format_invalid(field, key, why) for why in _key_errors(key))


# Longer texts are invalid.
_cached = cache_short_strings(max_length=_MAX_SUBDOMAIN_LENGTH + 1 + _MAX_LENGTH, max_entries=4096)


@_cached
def label_value_errors(value: str) -> tuple[str, ...]:
    """Returns the errors of a label value."""
    return () if is_label_value(value) else tuple(_value_errors(value))


def is_label_value(value: str) -> bool:
    """Returns whether the text is a valid label value. It costs less than looking up the errors of a value that was not
    seen before."""
    # The pattern has only ASCII characters, so that characters are bytes.
    return len(value) <= _MAX_LENGTH and _VALUE_PATTERN.fullmatch(value) is not None


def _value_errors(value: str) -> Iterator[str]:
    if len(value.encode()) > _MAX_LENGTH:
        yield f"must be no more than {_MAX_LENGTH} bytes"
    if not _VALUE_PATTERN.fullmatch(value):
        start = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
        yield _pattern_error(f"{start}, {_ENDS_RULE}", f"({_KEY})?", "MyValue", "my_value", "12345")


def subdomain_errors(field: str, name: str) -> Iterator[str]:
    """Yields the errors of an object name that must be a DNS subdomain."""
    yield from (format_invalid(field, name, why) for why in _subdomain_errors(name))


def qualified_name_errors(key: str) -> Iterator[str]:
    """Yields the errors of a qualified name, such as the name of a resource."""
    yield from _key_errors(key)


@_cached
def _key_errors(key: str) -> tuple[str, ...]:
    return tuple(_qualified_name_errors(key))


def _qualified_name_errors(key: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        why = _pattern_error(_name_rule(), _KEY, "MyName", "my.name", "123-abc")
        yield f"a valid label key {why} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if slash:
        yield from (f"prefix part {why}" for why in (_subdomain_errors(prefix) if prefix else ["must be non-empty"]))
    if not name:
        yield "name part must be non-empty"
    elif len(name.encode()) > _MAX_LENGTH:
        yield f"name part must be no more than {_MAX_LENGTH} bytes"
    if not _KEY_PATTERN.fullmatch(name):
        yield f"name part {_pattern_error(_name_rule(), _KEY, 'MyName', 'my.name', '123-abc')}"


def _name_rule() -> str:
    return f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS_RULE}"


def _subdomain_errors(name: str) -> Iterator[str]:
    if len(name.encode()) > _MAX_SUBDOMAIN_LENGTH:
        yield f"must be no more than {_MAX_SUBDOMAIN_LENGTH} bytes"
    if not _SUBDOMAIN_PATTERN.fullmatch(name):
        start = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        yield _pattern_error(f"{start}, {_ENDS_RULE}", _SUBDOMAIN, "example.com")


def _pattern_error(why: str, pattern: str, *examples: str) -> str:
    """Returns the error for a text that does not match a pattern, with examples, as the server writes it, including its
    misplaced commas."""
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{why} (e.g. {listed}regex used for validation is '{pattern}')"
