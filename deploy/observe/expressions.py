"""Which metrics and labels does a PromQL expression speak of? As much of a parser as that needs."""

from __future__ import annotations

import re

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_SERIES = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_RANGE = re.compile(r"\[[^\]]*\]|\boffset\s+\w+")
_WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset"}
_FUNCTIONS = re.compile(r"[a-zA-Z_]\w*\s*(?=\()")


def series(expression: str) -> dict[str, frozenset[str]]:
    """Metric → labels that are matched on it."""
    bare = _RANGE.sub("", _GROUPING.sub(" ", _TEXT.sub('""', expression)))
    found: dict[str, frozenset[str]] = {}
    for match in _SERIES.finditer(_FUNCTIONS.sub(" ", bare)):
        name, matchers = match.groups()
        if name not in _WORDS:
            found[name] = found.get(name, frozenset()) | set(_MATCHER.findall(matchers or ""))
    return found
