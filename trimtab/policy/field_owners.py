"""Finds the fields of a pod that will be applied again.

The API server lets almost no field of an existing pod change. So a user who applies the pod itself a second time must
find the values that they wrote: if Trimtab had replaced one, the API server would refuse the second apply.

- `kubectl apply` stores what it wrote in an annotation of the pod;
- server-side apply is recorded in `metadata.managedFields`: an entry of operation `Apply` lists the fields that its
  manager wrote. Flux's kustomize-controller applies in this way only.

Fields that no client wrote may be added, because neither kind of apply compares them.
"""

import re
from typing import Any, Literal

import msgspec

from trimtab.cluster.api.meta import ApiObject
from trimtab.policy.pod_context import PodContext

# The annotation that `kubectl apply` compares with at the next apply.
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Path = tuple[str, ...]
"""Keys of `fieldsV1`, from the outermost to the innermost (apimachinery, FieldsV1: `f:` a field, `k:` an entry of a
list)."""


class _LastAppliedSpec(msgspec.Struct):
    tolerations: list[msgspec.Raw] | None = None


class _LastApplied(msgspec.Struct):
    """The content of the annotation `APPLIED`: the pod as its author wrote it, reduced to what is read here."""

    spec: _LastAppliedSpec


class _ManagedFieldsEntry(ApiObject, frozen=True, kw_only=True):
    """An entry of `managedFields`. Its fields are decoded only if its operation is `Apply`."""

    manager: str = ""
    operation: str = ""
    fields: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="fieldsV1")


class _ManagedMetadata(ApiObject, frozen=True, kw_only=True):
    managed_fields: tuple[_ManagedFieldsEntry, ...] = ()


class _ManagedPod(ApiObject, frozen=True, kw_only=True):
    metadata: _ManagedMetadata = _ManagedMetadata()


_managed_decoder = msgspec.json.Decoder(_ManagedPod)
_APPLY_WORD = b'"Apply"'


def applied_by(pod_context: PodContext, field: str) -> str:
    """Returns the manager that will apply the author's value of this field again, or an empty string if there is none.

    `field` is its name in `FieldChange`. The function is called only when a value would be replaced or a list would
    grow, so managed fields are seldom decoded.
    """
    if _is_applied_client_side(pod_context):
        return "kubectl apply"
    tree = pod_context.compute_once(_server_side_tree)
    if tree is _NOTHING:  # nearly every pod
        return ""
    return "server-side apply" if tree is _EVERYTHING or _contains_path(tree, path_of(field)) else ""


def may_be_applied(pod_context: PodContext) -> bool:
    """Returns whether any manager may apply a field of the pod again; False for nearly every pod."""
    return _is_applied_client_side(pod_context) or pod_context.compute_once(_server_side_tree) is not _NOTHING


def grows_applied(pod_context: PodContext, field: Literal["tolerations", "nodeSelector"]) -> bool:
    """Returns whether an entry that is added to this list would be removed at the next apply, so that the API server
    would refuse that apply.

    Both kinds of apply compare tolerations as one list. Server-side apply also compares node selectors as a whole, if
    their author wrote any.
    """
    if not _is_applied_client_side(pod_context):
        return bool(applied_by(pod_context, field))
    # `kubectl apply` merges maps key by key: a key that the author did not write stays.
    if field == "nodeSelector":
        return False
    try:
        return bool(msgspec.json.decode(pod_context.annotations[APPLIED], type=_LastApplied).spec.tolerations)
    except (msgspec.DecodeError, RecursionError):
        return True


def _is_applied_client_side(pod_context: PodContext) -> bool:
    """Returns whether `kubectl apply` wrote the pod itself. A pod with an owner has this annotation from its template,
    and only the owner is applied again."""
    return APPLIED in pod_context.annotations and not pod_context.owners


Tree = dict[str, Any]
"""A tree in the form of `fieldsV1`: key → the tree below it."""
# The tree of managed fields that cannot be decoded: they count as an apply of everything.
_EVERYTHING: Tree = {}
_NOTHING: Tree = {}


def names_apply(body: bytes) -> bool:
    """Returns whether these bytes of a pod may contain an entry of managed fields with operation `Apply`."""
    # From the end: CPython's `in` takes five times as long for words with common letters.
    return body.rfind(_APPLY_WORD) >= 0


def _server_side_tree(pod_context: PodContext) -> Tree:
    """Returns all fields that entries with operation `Apply` in the managed fields list, as one tree.

    Most pods have no such entry, which a search for one word in the encoded pod shows."""
    if not names_apply(pod_context.body):
        return _NOTHING
    try:
        entries = _managed_decoder.decode(pod_context.body).metadata.managed_fields
        return _merge_trees([msgspec.json.decode(entry.fields) for entry in entries if entry.operation == "Apply"])
    except (msgspec.DecodeError, RecursionError, _InvalidTree):
        return _EVERYTHING


class _InvalidTree(Exception):
    """Raised for a value that is not a tree of fields."""


def _merge_trees(trees: list[Any]) -> Tree:
    grouped: dict[str, list[Any]] = {}
    for tree in trees:
        if not isinstance(tree, dict):
            raise _InvalidTree
        for key, subtree in tree.items():
            grouped.setdefault(key, []).append(subtree)
    # Several managers may own parts of one field; a path is applied where any of them lists it.
    return {key: _merge_trees(subtrees) for key, subtrees in grouped.items()}


def _contains_path(tree: Tree, path: Path) -> bool:
    """Returns whether the tree lists the field, or something inside it."""
    for key in path:
        if key not in tree:
            return False
        tree = tree[key]
    return True


_CONTAINER_FIELD = re.compile(r"(containers|initContainers)\[(.+)\]\.(\w+)\.(.+)")
_ENTRY_FIELD = re.compile(r"(\w+)\[(.+)\]")
_NODE_AFFINITY = ("f:spec", "f:affinity", "f:nodeAffinity")
_LIST_PATHS = {
    "nodeAffinity.required": (*_NODE_AFFINITY, "f:requiredDuringSchedulingIgnoredDuringExecution"),
    "nodeAffinity.preferred": (*_NODE_AFFINITY, "f:preferredDuringSchedulingIgnoredDuringExecution"),
}


def path_of(field: str) -> Path:
    """Returns the path under which managed fields list a field, or the list that contains the field. Node selectors,
    the terms of an affinity, and tolerations are listed only as a whole (in the pod's schema, `x-kubernetes-map-type:
    atomic` and the like)."""
    inner = _CONTAINER_FIELD.fullmatch(field)
    if inner is not None:
        part, name, side, resource = inner.groups()
        key = f"k:{msgspec.json.encode({'name': name}).decode()}"
        return ("f:spec", f"f:{part}", key, "f:resources", f"f:{side}", f"f:{resource}")
    for start, path in _LIST_PATHS.items():
        if field.startswith(start):
            return path
    entry = _ENTRY_FIELD.fullmatch(field)
    if entry is not None and entry[1] in ("labels", "annotations"):
        return ("f:metadata", f"f:{entry[1]}", f"f:{entry[2]}")
    return ("f:spec", f"f:{entry[1] if entry is not None else field}")
