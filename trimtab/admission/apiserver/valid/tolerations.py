"""May a pod tolerate it this way?"""

from collections.abc import Iterator

from trimtab.admission.apiserver.valid.names import invalid, key_complaints, unsupported, value_complaints
from trimtab.cluster.api.meta import UnsetType
from trimtab.cluster.api.pod import Toleration

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def complaints(tolerations: tuple[Toleration, ...]) -> Iterator[str]:
    """`ValidateTolerations`: key, seconds, operator with value, effect."""
    for place, toleration in enumerate(tolerations):
        field = f"spec.tolerations[{place}]"
        yield from _key(field, toleration)
        yield from _operator(field, toleration)
        if toleration.effect and toleration.effect not in _EFFECTS:
            yield unsupported(f"{field}.effect", toleration.effect, _EFFECTS)


def _key(field: str, toleration: Toleration) -> Iterator[str]:
    if toleration.key:
        yield from key_complaints(f"{field}.key", toleration.key)
    elif toleration.operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{field}.operator", toleration.operator, why)
    if not isinstance(toleration.toleration_seconds, UnsetType) and toleration.effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{field}.effect", toleration.effect, why)


def _operator(field: str, toleration: Toleration) -> Iterator[str]:
    """Lt and Gt exist behind a feature gate that is off in 1.36 (TaintTolerationComparisonOperators)."""
    field = f"{field}.operator"
    match toleration.operator:
        case "" | "Equal":
            why = ";".join(value_complaints(toleration.value))
            if why:
                yield invalid(field, toleration.value, why)
        case "Exists":
            if toleration.value:
                yield invalid(field, toleration.value, "value must be empty when `operator` is 'Exists'")
        case "Lt" | "Gt":
            yield unsupported(field, toleration.operator, ("Equal", "Exists", "Lt", "Gt"))
        case _:
            yield unsupported(field, toleration.operator, ("Equal", "Exists"))
