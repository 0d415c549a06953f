"""Writes expressions of CEL, the API server's expression language: literals, patterns and selectors.

The expressions are evaluated in the API server, on the pod of a request (`object`). See
https://kubernetes.io/docs/reference/using-api/cel/.
"""

import json
from collections.abc import Iterable
from typing import Any

from trimtab.policy.conditions import PolicyLabelSelector
from trimtab.policy.image_names import DEFAULT_PORT, DOCKER_HUB, DOCKER_HUB_ALIASES, image_regex
from trimtab.policy.shell_regex import shell_regex

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
    """Returns a string literal of CEL: a JSON string, but with characters as they are. JSON writes a character above
    U+FFFF as two halves, which CEL refuses."""
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def cel_regex(patterns: tuple[str, ...]) -> str:
    """Returns a CEL string literal with a regular expression (RE2) that matches any of these shell patterns."""
    return cel_string(f"^({'|'.join(map(shell_regex, patterns))})$")


def image_matches(patterns: tuple[str, ...]) -> str:
    """Returns a CEL expression that is true if the canonical name of the image of the container `c` matches a pattern,
    as `image_names.image_test` does.

    The expression goes through lists of one element, because CEL has no variables within an expression: the image, then
    step by step its canonical name.
    """
    # The same test as in distribution/reference: a first part with a dot, a port or upper case is a registry.
    has_registry = f"i.matches({cel_string('^([^/]*[.:A-Z][^/]*|localhost)/')})"
    registry = (
        f"[i.substring(0, i.indexOf('/')).lowerAscii()].map(r, r.matches({cel_string(DEFAULT_PORT)}) ? "
        "r.substring(0, r.lastIndexOf(':')) : r)[0] + '/'"
    )
    hub = f"{DOCKER_HUB}/"
    usual_hub = "n"
    for alias in DOCKER_HUB_ALIASES:
        usual_hub = f"n.startsWith('{alias}/') ? '{hub}' + n.substring({len(alias) + 1}) : {usual_hub}"
    is_official = f"n.startsWith('{hub}') && n.indexOf('/', {len(hub)}) < 0"
    return (
        "[(has(c.image) ? c.image : '')]"
        f".map(i, {has_registry} ? {registry} + i.substring(i.indexOf('/') + 1) : '{hub}' + i)"
        f".map(n, {usual_hub}).map(n, {is_official} ? '{hub}library/' + n.substring({len(hub)}) : n)"
        f".exists(n, n.matches({cel_string(image_regex(patterns))}))"
    )


def cel_list(values: Iterable[str]) -> str:
    """Returns a list literal of strings."""
    return f"[{', '.join(map(cel_string, values))}]"


def join_all(expressions: Iterable[str]) -> str:
    """Returns a CEL expression that is true if all of these conditions are; `true` if there are none."""
    parts = [f"({text})" for text in expressions]
    return " && ".join(parts) or "true"


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
