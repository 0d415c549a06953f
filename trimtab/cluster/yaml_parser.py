"""How does Kubernetes read this YAML? Text → nodes that know their lines → plain values.

YAML 1.1 as Kubernetes has it: yes and no are booleans, dates and 1:30 stay text. What could take the process down is
refused before it is tried: nesting without end, aliases that expand to far more than was written.
"""

import re
from typing import Any

import yaml

from trimtab.cluster.config_error import ConfigError

Path = tuple[str | int, ...]

MOST_DEPTH = 100
_SPARE = 100_000
"""Nodes an alias may add for free; beyond it, expansion may at most multiply a document by ten."""

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INDENTATION = re.compile(r"^[ \-?]*", re.MULTILINE)


def too_deep(text: str) -> int | None:
    """The line where nesting passes what we read; None where it never does.

    libyaml composes recursively in C and would take the process down with it, so this is asked first. The event
    stream is flat; it is only walked where brackets and indentation leave the question open.
    """
    indentation = max((len(found) for found in _INDENTATION.findall(text)), default=0)
    if indentation + text.count("[") + text.count("{") < MOST_DEPTH:
        return None
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                mark: Any = event.start_mark
                return int(mark.line) + 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


class YamlComposer:
    """One composed document → plain values, its mistakes beside it."""

    def __init__(self, file: str, *, takes_repeated_keys: bool = False) -> None:
        self.file = file
        self.mistakes: list[ConfigError] = []
        self.repeated: list[ConfigError] = [] if takes_repeated_keys else self.mistakes
        """Keys that stand twice in one mapping: mistakes, unless the last one is taken, as kubectl takes it."""

    def document(self, node: yaml.Node) -> Any:
        if _is_bomb(node):
            self._add(
                node,
                "a document of its own size",
                "aliases that expand to far more",
                "write it out, or drop the aliases",
            )
            return None
        return self._value(node)

    def _value(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child) for child in node.value]
        try:
            return _scalar(node)
        except (ValueError, KeyError):
            self._add(
                node,
                f"a value of its tag {node.tag.rpartition(':')[2]}",
                repr(node.value),
                "drop the tag or mend the value",
            )
            return None

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged |= self._merge(value_node)
                continue
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                self._add(key_node, "a plain name as key", "a list or mapping", "quote it")
                continue
            if key in own:
                twice = self._mistake(key_node, f"the key {key!r} once", "it twice", "remove one of them")
                self.repeated.append(twice)
            own[key] = self._value(value_node)
        return {**merged, **own}

    def _merge(self, node: yaml.Node) -> dict[str, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        values = [self._value(part) for part in parts]
        return {key: value for part in reversed(values) if isinstance(part, dict) for key, value in part.items()}

    def _add(self, node: yaml.Node, expected: str, got: str, todo: str) -> None:
        self.mistakes.append(self._mistake(node, expected, got, todo))

    def _mistake(self, node: yaml.Node, expected: str, got: str, todo: str) -> ConfigError:
        mark = node.start_mark
        return ConfigError(
            file=self.file, line=mark.line + 1, column=mark.column + 1, expected=expected, got=got, todo=todo
        )


def _is_bomb(root: yaml.Node) -> bool:
    """Would expanding the aliases multiply the document (or never end)?"""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            return 1 << 62
        open_nodes.add(id(node))
        children = _children(node)
        total = 1 + sum(size(child) for child in children)
        open_nodes.discard(id(node))
        sizes[id(node)] = total
        return total

    try:
        return size(root) > 10 * (len(sizes) + 1) + _SPARE
    except RecursionError:
        return True


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


_BOOLEANS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def _scalar(node: yaml.Node) -> Any:
    """By YAML 1.1's tags, but what only YAML 1.1 thinks is a number (1:30, dates) stays text."""
    kind = node.tag.rpartition(":")[2]
    text: str = node.value
    if kind == "null":
        return None
    if kind == "bool":
        return _BOOLEANS[text.lower()]
    if kind in ("int", "float") and ":" not in text:
        return _number(kind, text.replace("_", ""))
    return text


def _number(kind: str, text: str) -> Any:
    if kind == "float":
        return float({".inf": "inf", ".nan": "nan"}.get(text.lower().lstrip("+-"), text))
    digits = text.lower().lstrip("+-")
    sign = -1 if text.startswith("-") else 1
    if digits.startswith(("0x", "0b")):
        return sign * int(digits, 0)
    if digits.startswith("0o") or (len(digits) > 1 and digits[0] == "0"):
        return sign * int(digits.removeprefix("0o"), 8)
    return sign * int(digits)


def child(node: Any, step: str | int) -> Any:
    if isinstance(node, yaml.MappingNode):
        return next((v for k, v in node.value if k.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    return None


def mark_of(node: Any, path: Path) -> tuple[int, int]:
    mark = node.start_mark
    for step in path:
        key = next((k for k, _ in node.value if k.value == step), None) if isinstance(node, yaml.MappingNode) else None
        node = child(node, step)
        if node is None:
            break
        mark = key.start_mark if key is not None else node.start_mark
    return mark.line + 1, mark.column + 1
