"""Parses YAML as Kubernetes does, first into nodes that know their lines, then into plain values.

Kubernetes reads YAML 1.1 with two exceptions: dates and numbers like 1:30 stay text (yes and no are booleans). Input
that could crash the process is rejected before it is parsed: very deep nesting, and aliases that expand to far more
than the text.
"""

import re
from typing import Any

import yaml

from trimtab.cluster.config_error import ConfigError

Path = tuple[str | int, ...]

MAX_DEPTH = 100
# Nodes that aliases may add in any document; beyond it, expansion may at most multiply a document by ten.
_MAX_EXTRA_NODES = 100_000

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INDENTATION = re.compile(r"^[ \-?]*", re.MULTILINE)


def line_beyond_max_depth(text: str) -> int | None:
    """Returns the line at which nesting exceeds `MAX_DEPTH`, or None if it does not.

    libyaml would compose deeply nested text recursively in C and crash the process, so the depth is checked first. The
    parser's events, which need no recursion, are read only if counting brackets and indentation does not decide.
    """
    # An upper bound of the nesting that costs one pass over the text: nearly all documents end here.
    indentation = max((len(spaces) for spaces in _INDENTATION.findall(text)), default=0)
    if indentation + text.count("[") + text.count("{") < MAX_DEPTH:
        return None
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                mark: Any = event.start_mark
                return int(mark.line) + 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


class YamlComposer:
    """Converts one composed document to plain values, and collects its mistakes."""

    def __init__(self, file: str, *, takes_repeated_keys: bool = False, has_anchors: bool = True) -> None:
        self.file = file
        self._has_anchors = has_anchors
        """Whether the text may have anchors; without one no alias can multiply the document."""
        self.mistakes: list[ConfigError] = []
        self.repeated: list[ConfigError] = [] if takes_repeated_keys else self.mistakes
        """Keys that appear twice in one mapping: mistakes, unless the reader accepts the last one, as kubectl does."""

    def plain_value(self, node: yaml.Node) -> Any:
        """Returns the plain value of a document, or None, with a mistake recorded, if its aliases would expand too
        far."""
        if self._has_anchors and _expands_too_far(node):
            self._add(
                node,
                "a document whose aliases do not multiply its size",
                "aliases that expand to a far larger document",
                "write the values out, or remove the aliases",
            )
            return None
        return self._value(node)

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child) for child in node.value]
        try:
            return _scalar_value(node)
        except (ValueError, KeyError):
            self._add(
                node,
                f"a value that fits its tag {node.tag.rpartition(':')[2]}",
                repr(node.value),
                "remove the tag, or correct the value",
            )
            return None

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            # Merged keys are collected apart, because the mapping's own keys take precedence wherever the merge key is
            # written.
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged |= self._merge(value_node)
                continue
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                self._add(key_node, "a plain name as the key", "a list or mapping", "write the key in quotes")
                continue
            if key in own:
                repetition = self._mistake(
                    key_node, f"the key {key!r} once", "the same key twice", "remove one of the two keys"
                )
                self.repeated.append(repetition)
            own[key] = self._value(value_node)
        # A key of the mapping itself takes precedence over a merged one (YAML 1.1 merge type).
        return {**merged, **own}

    def _merge(self, node: yaml.Node) -> dict[str, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self._value(part) for part in parts]
        # Of several merged mappings the first one takes precedence.
        return {key: value for part in reversed(values) if isinstance(part, dict) for key, value in part.items()}

    def _add(self, node: yaml.Node, expected: str, got: str, todo: str) -> None:
        self.mistakes.append(self._mistake(node, expected, got, todo))

    def _mistake(self, node: yaml.Node, expected: str, got: str, todo: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(
            file=self.file, line=mark.line + 1, column=mark.column + 1, expected=expected, got=got, todo=todo
        )


def _expands_too_far(root: yaml.Node) -> bool:
    """Returns whether expanding the aliases would make the document many times larger, or would never end."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def expanded_size(node: yaml.Node) -> int:
        cached = sizes.get(id(node))
        if cached is not None:
            return cached
        # An alias to a node that contains it: infinite.
        if id(node) in open_nodes:
            return 1 << 62
        open_nodes.add(id(node))
        children = _child_nodes(node)
        total = 1 + sum(expanded_size(child) for child in children)
        open_nodes.discard(id(node))
        sizes[id(node)] = total
        return total

    try:
        return expanded_size(root) > 10 * (len(sizes) + 1) + _MAX_EXTRA_NODES
    except RecursionError:
        return True


def _child_nodes(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


_BOOLEANS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def _scalar_value(node: yaml.Node) -> Any:
    """Returns the plain value of a scalar. Dates and values such as 1:30, which YAML 1.1 reads as timestamps or
    numbers, stay text."""
    kind = node.tag.rpartition(":")[2]
    text: str = node.value
    if kind == "null":
        return None
    if kind == "bool":
        return _BOOLEANS[text.lower()]
    if kind in ("int", "float") and ":" not in text:
        return _parse_number(kind, text.replace("_", ""))
    return text


def _parse_number(kind: str, text: str) -> Any:
    if kind == "float":
        return float({".inf": "inf", ".nan": "nan"}.get(text.lower().lstrip("+-"), text))
    digits = text.lower().lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if digits.startswith(("0x", "0b")):
        return sign * int(digits, 0)
    # Octal: `0o17` is YAML 1.2's form and `017` that of 1.1; Kubernetes' parser accepts both.
    if digits.startswith("0o") or (len(digits) > 1 and digits[0] == "0"):
        return sign * int(digits.removeprefix("0o"), 8)
    return sign * int(digits)


def child_node(node: Any, step: str | int) -> Any:
    """Returns the child node at a key or an index, or None if there is none."""
    if isinstance(node, yaml.MappingNode):
        return next((v for k, v in node.value if k.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    return None


def position_of(node: Any, path: Path) -> tuple[int, int]:
    """Returns the line and column, counted from 1, of the node at a path, or of its nearest parent that exists."""
    mark = node.start_mark
    for step in path:
        key = next((k for k, _ in node.value if k.value == step), None) if isinstance(node, yaml.MappingNode) else None
        node = child_node(node, step)
        if node is None:
            break
        mark = key.start_mark if key is not None else node.start_mark
    return mark.line + 1, mark.column + 1
