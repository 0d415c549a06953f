"""A hole in a manifest: a string that becomes Go template text where the manifest is written as YAML."""

import re
from typing import Any

import yaml


def text(expression: str) -> str:
    """A string; also as a part of one."""
    return f"«{expression}»"


def number(expression: str) -> Any:
    """A number or a boolean: without quotes."""
    return f"«#{expression}»"


def block(expression: str) -> Any:
    """A map or a list, whole."""
    return f"«block {expression}»"


def maybe(expression: str) -> Any:
    """As the value of a key: key and value are there when the value is not empty."""
    return f"«maybe {expression}»"


def each_variable(expression: str) -> Any:
    """As an element of an environment: a variable for every entry of a map."""
    return f"«each {expression}»"


def items(expression: str) -> Any:
    """As an element of a list: all elements of another list."""
    return f"«items {expression}»"


def template(manifest: Any) -> str:
    """A manifest as a template's text."""
    return filled(yaml.dump(manifest, Dumper=Plain, sort_keys=False, allow_unicode=True, width=10**6))


def filled(dumped: str) -> str:
    for pattern, replacement in _RULES:
        dumped = pattern.sub(replacement, dumped)
    return dumped


class Plain(yaml.SafeDumper):
    """Without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _block(found: re.Match[str]) -> str:
    depth, key, expression = len(found["depth"]), found["key"], found["expression"]
    return f"{found['depth']}{key}: {{{{- toYaml {expression} | nindent {depth + 2} }}}}"


def _maybe(found: re.Match[str]) -> str:
    depth, key, expression = found["depth"], found["key"], found["expression"]
    inner = f"{depth}{key}: {{{{- toYaml . | nindent {len(depth) + 2} }}}}"
    return f"{depth}{{{{- with {expression} }}}}\n{inner}\n{depth}{{{{- end }}}}"


def _each(found: re.Match[str]) -> str:
    depth = found["depth"]
    return "\n".join(
        (
            f"{depth}{{{{- range $name, $value := {found['expression']} }}}}",
            f"{depth}- name: {{{{ $name }}}}",
            f"{depth}  value: {{{{ $value | quote }}}}",
            f"{depth}{{{{- end }}}}",
        )
    )


def _items(found: re.Match[str]) -> str:
    depth, expression = found["depth"], found["expression"]
    return (
        f"{depth}{{{{- with {expression} }}}}\n{depth}{{{{- toYaml . | nindent {len(depth)} }}}}\n{depth}{{{{- end }}}}"
    )


_RULES: list[tuple[re.Pattern[str], Any]] = [
    (re.compile(r"^(?P<depth> *)(?P<key>\w+): '?«block (?P<expression>[^»]+)»'?$", re.MULTILINE), _block),
    (re.compile(r"^(?P<depth> *)(?P<key>\w+): '?«maybe (?P<expression>[^»]+)»'?$", re.MULTILINE), _maybe),
    (re.compile(r"^(?P<depth> *)- '?«each (?P<expression>[^»]+)»'?$", re.MULTILINE), _each),
    (re.compile(r"^(?P<depth> *)- '?«items (?P<expression>[^»]+)»'?$", re.MULTILINE), _items),
    (re.compile(r"'?«#([^»]+)»'?"), r"{{ \1 }}"),
    (re.compile(r"(?<=: )'?«([^»]+)»'?$", re.MULTILINE), r"{{ \1 | quote }}"),
    (re.compile(r"(?<=- )'?«([^»]+)»'?$", re.MULTILINE), r"{{ \1 | quote }}"),
    (re.compile(r"«([^»]+)»"), r"{{ \1 }}"),
]
"""In this order: the last ones take any hole that is left."""
