"""Applies the patch of one pod to similar pods, which differ from it in metadata, images and names of volumes.

The operations are prepared once. Those on the spec are not applied to a pod whose values are the same as those of the
first pod, because they were tested on that one: the same operations turn the same values into the same values.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from trimtab.admission.json_patch import (
    CannotApply,
    Operation,
    PatchedFields,
    apply_operation,
    child_of,
    list_patched_fields,
    patch_pod,
)
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.policy.changed_annotation import ANNOTATION


class _PreparedOperation(NamedTuple):
    """An operation of `diff_pods` with the steps of its path as they lead through one document: indices of lists as
    numbers."""

    op: str
    steps: tuple[str | int, ...]
    last: str | int
    value: Any


def _prepare_operations(document: Any, operations: Iterable[Operation]) -> tuple[_PreparedOperation, ...]:
    """Returns the operations, prepared for documents of the same form as this one, to which they are applied meanwhile.
    Raises CannotApply, as `apply_operation` does."""
    prepared = []
    for operation in operations:
        *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        parent, path = document, list[str | int]()
        for step in steps:
            path.append(int(step) if isinstance(parent, list) else step)
            parent = child_of(parent, step, operation["path"])
        is_index = isinstance(parent, list) and last != "-"
        document = apply_operation(document, operation)
        prepared.append(
            _PreparedOperation(
                operation["op"], tuple(path), int(last) if is_index else last, operation.get("value", UNSET)
            )
        )
    return tuple(prepared)


def _apply_prepared(document: Any, operations: Iterable[_PreparedOperation]) -> Any:
    """Applies the operations to the document itself, and returns it. Raises CannotApply if they were prepared for
    documents of another form."""
    try:
        for op, steps, last, value in operations:
            parent = document
            for step in steps:
                child = parent[step]
                if type(child) is tuple:
                    child = parent[step] = list(child)
                parent = child
            if type(parent) is list and op == "add":
                index = len(parent) if last == "-" else int(last)
                if index > len(parent):
                    raise CannotApply(f"{index} is not an index of a list of {len(parent)}")
                parent.insert(index, value)
            elif op == "add":
                parent[last] = value
            elif op == "replace":
                parent[last]
                parent[last] = value
            else:
                del parent[last]
    except (LookupError, TypeError, ValueError) as error:
        raise CannotApply(f"{type(error).__name__}: {error}") from None
    return document


_TEXT = "\0trimtab.dev/changed\0"
"""Stands in the place of the annotation's text. A pod that contains it is decided by itself."""
ENCODED_TEXT = msgspec.json.encode(_TEXT)


class TemplatePatch(msgspec.Struct, frozen=True, eq=False, gc=False):
    """The patch of one pod, prepared for similar pods."""

    operations: tuple[_PreparedOperation, ...]
    """The operations, with `_TEXT` in the place of the text of the annotation. Those on metadata are first."""
    marking: int
    """The index of the operation that writes the annotation."""
    metadata_count: int
    """The number of operations on metadata."""
    fields: PatchedFields
    before: PodSpec
    """The spec of the first pod as submitted."""
    after: PodSpec
    """The spec of the first pod as decided."""

    def apply(self, pod: Pod, text: str) -> Pod:
        """Returns the pod after the patch, with this text of the annotation. Raises CannotApply, and ValidationError if
        the result is not a pod."""
        operations, fields = list(self.operations), self.fields
        op, steps, last, value = operations[self.marking]
        own_value = {**value, ANNOTATION: text} if isinstance(value, dict) else text
        operations[self.marking] = _PreparedOperation(op, steps, last, own_value)
        for name in fields.spec:
            if getattr(pod.spec, name) != getattr(self.before, name):
                return patch_pod(pod, fields, partial(_apply_prepared, operations=operations))
        fields = PatchedFields(fields.metadata, ())
        patched = patch_pod(pod, fields, partial(_apply_prepared, operations=operations[: self.metadata_count]))
        return change(patched, spec=change(pod.spec, **{name: getattr(self.after, name) for name in self.fields.spec}))


def prepare_patch(before: Pod, after: Pod, operations: Iterable[Operation]) -> TemplatePatch | None:
    """Returns the patch that turns `before` into `after`, with `_TEXT` in the place of the annotation's text. None if
    similar pods cannot get it. Raises CannotApply."""
    fields = list_patched_fields(before, operations)
    prepared = _prepare_operations(msgspec.to_builtins(before), operations)
    if patch_pod(before, fields, partial(_apply_prepared, operations=prepared)).spec != after.spec:
        return None
    # No operation on metadata has to do with one on the spec: their order means nothing.
    prepared = tuple(sorted(prepared, key=_is_on_spec))
    writing = [index for index, operation in enumerate(prepared) if _writes_annotation(operation)]
    if len(writing) != 1:
        return None
    count = len(prepared) - sum(map(_is_on_spec, prepared))
    return TemplatePatch(prepared, writing[0], count, fields, before.spec, after.spec)


def _is_on_spec(operation: _PreparedOperation) -> bool:
    return (*operation.steps, operation.last)[0] == "spec"


def _writes_annotation(operation: _PreparedOperation) -> bool:
    value = operation.value
    return bool(value == _TEXT or (isinstance(value, dict) and value.get(ANNOTATION) == _TEXT))
