"""Which limits are needless, and which should follow the request?"""

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from trimtab.cluster.resources import limits_of
from trimtab.policy import reasons, vpa
from trimtab.policy.draft import Draft, Want
from trimtab.policy.subject import Place
from trimtab.policy.vocabulary import words

_RULE = re.compile(r"remove|keep|request(\s*[x×*]\s*(\d+(\.\d+)?))?")


def _rule(value: Any) -> str:
    match = _RULE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("remove, keep, request, or request x 1.5")
    if match[2] is not None and Fraction(match[2]) < 1:
        raise ValueError("a factor of at least 1 (a limit below the request is refused by Kubernetes)")
    return str(value)


LimitRule = Annotated[
    str, BeforeValidator(_rule), WithJsonSchema({"type": "string", "pattern": f"^({_RULE.pattern})$"})
]
"""`remove`: no limit. `keep`: as it is, and no later policy may change it. `request`: equal to the request.
`request x 1.5`: the request times a factor of at least 1."""


@words
class Limits:
    """What becomes of the containers' limits."""

    cpu: LimitRule | None = None
    """`remove`, `keep`, `request`, or `request x 1.5`."""
    memory: LimitRule | None = None
    """`remove`, `keep`, `request`, or `request x 1.5`."""


def propose(settings: Limits, draft: Draft, places: tuple[Place, ...]) -> None:
    """One want per container and resource that this policy is the first to decide."""
    for place in places:
        for resource, rule in (("cpu", settings.cpu), ("memory", settings.memory)):
            if rule is not None:
                _propose(rule, draft, place, resource)


def _propose(rule: str, draft: Draft, place: Place, resource: str) -> None:
    name = f"{place.name}.limits.{resource}"
    written = limits_of(place.container.resources).get(resource)
    if vpa.boosts(draft.subject, place, resource):
        draft.leave(name, reasons.VPA_BOOSTS(f"the VPA boosts {place.container.name} while it starts"))
        return
    first = draft.decide_first(name, rule)
    if not first or rule == "keep" or (rule == "remove" and written is None):
        return
    reason = (
        reasons.LIMIT_REMOVED("the policy removes it") if rule == "remove" else reasons.POLICY_SAYS(f"limit = {rule}")
    )
    draft.limits[place, resource] = Want(
        place=place, resource=resource, value=None, factor=factor(rule), policy=draft.policy, reason=reason,
        changes_guaranteed=draft.changes_guaranteed,
    )  # fmt: skip


def factor(rule: str) -> str | None:
    """ "request x 1.5" → "1.5", "request" → "1"; None for `remove` and `keep`."""
    match = _RULE.fullmatch(rule)
    return (match[2] or "1") if match and rule.startswith("request") else None
