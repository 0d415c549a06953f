"""Tests whether labels match selectors, names match patterns, and tolerations cover others.

`parse` reads a label selector in the syntax of `kubectl -l`: `team=shop,tier!=test,env in (prod,stage),owner,!legacy`.
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
    """Returns whether a LabelSelector matches labels, as in Kubernetes: all its labels and all its expressions must
    hold; an empty selector matches everything."""
    if not selector.match_labels.items() <= labels.items():
        return False
    expressions = selector.match_expressions
    return not expressions or all(requirement_matches(expression, labels) for expression in expressions)


def candidate_entries(index: Mapping[str, Mapping[str, list[T]]], labels: Mapping[str, str]) -> list[T]:
    """Returns the entries of an index (label key → value → entries) for these labels. It iterates over the smaller of
    the index and the labels."""
    keys = index if len(index) < len(labels) else labels
    return [entry for key in keys if key in index and key in labels for entry in index[key].get(labels[key], ())]


def requirement_matches(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Returns whether labels satisfy one expression: In, NotIn, Exists, DoesNotExist, Gt, Lt.

    NotIn holds if the label is missing (labels.Requirement.Matches). An unknown operator matches nothing.
    """
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values if value is not None else False
        case "NotIn":
            # An absent label satisfies NotIn: labels.Requirement.Matches returns true for a missing key.
            return value not in requirement.values if value is not None else True
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            # Whether the Gt or Lt expression holds for the value. Both numbers must be valid for Go's
            # strconv.ParseInt, which rejects `1_000` and numbers of more than 64 bits.
            actual, bound = _parse_int64(value or ""), _parse_int64(requirement.values[0] if requirement.values else "")
            if actual is None or bound is None:
                return False
            return actual > bound if requirement.operator == "Gt" else actual < bound
    return False


def _parse_int64(text: str) -> int | None:
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


# Label values have at most 63 characters.
_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")


@lru_cache(maxsize=1024)
def name_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns a function that tests whether a name matches any of these shell patterns (`team-*`, `web-?`). `*` matches
    every character, also a slash."""
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
"""The characters that make a text a shell pattern rather than a plain name."""


def tolerates_at_least(a: Toleration, b: Toleration) -> bool:
    """Returns whether `a` tolerates everything that `b` tolerates (pkg/util/tolerations `isSuperset`)."""
    if a == b:
        return True
    if not _tolerates_as_long(a, b) or a.effect not in ("", b.effect):
        return False
    if a.operator == "Exists":
        return a.key in ("", b.key)
    return a.key == b.key and b.operator in ("", "Equal") and a.value == b.value


def _tolerates_as_long(a: Toleration, b: Toleration) -> bool:
    """Returns whether `a` tolerates a taint for at least as long as `b`. The seconds count for NoExecute only; without
    them, the taint is tolerated forever."""
    if a.effect not in ("", "NoExecute") or not isinstance(a.toleration_seconds, int):
        return True
    return isinstance(b.toleration_seconds, int) and b.toleration_seconds <= a.toleration_seconds


def is_covered(wanted: Toleration, present: Iterable[Toleration]) -> bool:
    """Returns whether one of the present tolerations tolerates everything that the wanted one does."""
    return any(tolerates_at_least(toleration, wanted) for toleration in present)


EXPECTED_SELECTOR = "a label selector such as team=shop,tier!=test,env in (prod,stage),owner,!legacy"

_KEY = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"[-A-Za-z0-9_.]*"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<missing>{_KEY})"
    rf"|(?P<key>{_KEY})(?:\s*(?P<sign>==?|!=)\s*(?P<value>{_VALUE})"
    rf"|\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)",
    re.ASCII,
)
_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn"}


def parse(text: str) -> tuple[SelectorRequirement, ...]:
    """Returns the requirements of a label selector, all of which must hold. Raises ValueError with a sentence that says
    what was expected."""
    requirements, offset, text = list[SelectorRequirement](), 0, text.rstrip()
    while offset < len(text):
        match = _REQUIREMENT.match(text, offset)
        if match is None:
            raise ValueError(EXPECTED_SELECTOR)
        requirements.append(_parse_requirement(match))
        offset = match.end()
    if not requirements or text.endswith(","):
        raise ValueError(EXPECTED_SELECTOR)
    return tuple(requirements)


def _parse_requirement(match: re.Match[str]) -> SelectorRequirement:
    if match["absent"]:
        return SelectorRequirement(key=match["missing"], operator="DoesNotExist")
    operator = match["sign"] or match["word"]
    if not operator:
        return SelectorRequirement(key=match["key"], operator="Exists")
    values = (match["value"],) if match["sign"] else tuple(part.strip() for part in match["values"].split(","))
    if not all(re.fullmatch(_VALUE, value) for value in values):
        raise ValueError(EXPECTED_SELECTOR)
    return SelectorRequirement(key=match["key"], operator=_OPERATORS[operator], values=values)
