"""The reference page of DrainOrder, from its CustomResourceDefinition."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trimtab.compaction.order.order_definition import build_drain_order_crd

Schema = dict[str, Any]
_HEAD = """\
# DrainOrder

A DrainOrder lets the compactor drain nodes for a user
([how](../how-to/drain-nodes.md#by-an-order-in-the-cluster)). It is an object of Trimtab's namespace; the compactor
reads no other namespace. `kubectl explain drainorder.spec` shows the same.

## `spec`

The spec cannot be changed.

"""
_STATUS = """
## `status`

Only the compactor writes the status. Its size has a bound, whatever the order has: lists have at most the named number
of entries.

"""
_COLUMNS = """
## What `kubectl get drainorders` shows

"""


def spec_fields() -> Iterator[tuple[str, str, str]]:
    """Yields the path of each field of the spec, its type, and its meaning."""
    [version] = build_drain_order_crd()["spec"]["versions"]
    for path, field in _fields(version["schema"]["openAPIV3Schema"]["properties"]["spec"]):
        yield path, _type(field), field["description"]


def page() -> str:
    """Returns the page."""
    [version] = build_drain_order_crd()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    spec, status, columns = schema["spec"], schema["status"], version["additionalPrinterColumns"]
    return (
        _HEAD
        + "".join(_describe_field(*field, required=spec["required"]) for field in _fields(spec))
        + _STATUS
        + "".join(f"- `{path}`: {field['description']}\n" for path, field in _fields(status))
        + _COLUMNS
        + f"{_list_columns(columns, wide=False)}; with `-o wide` also {_list_columns(columns, wide=True)}.\n"
    )


def _list_columns(columns: Iterable[Schema], *, wide: bool) -> str:
    return ", ".join(f"`{column['name']}`" for column in columns if bool(column["priority"]) is wide)


def _describe_field(path: str, field: Schema, *, required: Sequence[str]) -> str:
    about = ", ".join(filter(None, [_type(field), _default(field, is_required=path in required)]))
    return f"- `{path}` ({about}): {field['description']}\n"


def _fields(schema: Schema, above: str = "") -> Iterator[tuple[str, Schema]]:
    for name, field in schema["properties"].items():
        path = f"{above}{name}"
        yield path, field
        if field["type"] == "array" and field["items"]["type"] == "object":
            yield from _fields(field["items"], f"{path}[].")


def _type(field: Schema) -> str:
    """Returns the type with its bounds; of a text only that it is one, because its bound is far away."""
    if field["type"] == "array":
        items = field["items"]
        words = " or ".join(f"`{word}`" for word in items.get("enum", ())) or items["type"]
        return f"list of {words}, at most {field['maxItems']}"
    bounds = [f"{word} {field[key]}" for word, key in (("at least", "minimum"), ("at most", "maximum")) if key in field]
    return ", ".join([str(field.get("format", field["type"])), *bounds])


def _default(field: Schema, *, is_required: bool) -> str:
    if is_required:
        return "required"
    default = field.get("default")
    return "" if default is None else f"default `{str(default).lower() if isinstance(default, bool) else default}`"
