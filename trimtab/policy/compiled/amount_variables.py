"""Puts the compiled requests and limits of all containers into variables of CEL, and writes the patch of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trimtab.cluster.request_parameters import NAMESPACE_KEY
from trimtab.policy.cel import NotExpressible
from trimtab.policy.cel_patches import REMOVE, AmountPatch, PatchPart, operation
from trimtab.policy.cel_pod import ALL_CONTAINERS, IS_APPLIED, IS_WINDOWS, OWNER_KEY
from trimtab.policy.compiled.amounts import UNTIL, best_effort_expression, guaranteed_expression, has_amount
from trimtab.policy.compiled.match_conditions import container_test
from trimtab.policy.conditions import Match

PARTS = ("containers", "initContainers")
_MANAGED = "object.metadata.managedFields"
PARAMETER_VARIABLES = {
    "data": "params != null && has(params.data) ? params.data : {}",
    # CEL has no clock. The API server writes the time of the request into managedFields before it mutates.
    "now": f"has({_MANAGED}) && {_MANAGED}.exists(m, has(m.time)) ? "
    f"{_MANAGED}.filter(m, has(m.time)).map(m, string(m.time)).max() : '9999'",
    "owner": OWNER_KEY,
    "rules": f"'{NAMESPACE_KEY}' in variables.data ? variables.data['{NAMESPACE_KEY}'] : ''",
    "hpas": "variables.rules.find(' hpas=[^ ]*').replace(' hpas=', '').split(',').filter(n, n != '')",
    "vpas": "variables.rules.find(' vpas=[^ ]*').replace(' vpas=', '').split(',').filter(n, n != '')",
    "unbounded": "variables.rules.contains(' limitranges=0 quotas=0 ') && "
    f"variables.rules.matches('{UNTIL}') && variables.now < variables.rules.substring(6, 26)",
}
"""The CEL variables of policies with parameters. Their text comes from a ConfigMap in a tenant's namespace, so it is
checked wherever it is used."""
_ON_POD_LEVEL = " || ".join(
    has_amount("object.spec", side, r) for side in ("requests", "limits") for r in ("cpu", "memory")
)


@dataclass(frozen=True, slots=True)
class ParameterPlace:
    """Where a compiled policy reads the parameters of a namespace."""

    are_read: bool = False
    """Whether the policy may read them at all."""
    own_namespace: str = ""
    """Trimtab's own namespace, if they are there; empty if they are in the pod's namespace."""


@dataclass(frozen=True, slots=True)
class AmountVariables:
    """CEL variables that compute, for each container, the text of a new request or limit; the text is empty if nothing
    is written."""

    variables: dict[str, str]
    parts: tuple[PatchPart, ...]


def amount_variables(amounts: Sequence[AmountPatch], match: Match, parameters: ParameterPlace) -> AmountVariables:
    """Returns the variables for all amounts. Raises NotExpressible with the name of the field."""
    if not amounts:
        return AmountVariables({}, ())
    if not parameters.are_read:
        raise NotExpressible(amounts[0].problem_without_parameters)
    problem = next((one.problem_in_tenant_namespace for one in amounts if one.problem_in_tenant_namespace), "")
    if problem and not parameters.own_namespace:
        raise NotExpressible(problem)
    test = container_test(match.containers, "spec.match.containers") if match.containers is not None else "true"
    variables = {
        "bestEffort": best_effort_expression(ALL_CONTAINERS),
        "guaranteed": guaranteed_expression(ALL_CONTAINERS),
        "podLevel": _ON_POD_LEVEL,
        "applied": IS_APPLIED,
    }
    texts = {(amount.side, amount.resource): amount.text for amount in amounts}
    if any("variables.windows" in text for text in texts.values()):
        variables["windows"] = IS_WINDOWS
    names: dict[tuple[str, str], str] = {}
    for number, (key, text) in enumerate(texts.items()):
        names[key] = f"amount{number}"
        for part in PARTS:
            path = f"object.spec.{part}"
            value = f"{path}.map(c, !variables.podLevel && {test} ? {text} : '')"
            variables[f"{names[key]}{part}"] = value if part == "containers" else f"has({path}) ? {value} : []"
    return AmountVariables(variables, tuple(_container_parts(names)))


def _container_parts(names: dict[tuple[str, str], str]) -> Iterator[PatchPart]:
    """Yields one change for each list of containers (main and init): it writes all new amounts, and creates the maps
    that hold them."""
    for part in PARTS:
        amounts = {key: f"variables.{name}{part}" for key, name in names.items()}
        path = f"object.spec.{part}"
        test = " || ".join(f"{values}.exists(a, a != '')" for values in amounts.values())
        root = f"'/spec/{part}/' + string(i) + '/resources"
        pieces = [f"(has(c.resources) ? [] : [{operation('add', root + chr(39), '{}')}])"]
        for side in ("requests", "limits"):
            written = [values for (of, _), values in amounts.items() if of == side]
            adds = " || ".join(f"!({values}[i] in ['', {REMOVE}])" for values in written)
            if written:
                create = operation("add", f"{root}/{side}'", "{}")
                pieces.append(f"(({adds}) && !(has(c.resources) && has(c.resources.{side})) ? [{create}] : [])")
        notes = []
        for (side, resource), values in amounts.items():
            target = f"{root}/{side}/{resource.replace('~', '~0').replace('/', '~1')}'"
            add, remove = operation("add", target, f"{values}[i]"), operation("remove", target)
            pieces.append(f"({values}[i] == '' ? [] : {values}[i] == {REMOVE} ? [{remove}] : [{add}])")
            text = f"({values}[i] == {REMOVE} ? 'removed' : {values}[i])"
            notes.append(f"({values}[i] == '' ? [] : ['{part}[' + c.name + '].{side}.{resource}=' + {text}])")
        any_of = " || ".join(f"{values}[i] != ''" for values in amounts.values())
        yield PatchPart(
            name=part,
            test=f"({test})",
            reads_late=True,
            operations=f"{path}.transformList(i, c, {any_of}, {' + '.join(pieces)}).flatten()",
            note=f"{path}.transformList(i, c, {any_of}, {' + '.join(notes)}).flatten().join(' ')",
        )
