"""How does this pod become that one?

`diff` makes the JSON patch (RFC 6902: add, replace, remove) from two pods as values; it only speaks of fields that
differ, keeps the order of lists, and never writes out again what somebody else wrote. `apply` is our own applier,
for the check before each answer: `jsonpatch` gives the same (held by a property test) at far more cost.

Is this patch safe to send?

A patch that does not apply, or leaves an invalid pod, blocks the pod even under `failurePolicy: Ignore`. So each one
is tried before it goes out, on the pod as far as we read it: what our shapes do not name no patch of ours touches.
"""

import copy
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from trimtab.admission.apiserver import limitranger, priority, resourcequota, runtimeclass, validate_pod
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.api.pod import Pod
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings

Operation = dict[str, Any]
"""One operation: op, path, and value where the operation has one."""


class CannotApply(ValueError):
    """An operation whose path is not there, or does not fit what is."""


def diff(before: Pod, after: Pod) -> tuple[Operation, ...]:
    """The operations that make `after` of `before`; none when they are equal."""
    operations: list[Operation] = []
    _shapes("", before, after, operations)
    return tuple(operations)


def _values(path: str, before: Any, after: Any, found: list[Operation]) -> None:
    if before is not after and before != after:
        _differences(path, before, after, found)


def _differences(path: str, before: Any, after: Any, found: list[Operation]) -> None:
    """The operations for two values that are not the same; one may be absent (UNSET)."""
    if before is UNSET:
        found.append({"op": "add", "path": path, "value": plain(after)})
    elif after is UNSET:
        found.append({"op": "remove", "path": path})
    elif isinstance(before, ApiObject) and isinstance(after, ApiObject):
        _shapes(path, before, after, found)
    elif isinstance(before, dict) and isinstance(after, dict):
        _mappings(path, before, after, found)
    elif isinstance(before, tuple) and isinstance(after, tuple):
        _lists(path, before, after, found)
    else:
        found.append({"op": "replace", "path": path, "value": plain(after)})


def _shapes(path: str, before: ApiObject, after: ApiObject, found: list[Operation]) -> None:
    """Field by field; a value that is a field's default is not written out, and so counts as absent."""
    was, will = astuple(before), astuple(after)
    # Nearly all fields are the very same object; those are passed over without a step of the interpreter for each.
    fields = zip(_fields(type(before)), was, will, strict=True)
    for (written, default), a, b in compress(fields, map(is_not, was, will)):
        if a == b:
            continue
        _differences(f"{path}/{written}", UNSET if a == default else a, UNSET if b == default else b, found)


def plain(value: Any) -> Any:
    """A shape, or anything of shapes, as JSON has it: dicts and lists of its own."""
    if isinstance(value, str):  # most of what a patch says
        return value
    return msgspec.json.decode(msgspec.json.encode(value))


_Field = tuple[str, Any]
"""Name in JSON, default; a field without a default has one that equals nothing."""


@lru_cache
def _fields(shape: type[ApiObject]) -> tuple[_Field, ...]:
    return tuple((f.encode_name, _default(f)) for f in msgspec.structs.fields(shape))


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return object() if field.default is msgspec.NODEFAULT else field.default


def _mappings(path: str, before: dict[str, Any], after: dict[str, Any], found: list[Operation]) -> None:
    gone = sorted(before.keys() - after.keys())
    found += [{"op": "remove", "path": f"{path}/{_escaped(key)}"} for key in gone]
    for key in sorted(key for key, value in after.items() if before.get(key, UNSET) != value):
        _differences(f"{path}/{_escaped(key)}", before.get(key, UNSET), after[key], found)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _lists(path: str, before: tuple[Any, ...], after: tuple[Any, ...], found: list[Operation]) -> None:
    """Entries changed in place, or some removed (last first) and others appended."""
    if len(before) == len(after):
        for index, (a, b) in enumerate(zip(before, after, strict=True)):
            _values(f"{path}/{index}", a, b, found)
        return
    kept = _common(before, after)
    gone = [index for index in range(len(before)) if index not in kept]
    found += [{"op": "remove", "path": f"{path}/{index}"} for index in reversed(gone)]
    found += [{"op": "add", "path": f"{path}/-", "value": plain(value)} for value in after[len(kept) :]]


def _common(before: tuple[Any, ...], after: tuple[Any, ...]) -> set[int]:
    """Indices of `before` that make up the beginning of `after`, in order."""
    kept: set[int] = set()
    for index, value in enumerate(before):
        if len(kept) < len(after) and after[len(kept)] == value:
            kept.add(index)
    return kept


def apply(document: Any, operations: Iterable[Operation]) -> Any:
    """The document after all operations; the one given stays as it was. Raises CannotApply."""
    result = copy.deepcopy(document)
    for operation in operations:
        # A later operation may reach into the value of an earlier one.
        result = _applied(result, copy.deepcopy(operation))
    return result


def apply_in_place(document: Any, operations: Iterable[Operation]) -> Any:
    """Like `apply`, for a document and operations of `diff`, which never reach into each other's values."""
    for operation in operations:
        document = _applied(document, operation)
    return document


def _applied(document: Any, operation: Operation) -> Any:
    op, path = operation["op"], operation["path"]
    if op not in ("add", "replace", "remove"):
        raise CannotApply(f"{op} {path}: only add, replace and remove are ours")
    if path == "":
        if op == "remove":
            raise CannotApply("remove: the whole document cannot go")
        return operation["value"]
    steps = path.split("/")[1:]
    if "~" in path:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in steps]
    parent = document
    for step in steps[:-1]:
        parent = _inside(parent, step, path)
    if isinstance(parent, list):
        _in_list(parent, steps[-1], operation)
    elif isinstance(parent, dict):
        _in_mapping(parent, steps[-1], operation)
    else:
        raise CannotApply(f"{op} {path}: nothing can be inside {parent!r}")
    return document


def _inside(parent: Any, step: str, path: str) -> Any:
    try:
        return parent[_index(parent, step, path, len(parent) - 1)] if isinstance(parent, list) else parent[step]
    except (KeyError, TypeError):
        raise CannotApply(f"{path}: there is no {step}") from None


def _index(parent: list[Any], step: str, path: str, most: int) -> int:
    if not step.isdecimal() or (step != "0" and step.startswith("0")) or not step.isascii() or int(step) > most:
        raise CannotApply(f"{path}: {step} is no index of a list of {len(parent)}")
    return int(step)


def _in_list(parent: list[Any], step: str, operation: Operation) -> None:
    op, path = operation["op"], operation["path"]
    if op == "add":
        index = len(parent) if step == "-" else _index(parent, step, path, len(parent))
        parent.insert(index, operation["value"])
    elif op == "replace":
        parent[_index(parent, step, path, len(parent) - 1)] = operation["value"]
    else:
        del parent[_index(parent, step, path, len(parent) - 1)]


def _in_mapping(parent: dict[str, Any], step: str, operation: Operation) -> None:
    op, path = operation["op"], operation["path"]
    if op != "add" and step not in parent:
        raise CannotApply(f"{op} {path}: there is no {step}")
    if op == "remove":
        del parent[step]
    else:
        parent[step] = operation["value"]


def problem(
    before: Pod,
    after: Pod,
    operations: tuple[Operation, ...],
    decide_again: Callable[[Pod], Pod],
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings = DEFAULT_TERMS,
    *,
    quota_may_refuse: bool = False,
) -> str | None:
    """Why the patch must not be sent; None: it is sound.

    quota_may_refuse: a policy requires what the namespace's quota has no room for, and a warning says so. Then the
    quota's own refusal is the answer that its owner wants, and no fault of the patch.

    - applied to the pod that came, it gives exactly the pod that was decided;
    - deciding again on that pod changes nothing;
    - what the API server would refuse it for, it would have refused before us too: also in the pod as it will be
      stored if our second call never comes.
    """
    try:
        applied = msgspec.convert(apply_in_place(plain(before), operations), type(before))
    except (CannotApply, msgspec.ValidationError) as error:
        return f"the patch does not apply: {error}"
    if applied != after:
        return "the patch does not give the pod that was decided"
    again = decide_again(after)
    if again != after:
        return "deciding again would change the pod once more"
    return refused_for_it(before, after, facts, namespace, terms, quota_may_refuse=quota_may_refuse)


def refused_for_it(
    before: Pod,
    after: Pod,
    facts: ClusterFacts,
    namespace: str,
    terms: AdmissionSettings,
    *,
    quota_may_refuse: bool = False,
) -> str | None:
    """What the API server would refuse the pod for, and would not have without us; None: nothing."""
    refusal = _refusal(after, facts, namespace, terms)
    if refusal is not None and refusal.plugin == resourcequota.PLUGIN and quota_may_refuse:
        return None
    if refusal is not None and _refusal(before, facts, namespace, terms) is None:
        return f"the API server would refuse it: {refusal.message}"
    return None


_STEPS = (
    limitranger.admit, priority.admit, runtimeclass.admit,
    validate_pod.validate, limitranger.validate, runtimeclass.validate, resourcequota.validate,
)  # fmt: skip
"""What the API server does after us and may refuse the pod in, in its order."""
_OF_CLASSES = (runtimeclass.admit, runtimeclass.validate)


def _refusal(pod: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings) -> PodRejected | None:
    """What the server's own steps after us say of the pod: what they fill in counts, too (a class's overhead)."""
    for step in _STEPS:
        if step in _OF_CLASSES and terms.overhead != "server":
            continue
        found = step(pod, facts, namespace)
        if isinstance(found, PodRejected):
            return found
        pod = found
    return None
