"""Does this one match that one? Labels, name patterns, tolerations.

A label selector as `kubectl -l` reads it: `team=shop,tier!=test,env in (prod,stage),owner,!legacy`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import TypeVar

from trimtab.cluster.api.meta import LabelSelector, SelectorRequirement
from trimtab.cluster.api.pod import Toleration

T = TypeVar("T")


def labels_match(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """As Kubernetes matches a LabelSelector: all labels and all expressions; an empty selector matches all."""
    if not selector.match_labels.items() <= labels.items():
        return False
    expressions = selector.match_expressions
    return not expressions or all(requirement_matches(expression, labels) for expression in expressions)


def entries_near(index: Mapping[str, Mapping[str, list[T]]], labels: Mapping[str, str]) -> list[T]:
    """What an index (label key → value → entries) has under these labels. It costs what the smaller of both costs."""
    keys = index if len(index) < len(labels) else labels
    return [entry for key in keys if key in index and key in labels for entry in index[key].get(labels[key], ())]


def requirement_matches(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    """One expression against labels: In, NotIn, Exists, DoesNotExist, Gt, Lt.

    NotIn holds where the label is missing (labels.Requirement.Matches). An operator we do not know matches nothing.
    """
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values if value is not None else False
        case "NotIn":
            return value not in requirement.values if value is not None else True
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
    return False


def _compares(requirement: SelectorRequirement, value: str | None) -> bool:
    """Both must be numbers to Go's strconv.ParseInt, which knows no `1_000` and no more than 64 bits."""
    have, want = _number(value or ""), _number(requirement.values[0] if requirement.values else "")
    if have is None or want is None:
        return False
    return have > want if requirement.operator == "Gt" else have < want


def _number(text: str) -> int | None:
    found = int(text) if _INTEGER.fullmatch(text) else None
    return found if found is not None and -(1 << 63) <= found < 1 << 63 else None


_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")
"""Labels are no longer than 63 characters."""


@lru_cache(maxsize=1024)
def glob(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test for names: shell patterns (`team-*`, `web-?`), any of them; `*` crosses every character."""
    # Most patterns are plain names, or a beginning or an end and a star: no regular expression is needed for those.
    names: set[str] = set()
    beginnings: list[str] = []
    ends: list[str] = []
    for pattern in patterns:
        if not _SPECIAL.search(pattern):
            names.add(pattern)
        elif pattern[-1] == "*" and not _SPECIAL.search(pattern[:-1]):
            beginnings.append(pattern[:-1])
        elif pattern[0] == "*" and not _SPECIAL.search(pattern[1:]):
            ends.append(pattern[1:])
        else:
            matches = re.compile("|".join(map(translate, patterns))).match
            return lambda name: matches(name) is not None
    if not beginnings and not ends:
        return names.__contains__
    first, last = tuple(beginnings), tuple(ends)
    return lambda name: name in names or name.startswith(first) or name.endswith(last)


_SPECIAL = re.compile(r"[*?\[]")
"""What makes a shell pattern more than a name."""


def tolerates_at_least(a: Toleration, b: Toleration) -> bool:
    """Does `a` tolerate everything that `b` does (pkg/util/tolerations `isSuperset`)?"""
    if a == b:
        return True
    if not _lasts_as_long(a, b) or a.effect not in ("", b.effect):
        return False
    if a.operator == "Exists":
        return a.key in ("", b.key)
    return a.key == b.key and b.operator in ("", "Equal") and a.value == b.value


def _lasts_as_long(a: Toleration, b: Toleration) -> bool:
    """Seconds only mean something for NoExecute; none at all is for ever."""
    if a.effect not in ("", "NoExecute") or not isinstance(a.toleration_seconds, int):
        return True
    return isinstance(b.toleration_seconds, int) and b.toleration_seconds <= a.toleration_seconds


def covered(wanted: Toleration, present: Iterable[Toleration]) -> bool:
    """Is the toleration wanted already contained in one that is there?"""
    return any(tolerates_at_least(have, wanted) for have in present)


EXPECTED = "a label selector such as team=shop,tier!=test,env in (prod,stage),owner,!legacy"

_KEY = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_ONE = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<missing>{_KEY})"
    rf"|(?P<key>{_KEY})(?:\s*(?P<sign>==?|!=)\s*(?P<value>{_VALUE})"
    rf"|\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)",
    re.ASCII,
)
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


def parse(text: str) -> tuple[SelectorRequirement, ...]:
    """The requirements of a selector, all of which must hold. Raises ValueError with what was expected."""
    found, at, text = list[SelectorRequirement](), 0, text.rstrip()
    while at < len(text):
        match = _ONE.match(text, at)
        if match is None:
            raise ValueError(EXPECTED)
        found.append(_requirement(match))
        at = match.end()
    if not found or text.endswith(","):
        raise ValueError(EXPECTED)
    return tuple(found)


def _requirement(match: re.Match[str]) -> SelectorRequirement:
    if match["absent"]:
        return SelectorRequirement(key=match["missing"], operator="DoesNotExist")
    operator = match["sign"] or match["word"]
    if not operator:
        return SelectorRequirement(key=match["key"], operator="Exists")
    values = (match["value"],) if match["sign"] else tuple(part.strip() for part in match["values"].split(","))
    if not all(re.fullmatch(_VALUE, value) for value in values):
        raise ValueError(EXPECTED)
    return SelectorRequirement(key=match["key"], operator=_OPERATORS[operator], values=values)
