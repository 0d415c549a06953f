"""What pages say of a field: its docstring, its type and its default."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import is_dataclass
from typing import Any


def attribute_docs(cls: type) -> dict[str, str]:
    """The docstring under each field; what a class says anew goes before what it inherits."""
    docs = [own_docs(base) for base in reversed(cls.__mro__) if is_dataclass(base)]
    return {name: text for own in docs for name, text in own.items()}


def own_docs(cls: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            found[name] = " ".join(str(node.value.value).split())
    return found


def describe_type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(f"`{describe_value(value)}`" for value in schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return "whole number or text"
    if schema.get("type") == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    extra = schema.get("additionalProperties")
    return f"map to {describe_type(extra)}" if isinstance(extra, dict) else str(schema.get("type", "any"))


def describe_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
