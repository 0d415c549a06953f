"""The parts of a compiled patch.

Each part has a CEL expression that says whether it changes the pod, and one for the operations. Both depend only on the
object, so a second evaluation changes nothing. A path is patched only if it is known to exist, because the API server
applies the patch even with `failurePolicy: Ignore`, and an invalid patch would refuse the pod.

Values are scalars, lists of strings, and maps of these. A list of `Object{}` values ends the request with a panic
(kube-apiserver 1.36.3, cel-go 0.26), so it is never written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trimtab.policy.cel import cel_list, cel_string
from trimtab.policy.cel_pod import ANNOTATIONS, LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPart:
    """One change of the pod."""

    name: str
    """The field as messages name it, such as `labels[team]`."""
    test: str
    """A CEL expression on the object that is true if the change is to be made."""
    operations: str
    """A CEL expression for a list of JSON patch operations. It is only evaluated if `test` is true."""
    note: str
    """A CEL expression for the new value as text. It is only evaluated if `test` is true."""
    reads_late: bool = False
    """Whether the test reads the namespace's labels, parameters or variables, which match conditions cannot read."""
    runtime_class: str = ""
    """The RuntimeClass that the part reads as the parameter of the policy; empty if it reads none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountPatch:
    """A new request or limit of each selected container `c`."""

    side: Literal["requests", "limits"]
    resource: str
    text: str
    """A CEL expression for the new amount as text; empty if nothing is written, `REMOVE` to remove it."""
    problem_without_parameters: str
    """Why the amount cannot be compiled without the parameters of the namespace."""
    problem_in_tenant_namespace: str = ""
    """Why the amount cannot be compiled with parameters in the pod's own namespace; empty if it can."""


REMOVE = "'-'"
"""The text that stands for the removal of a limit. No quantity is written like this."""


def operation(op: str, path: str, value: str | None = None) -> str:
    """Returns a CEL expression for one JSON patch operation. `path` is a CEL expression for a string, and `value` one
    for any value."""
    given = "" if value is None else f", value: {value}"
    return f"JSONPatch{{op: {cel_string(op)}, path: {path}{given}}}"


def pointer(*steps: str) -> str:
    """Returns a CEL string literal with the JSON pointer of these steps."""
    return cel_string("".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps))


def map_literal(value: Mapping[str, Any]) -> str:
    """Returns a CEL map literal. The values may be scalars, lists of strings, and maps of these."""
    # CEL wants the values of one literal to have one type; `dyn` hides theirs.
    return "{" + ", ".join(f"{cel_string(key)}: dyn({_literal(item)})" for key, item in value.items()) + "}"


def _literal(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return cel_string(value)
        case Mapping():
            return map_literal(value)
        case _:
            return cel_list(value)


def ensure_map(path: str, *steps: str) -> str:
    """Returns a CEL expression for a list with the operation that creates the map at this path; the list is empty if
    the map exists."""
    return f"(has({path}) ? [] : [{operation('add', pointer(*steps), '{}')}])"


def prepare_parents(parts: Sequence[PatchPart]) -> str:
    """Returns CEL text for the operations that create, before all parts, the maps and lists to which several parts add
    entries."""
    # An empty map that is added a second time would remove what the first part has put into it.
    created = [ensure_map(ANNOTATIONS, "metadata", "annotations")]
    if any(part.name.startswith("labels[") for part in parts):
        created.append(ensure_map(LABELS, "metadata", "labels"))
    path = "object.spec.topologySpreadConstraints"
    tests = [f"({part.test})" for part in parts if part.name.startswith("topologySpreadConstraints[")]
    if tests:
        create = operation("add", pointer("spec", "topologySpreadConstraints"), "[]")
        created.append(f"(!has({path}) && ({' || '.join(tests)}) ? [{create}] : [])")
    return " + ".join(created)
