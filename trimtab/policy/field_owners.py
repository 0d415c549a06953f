"""Which fields of this pod will somebody apply again?

Of a pod that exists the API server lets almost no field change. So whoever applies a pod itself a second time must find
what they wrote: another value there, and their apply is refused.

- `kubectl apply` keeps what it wrote in an annotation of the pod;
- server-side apply is known by `metadata.managedFields`, field by field: an entry of operation `Apply` names what its
  manager wrote. Flux's kustomize-controller applies in no other way.

What nobody wrote may be added: neither looks at it again.
"""

import re
from typing import Any, Literal

import msgspec

from trimtab.cluster.api.meta import ApiObject
from trimtab.policy.pod_context import PodContext

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` compares with at the next time."""

Path = tuple[str, ...]
"""Keys of `fieldsV1`, one within another (apimachinery, FieldsV1: `f:` a field, `k:` an entry of a list)."""


class _WrittenSpec(msgspec.Struct):
    tolerations: list[msgspec.Raw] | None = None


class _Written(msgspec.Struct):
    """The annotation `APPLIED`: a pod as its author wrote it, as far as it is asked here."""

    spec: _WrittenSpec


class _Entry(ApiObject, frozen=True, kw_only=True):
    """An entry of `managedFields`; what it names is decoded only where it tells of an apply."""

    manager: str = ""
    operation: str = ""
    fields: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="fieldsV1")


class _Metadata(ApiObject, frozen=True, kw_only=True):
    managed_fields: tuple[_Entry, ...] = ()


class _Managed(ApiObject, frozen=True, kw_only=True):
    metadata: _Metadata = _Metadata()


_managed = msgspec.json.Decoder(_Managed)
_APPLY = b'"Apply"'


def applied_by(subject: PodContext, field: str) -> str:
    """Who will ask again for the value of this field that its author wrote; empty where nobody will.

    field: as it is named in changes. It is asked only where a value would go or a list would grow; that is when the
    managed fields are read for the first time.
    """
    if _is_client_side(subject):
        return "kubectl apply"
    tree = subject.once(_server_side)
    if tree is _NOTHING:  # nearly every pod
        return ""
    return "server-side apply" if tree is _EVERYTHING or _names(tree, path_of(field)) else ""


def grows_applied(subject: PodContext, field: Literal["tolerations", "nodeSelector"]) -> bool:
    """Would one more entry be taken away at the next apply, and that apply be refused?

    Both compare tolerations as one list, server-side apply node selectors, too, if their author wrote any.
    """
    if not _is_client_side(subject):
        return bool(applied_by(subject, field))
    if field == "nodeSelector":
        return False
    try:
        return bool(msgspec.json.decode(subject.annotations[APPLIED], type=_Written).spec.tolerations)
    except (msgspec.DecodeError, RecursionError):
        return True


def _is_client_side(subject: PodContext) -> bool:
    """A pod with an owner has the annotation from its template: only the owner is applied again."""
    return APPLIED in subject.annotations and not subject.owners


Tree = dict[str, Any]
"""`fieldsV1`: key → the tree below it."""
_EVERYTHING: Tree = {}
"""Of managed fields that make no sense: an apply of everything."""
_NOTHING: Tree = {}


def _server_side(subject: PodContext) -> Tree:
    """All fields that entries of operation `Apply` name, in one tree; none for most pods, at the cost of one look for a
    word in their bytes."""
    if _APPLY not in subject.body:
        return _NOTHING
    try:
        entries = _managed.decode(subject.body).metadata.managed_fields
        return _merged([msgspec.json.decode(entry.fields) for entry in entries if entry.operation == "Apply"])
    except (msgspec.DecodeError, RecursionError, _MakesNoSense):
        return _EVERYTHING


class _MakesNoSense(Exception):
    """No tree."""


def _merged(trees: list[Any]) -> Tree:
    found: dict[str, list[Any]] = {}
    for tree in trees:
        if not isinstance(tree, dict):
            raise _MakesNoSense
        for key, below in tree.items():
            found.setdefault(key, []).append(below)
    return {key: _merged(below) for key, below in found.items()}


def _names(tree: Tree, path: Path) -> bool:
    """Does the tree name the field, or something in it?"""
    for key in path:
        if key not in tree:
            return False
        tree = tree[key]
    return True


_CONTAINER = re.compile(r"(containers|initContainers)\[(.+)\]\.(\w+)\.(.+)")
_ENTRY = re.compile(r"(\w+)\[(.+)\]")
_NODE_AFFINITY = ("f:spec", "f:affinity", "f:nodeAffinity")
_LISTS = {
    "nodeAffinity.required": (*_NODE_AFFINITY, "f:requiredDuringSchedulingIgnoredDuringExecution"),
    "nodeAffinity.preferred": (*_NODE_AFFINITY, "f:preferredDuringSchedulingIgnoredDuringExecution"),
}


def path_of(field: str) -> Path:
    """Where managed fields name a field of ours, or what holds it: node selectors, the terms of an affinity and
    tolerations are applied as a whole (`x-kubernetes-map-type: atomic` and the like in the pod's schema)."""
    inner = _CONTAINER.fullmatch(field)
    if inner is not None:
        part, name, side, resource = inner.groups()
        key = f"k:{msgspec.json.encode({'name': name}).decode()}"
        return ("f:spec", f"f:{part}", key, "f:resources", f"f:{side}", f"f:{resource}")
    for start, path in _LISTS.items():
        if field.startswith(start):
            return path
    entry = _ENTRY.fullmatch(field)
    if entry is not None and entry[1] in ("labels", "annotations"):
        return ("f:metadata", f"f:{entry[1]}", f"f:{entry[2]}")
    return ("f:spec", f"f:{entry[1] if entry is not None else field}")
