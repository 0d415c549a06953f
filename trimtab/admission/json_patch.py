"""Builds and applies JSON patches between two pods, and checks a patch before it is sent.

`diff_pods` builds a JSON patch (RFC 6902: add, replace, remove) from two pods. The patch names only fields that differ,
keeps the order of lists, and never repeats values of other authors. `apply_patch` is Trimtab's own implementation, for
the check of each response: the library `jsonpatch` gives the same result (a property test compares them) but is much
slower.

A patch that cannot be applied, or that leads to an invalid pod, blocks the pod even under `failurePolicy: Ignore`. So
each patch is tried before it is sent, on the pod as far as `cluster.api` decodes it; patches touch no other fields.
"""

import copy
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from trimtab.admission.apiserver import limitranger, pod_classes, resourcequota, validate_pod
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.meta import ApiObject, change
from trimtab.cluster.api.pod import Pod
from trimtab.policy.pod_context import PodBeforeAndAfter, PodContext

Operation = dict[str, Any]
"""One operation of a JSON patch: op, path, and the value if the operation has one."""


A = TypeVar("A", bound=ApiObject)
P = TypeVar("P", bound=Pod)


class CannotApply(ValueError):
    """Raised for an operation whose path does not exist or does not fit the value at that place."""


def diff_pods(before: Pod, after: Pod) -> tuple[Operation, ...]:
    """Returns the operations that turn `before` into `after`; none if the two are equal."""
    operations: list[Operation] = []
    _diff_objects("", before, after, operations)
    return tuple(operations)


def _diff_values(path: str, before: Any, after: Any, operations: list[Operation]) -> None:
    if before is not after and before != after:
        _diff_unequal(path, before, after, operations)


def _diff_unequal(path: str, before: Any, after: Any, operations: list[Operation]) -> None:
    """Appends the operations for two values that are not equal; UNSET stands for an absent value."""
    if before is UNSET:
        operations.append({"op": "add", "path": path, "value": to_plain_json(after)})
    elif after is UNSET:
        operations.append({"op": "remove", "path": path})
    elif isinstance(before, ApiObject) and isinstance(after, ApiObject):
        _diff_objects(path, before, after, operations)
    elif isinstance(before, dict) and isinstance(after, dict):
        _diff_maps(path, before, after, operations)
    elif isinstance(before, tuple) and isinstance(after, tuple):
        _diff_lists(path, before, after, operations)
    else:
        operations.append({"op": "replace", "path": path, "value": to_plain_json(after)})


def _diff_objects(path: str, before: ApiObject, after: ApiObject, operations: list[Operation]) -> None:
    """Compares two API objects field by field, and appends the operations. A field with its default value is not
    encoded, so it counts as absent."""
    old_values, new_values = astuple(before), astuple(after)
    # Nearly all fields are the identical object: `compress` skips those in C, without bytecode for each field.
    fields = zip(_fields(type(before)), old_values, new_values, strict=True)
    for (json_name, default), old, new in compress(fields, map(is_not, old_values, new_values)):
        # Objects that are not identical nearly always differ, and are compared field by field anyway.
        if isinstance(old, ApiObject) and type(old) is type(new) and old != default and new != default:
            _diff_objects(f"{path}/{json_name}", old, new, operations)
            continue
        if old == new:
            continue
        _diff_unequal(
            f"{path}/{json_name}", UNSET if old == default else old, UNSET if new == default else new, operations
        )


def to_plain_json(value: Any) -> Any:
    """Returns an API object, or a value that contains some, as plain JSON with new dicts and lists."""
    if isinstance(value, str):  # most values in a patch are strings
        return value
    plain = msgspec.to_builtins(value)
    # `to_builtins` leaves lists as tuples. Most other values are maps of amounts, which have none.
    if type(plain) is dict and set(map(type, plain.values())) <= {str}:
        return plain
    return msgspec.json.decode(msgspec.json.encode(plain))


_Field = tuple[str, Any]
"""(name in JSON as a step of a path, default). A field without a default has an object here that equals nothing."""


@lru_cache
def _fields(shape: type[ApiObject]) -> tuple[_Field, ...]:
    return tuple((_escape_key(f.encode_name), _default(f)) for f in msgspec.structs.fields(shape))


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return object() if field.default is msgspec.NODEFAULT else field.default


def _diff_maps(path: str, before: dict[str, Any], after: dict[str, Any], operations: list[Operation]) -> None:
    removed_keys = sorted(before.keys() - after.keys())
    operations += [{"op": "remove", "path": f"{path}/{_escape_key(key)}"} for key in removed_keys]
    for key in sorted(key for key, value in after.items() if before.get(key, UNSET) != value):
        _diff_unequal(f"{path}/{_escape_key(key)}", before.get(key, UNSET), after[key], operations)


def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _diff_lists(path: str, before: tuple[Any, ...], after: tuple[Any, ...], operations: list[Operation]) -> None:
    """Compares two lists, and appends the operations: entries are replaced in place, or some are removed (the last
    first) and others appended."""
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            _diff_values(f"{path}/{index}", old, new, operations)
        return
    common = _common_prefix_indices(before, after)
    removed = [index for index in range(len(before)) if index not in common]
    # RFC 6902 applies operations in order, so each removal shifts later indices: remove from the end.
    operations += [{"op": "remove", "path": f"{path}/{index}"} for index in reversed(removed)]
    operations += [{"op": "add", "path": f"{path}/-", "value": to_plain_json(value)} for value in after[len(common) :]]


def _common_prefix_indices(before: tuple[Any, ...], after: tuple[Any, ...]) -> set[int]:
    """Returns the indices in `before` of the values that are kept: in this order, they are the beginning of `after`."""
    indices: set[int] = set()
    for index, value in enumerate(before):
        if len(indices) < len(after) and after[len(indices)] == value:
            indices.add(index)
    return indices


def apply_patch(document: Any, operations: Iterable[Operation]) -> Any:
    """Returns the document after all operations; `document` itself is not changed. Raises CannotApply."""
    result = copy.deepcopy(document)
    for operation in operations:
        # A later operation may reach into the value of an earlier one.
        result = apply_operation(result, copy.deepcopy(operation))
    return result


def apply_patch_in_place(document: Any, operations: Iterable[Operation]) -> Any:
    """Applies operations to the document itself, and returns it. Use it only for operations from `diff_pods`, because
    none of them changes the value that another one has added."""
    for operation in operations:
        document = apply_operation(document, operation)
    return document


class PatchedFields(NamedTuple):
    """The fields that a patch of a pod names."""

    metadata: tuple[str, ...]
    """The attributes of the pod's metadata."""
    spec: tuple[str, ...]
    """The attributes of the pod's spec."""


def list_patched_fields(pod: Pod, operations: Iterable[Operation]) -> PatchedFields:
    """Returns the fields of this pod that the operations name. Raises CannotApply for an operation on anything else."""
    attributes = {"metadata": _attributes_by_name(type(pod.metadata)), "spec": _attributes_by_name(type(pod.spec))}
    named: dict[str, dict[str, None]] = {"metadata": {}, "spec": {}}
    for operation in operations:
        part, *fields = operation["path"].removeprefix("/").split("/", 2)
        if part not in attributes or (fields and fields[0] not in attributes[part]):
            raise CannotApply(f"{operation['path']}: the pod has no such field")
        # An operation on the whole metadata or the whole spec names all of its fields.
        attribute_names = [attributes[part][fields[0]]] if fields else attributes[part].values()
        named[part].update(dict.fromkeys(attribute_names))
    return PatchedFields(tuple(named["metadata"]), tuple(named["spec"]))


@lru_cache
def _attributes_by_name(shape: type[ApiObject]) -> dict[str, str]:
    return {field.encode_name: field.name for field in msgspec.structs.fields(shape)}


def patch_pod(pod: P, fields: PatchedFields, apply: Callable[[dict[str, Any]], object]) -> P:
    """Returns the pod as a patch changes it. `apply` applies the patch to plain JSON with these fields alone,
    in place.

    All else stays the very same object: to turn a whole pod into plain JSON and back costs several times as much, and
    so does the comparison of two whole pods. Raises CannotApply, and ValidationError if the result is not a pod.
    """
    document = {"metadata": _read_excerpt(pod.metadata, fields.metadata), "spec": _read_excerpt(pod.spec, fields.spec)}
    apply(document)
    return change(
        pod,
        metadata=_with_excerpt(pod.metadata, fields.metadata, document.get("metadata", {})),
        spec=_with_excerpt(pod.spec, fields.spec, document.get("spec", {})),
    )


def _read_excerpt(part: ApiObject, attributes: tuple[str, ...]) -> Any:
    # All fields of metadata and of a spec have defaults, which are not encoded.
    return msgspec.to_builtins(type(part)(**{name: getattr(part, name) for name in attributes}))


def _with_excerpt(part: A, attributes: tuple[str, ...], document: Any) -> A:
    if not attributes:
        return part
    patched = msgspec.convert(document, type(part))
    return change(part, **{name: getattr(patched, name) for name in attributes})


def apply_operation(document: Any, operation: Operation) -> Any:
    """Applies one operation to the document itself, and returns it. Raises CannotApply."""
    op, path = operation["op"], operation["path"]
    if op not in ("add", "replace", "remove"):
        raise CannotApply(f"{op} {path}: Trimtab supports only add, replace and remove")
    if path == "":
        if op == "remove":
            raise CannotApply("remove: a patch cannot remove the whole document")
        return operation["value"]
    steps = path.split("/")[1:]
    if "~" in path:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in steps]
    parent = document
    for step in steps[:-1]:
        parent = child_of(parent, step, path)
    if isinstance(parent, list):
        _apply_to_list(parent, steps[-1], operation)
    elif isinstance(parent, dict):
        _apply_to_map(parent, steps[-1], operation)
    else:
        raise CannotApply(f"{op} {path}: {parent!r} cannot contain a value")
    return document


def child_of(parent: Any, step: str, path: str) -> Any:
    """Returns the value at this step of a path, as a list if it is a tuple. Raises CannotApply if there is none."""
    try:
        key = _parse_index(parent, step, path, len(parent) - 1) if isinstance(parent, list) else step
        child = parent[key]
    except (KeyError, TypeError):
        raise CannotApply(f"{path}: the field {step} does not exist") from None
    # `patch_pod` passes lists of the pod as tuples: those on the way to a change become lists.
    if type(child) is tuple:
        child = parent[key] = list(child)
    return child


def _parse_index(parent: list[Any], step: str, path: str, max_index: int) -> int:
    # RFC 6901: an index has ASCII digits and no leading zero.
    if not step.isdecimal() or (step != "0" and step.startswith("0")) or not step.isascii() or int(step) > max_index:
        raise CannotApply(f"{path}: {step} is not an index of a list of {len(parent)}")
    return int(step)


def _apply_to_list(parent: list[Any], step: str, operation: Operation) -> None:
    op, path = operation["op"], operation["path"]
    if op == "add":
        index = len(parent) if step == "-" else _parse_index(parent, step, path, len(parent))
        parent.insert(index, operation["value"])
    elif op == "replace":
        parent[_parse_index(parent, step, path, len(parent) - 1)] = operation["value"]
    else:
        del parent[_parse_index(parent, step, path, len(parent) - 1)]


def _apply_to_map(parent: dict[str, Any], step: str, operation: Operation) -> None:
    op, path = operation["op"], operation["path"]
    if op != "add" and step not in parent:
        raise CannotApply(f"{op} {path}: the field {step} does not exist")
    if op == "remove":
        del parent[step]
    else:
        parent[step] = operation["value"]


def check_patch(
    pods: PodBeforeAndAfter,
    operations: tuple[Operation, ...],
    decide_again: Callable[[Pod], Pod],
    *,
    quota_may_refuse: bool = False,
) -> str | None:
    """Returns why the patch must not be sent, or None if it may be.

    `quota_may_refuse`: a policy requires an amount for which the namespace's quota has no room, and a warning says so.
    The rejection by the quota is then intended, and is not an error of the patch.

    A patch may be sent if all of these hold:

    - applied to the pod as submitted, it gives exactly the decided pod;
    - deciding the resulting pod again changes nothing;
    - the API server does not reject the pod for a reason that did not exist before the changes. This includes the pod
      that is stored if the webhook is not called a second time.
    """
    before, after = pods.before.pod, pods.after.pod
    try:
        fields = list_patched_fields(before, operations)
        patched = patch_pod(before, fields, lambda document: apply_patch_in_place(document, operations))
    except (CannotApply, msgspec.ValidationError) as error:
        return f"Trimtab's patch cannot be applied to the pod: {error}"
    if patched != after:
        return "the patched pod differs from the pod that was decided"
    redecided = decide_again(after)
    if redecided != after:
        return "a second decision about the changed pod would change it again"
    return new_rejection(pods, quota_may_refuse=quota_may_refuse)


def new_rejection(pods: PodBeforeAndAfter, *, quota_may_refuse: bool = False) -> str | None:
    """Returns why the API server would reject the changed pod although it would admit the pod without the changes; None
    if it would not."""
    rejection = _first_rejection(pods.after)
    if rejection is not None and rejection.plugin == resourcequota.PLUGIN and quota_may_refuse:
        return None
    if rejection is not None and _first_rejection(pods.before) is None:
        return f"the API server would refuse the changed pod: {rejection.message}"
    return None


_ADMISSION_STEPS = (
    limitranger.apply_limit_ranges,
    pod_classes.resolve_priority,
    pod_classes.apply_runtime_class,
    validate_pod.validate_pod,
    limitranger.check_limit_ranges,
    pod_classes.check_overhead,
    resourcequota.check_quotas,
)
"""The API server's steps after the mutating webhook that may reject the pod, in the server's order."""
_RUNTIME_CLASS_STEPS = (pod_classes.apply_runtime_class, pod_classes.check_overhead)


def _first_rejection(pod_context: PodContext) -> PodRejected | None:
    """Returns the first rejection of the pod by the API server's steps after the webhook, or None. The steps also fill
    in fields (such as the overhead of a class), as the server's do."""
    pod = pod_context.pod
    for step in _ADMISSION_STEPS:
        if step in _RUNTIME_CLASS_STEPS and pod_context.settings.overhead != "server":
            continue
        result = step(pod, pod_context.facts, pod_context.namespace)
        if isinstance(result, PodRejected):
            return result
        pod = result
    return None
