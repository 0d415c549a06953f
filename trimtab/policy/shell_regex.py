"""Shell patterns: their character classes, and the regular expression that RE2 (CEL's `matches`) and Python read
alike."""

import re
from collections.abc import Iterator

Range = tuple[str, str]
"""The first and the last character of a range in a class; a single character is both."""


def character_classes(pattern: str) -> Iterator[str]:
    """Yields what is between the brackets of each character class of a shell pattern, as `fnmatch` reads it."""
    at = pattern.find("[")
    while at >= 0:
        end = end_of_class(pattern, at + 1)
        if end >= 0:
            yield pattern[at + 1 : end]
        at = pattern.find("[", max(end, at + 1))


def end_of_class(pattern: str, start: int) -> int:
    """Returns the position of the bracket that ends the character class which begins at `start`, or -1 if none does: a
    bracket at the beginning, also after "!", is one of the characters."""
    first = start + (pattern[start : start + 1] == "!")
    return pattern.find("]", first + 1)


def shell_regex(pattern: str, *, crosses_slash: bool = True) -> str:
    """Returns the regular expression for a shell pattern, with the meaning that `fnmatch` gives it. With
    `crosses_slash=False` a wildcard or a class matches no slash."""
    out, at = "", 0
    any_character = "." if crosses_slash else "[^/]"
    while at < len(pattern):
        char, at = pattern[at], at + 1
        if char == "*":
            out += f"{any_character}*"
        elif char == "?":
            out += any_character
        elif char == "[" and (end := end_of_class(pattern, at)) >= 0:
            inner, at = pattern[at:end], end + 1
            out += _class_regex(inner, any_character)
        else:
            out += re.escape(char)
    return out


def _class_regex(inner: str, any_character: str) -> str:
    """Returns the regular expression for a character class, without its brackets."""
    # `fnmatch` negates a class with "!", RE2 with "^". A bracket or a caret in a class stands for itself.
    is_negated, has_slash = inner.startswith("!"), any_character == "."
    ranges = [item for item in _ranges(inner.removeprefix("!")) if item[0] <= item[1]]
    if not has_slash:
        ranges = [("/", "/"), *ranges] if is_negated else [part for item in ranges for part in _without_slash(item)]
    if not ranges:
        # A range whose last character is before its first one contains nothing.
        return any_character if is_negated else _NOTHING
    text = "".join(_escape(low) if low == high else f"{_escape(low)}-{_escape(high)}" for low, high in ranges)
    return f"[{'^' if is_negated else ''}{text}]"


def _ranges(inner: str) -> Iterator[Range]:
    at = 0
    while at < len(inner):
        is_range = inner[at + 1 : at + 2] == "-" and at + 2 < len(inner)
        yield inner[at], inner[at + 2] if is_range else inner[at]
        at += 3 if is_range else 1


def _without_slash(item: Range) -> Iterator[Range]:
    low, high = item
    if not low <= "/" <= high:
        yield item
        return
    # "." and "0" are the neighbours of the slash.
    yield from (part for part in ((low, "."), ("0", high)) if part[0] <= part[1])


def _escape(char: str) -> str:
    return f"\\{char}" if char in r"\[]^-" else char


_NOTHING = r"[^\s\S]"
