"""Text of CEL, the API server's expression language: literals, patterns and selectors.

The expressions run inside the API server, on the pod of a request (`object`). See
https://kubernetes.io/docs/reference/using-api/cel/.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from trimtab.policy.podpolicy import PolicyLabelSelector

Manifest = dict[str, Any]

ADMISSION_API = "admissionregistration.k8s.io/v1"


class NotExpressible(ValueError):
    """A part of the policy that CEL cannot express; the text names the field and the reason."""


def build_selector(selector: PolicyLabelSelector) -> Manifest:
    api_selector: Manifest = {}
    if selector.match_labels:
        api_selector["matchLabels"] = dict(selector.match_labels)
    if selector.match_expressions:
        api_selector["matchExpressions"] = [
            {"key": e.key, "operator": e.operator, **({"values": list(e.values)} if e.values else {})}
            for e in selector.match_expressions
        ]
    return api_selector


def cel_string(value: str) -> str:
    """Returns a string literal of CEL. CEL reads every JSON string."""
    return json.dumps(value)


def cel_regex(patterns: tuple[str, ...]) -> str:
    """Returns shell patterns as one literal of a regular expression (RE2)."""
    return cel_string(f"^({'|'.join(map(_to_regex, patterns))})$")


def _to_regex(pattern: str) -> str:
    """Translates a shell pattern as `fnmatch` reads it."""
    out, at = "", 0
    while at < len(pattern):
        char, at = pattern[at], at + 1
        if char == "*":
            out += ".*"
        elif char == "?":
            out += "."
        elif char == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            # Only the backslash has a meaning of its own in a character class of RE2.
            inner, at = pattern[at:end].replace("\\", "\\\\"), end + 1
            # `fnmatch` negates a class with "!", RE2 with "^".
            out += f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
        else:
            out += re.escape(char)
    return out


def cel_list(values: Iterable[str]) -> str:
    """Returns a list literal of strings."""
    return f"[{', '.join(map(cel_string, values))}]"


def join_all(expressions: Iterable[str]) -> str:
    """Returns the conjunction of conditions; `true` where there are none."""
    parts = [f"({text})" for text in expressions]
    return " && ".join(parts) or "true"


def map_or_empty(path: str) -> str:
    """Returns the map at this path of the object; an empty one where the object has none."""
    return f"(has({path}) ? {path} : {{}})"


def has_entry(path: str, key: str) -> str:
    """Returns whether the map at this path has the key; the map may be absent."""
    return f"has({path}) && {cel_string(key)} in {path}"


def selector_expression(selector: PolicyLabelSelector, path: str) -> str:
    """Returns whether a label selector selects the labels at this path of the object; they may be absent."""
    parts = [
        f"{has_entry(path, key)} && {path}[{cel_string(key)}] == {cel_string(value)}"
        for key, value in sorted((selector.match_labels or {}).items())
    ]
    for expression in selector.match_expressions:
        present = has_entry(path, expression.key)
        listed = f"{path}[{cel_string(expression.key)}] in {cel_list(expression.values)}"
        match expression.operator:
            case "In":
                parts.append(f"{present} && {listed}")
            # A missing label satisfies NotIn (labels.Requirement.Matches).
            case "NotIn":
                parts.append(f"!({present} && {listed})")
            case "Exists":
                parts.append(present)
            case "DoesNotExist":
                parts.append(f"!({present})")
    return join_all(parts)
