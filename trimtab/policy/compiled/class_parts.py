"""Compiles the actions on a pod's RuntimeClass and overhead to CEL. The RuntimeClass itself is the parameter of the
policy.

If the class does not exist, the policy is not evaluated at all (`parameterNotFoundAction: Allow`), so no pod is
refused. The API server itself adds the overhead, node selector and tolerations of the class afterwards.
"""

from collections.abc import Iterator

from trimtab.policy.actions.overhead import OverheadAction
from trimtab.policy.actions.runtime_class import RuntimeClassChoice
from trimtab.policy.cel import NotExpressible, cel_string, join_all
from trimtab.policy.compiled.match_conditions import IS_DAEMON
from trimtab.policy.compiled.patch_parts import IS_APPLIED, PatchPart, operation, pointer
from trimtab.policy.compiled.windows_parts import HAS_REQUIRED_TERMS, IS_WINDOWS, REQUIRED_TERMS

_CLASS, _SELECTOR = "object.spec.runtimeClassName", "object.spec.nodeSelector"
_NEEDED = "(has(params.scheduling) && has(params.scheduling.nodeSelector) ? params.scheduling.nodeSelector : {})"


def runtime_class_parts(settings: RuntimeClassChoice, *, names_daemons: bool) -> Iterator[PatchPart]:
    """Yields the change that sets the RuntimeClass."""
    name = cel_string(settings.name)
    named = f"has({_CLASS}) && {_CLASS} != ''"
    tests = [f"!({named})"]
    if settings.override:
        tests = [f"!({named}) || ({_CLASS} != {name} && !{IS_APPLIED})"]
    if not settings.required:
        tests += [f"!{IS_WINDOWS}", "!has(object.spec.nodeName) || object.spec.nodeName == ''"]
        if not names_daemons:
            tests.append(f"!({IS_DAEMON}) || {_NEEDED}.size() == 0")
    tests += list(_fits_the_class())
    # An apply of the pod itself compares tolerations and node selectors as a whole, and the class adds to both.
    tests.append(f"!{IS_APPLIED} || !has(params.scheduling)")
    remove = operation("remove", pointer("spec", "overhead"))
    yield PatchPart(
        name="runtimeClassName",
        test=join_all(tests),
        reads_late=True,
        operations=f"[{operation('add', pointer('spec', 'runtimeClassName'), name)}] + "
        f"(has(object.spec.overhead) ? [{remove}] : [])",
        note=cel_string(f"runtimeClassName={settings.name}"),
    )


def _fits_the_class() -> Iterator[str]:
    """Yields the conditions under which a node can satisfy both the class and the pod.

    Their node selectors must not contradict each other, and at least one required term of the pod must not contradict
    the class."""
    yield f"!has({_SELECTOR}) || {_NEEDED}.all(k, !(k in {_SELECTOR}) || {_SELECTOR}[k] == {_NEEDED}[k])"
    value = f"{_NEEDED}[e.key]"
    conflict = (
        f"e.key in {_NEEDED} && (e.operator == 'DoesNotExist' || (e.operator == 'In' && !({value} in e.values)) || "
        f"(e.operator == 'NotIn' && {value} in e.values))"
    )
    impossible = f"has(t.matchExpressions) && t.matchExpressions.exists(e, {conflict})"
    yield f"!{HAS_REQUIRED_TERMS} || {REQUIRED_TERMS}.exists(t, !({impossible}))"


def overhead_parts(settings: OverheadAction) -> Iterator[PatchPart]:
    """Yields the change that removes overhead from a pod without a RuntimeClass. Raises NotExpressible for `deny`."""
    if settings.stray == "deny":
        raise NotExpressible("spec.actions.overhead.stray: a mutating policy cannot deny a pod")
    if settings.stray == "strip":
        yield PatchPart(
            name="overhead",
            test=join_all(
                [
                    "has(object.spec.overhead)",
                    f"!has({_CLASS}) || {_CLASS} == ''",
                    *([] if settings.required else [f"!{IS_WINDOWS}"]),
                ]
            ),
            operations=f"[{operation('remove', pointer('spec', 'overhead'))}]",
            note="'overhead=removed'",
        )
