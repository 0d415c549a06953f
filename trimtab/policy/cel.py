"""Writes expressions of CEL, the API server's expression language: literals, patterns and selectors.

The expressions are evaluated in the API server, on the pod of a request (`object`). See
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
    """Raised for a part of a policy that CEL cannot express; the text names the field and the reason."""


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
    """Returns a CEL string literal with a regular expression (RE2) that matches any of these shell patterns."""
    return cel_string(f"^({'|'.join(map(shell_regex, patterns))})$")


def shell_regex(pattern: str) -> str:
    """Returns the regular expression for a shell pattern, with the meaning that `fnmatch` gives it."""
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
    """Returns a CEL expression that is true if all of these conditions are; `true` if there are none."""
    parts = [f"({text})" for text in expressions]
    return " && ".join(parts) or "true"


def map_or_empty(path: str) -> str:
    """Returns a CEL expression for the map at this path of the object, or for an empty map if the object has none."""
    return f"(has({path}) ? {path} : {{}})"


def has_entry(path: str, key: str) -> str:
    """Returns a CEL expression that is true if the map at this path exists and has the key."""
    return f"has({path}) && {cel_string(key)} in {path}"


def selector_expression(selector: PolicyLabelSelector, path: str) -> str:
    """Returns a CEL expression that is true if the label selector selects the labels at this path of the object, which
    may have none."""
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
