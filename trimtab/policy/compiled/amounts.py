"""Converts the quantities of a pod to whole numbers in CEL.

CEL can compare and add quantities, but can neither round nor print them. So amounts are converted to whole numbers: cpu
in millicores, anything else in bytes or pieces, rounded up as the scheduler rounds them.
"""

from trimtab.cluster import quantity
from trimtab.policy.actions.request_fields import RequestRule
from trimtab.policy.cel import cel_string

_CONTAINERS = "object.spec.containers"
_INIT = "(has(object.spec.initContainers) ? object.spec.initContainers : [])"
UNTIL = "^until=20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z "
"""A regular expression for the beginning of a parameter that says how long it holds."""
UNBOUNDED = "variables.unbounded"
"""A CEL expression that is true if the parameters say that the namespace has neither a LimitRange nor a quota."""
POD_LEVEL = ("cpu", "memory")
"""The resources that a pod may set for all its containers together (pod-level resources)."""


def has_amount(variable: str, side: str, resource: str) -> str:
    """Returns a CEL expression that is true if the container (or the pod's spec) sets this request or limit."""
    path = f"{variable}.resources"
    return f"has({path}) && has({path}.{side}) && {cel_string(resource)} in {path}.{side}"


def amount_text(variable: str, side: str, resource: str) -> str:
    """Returns a CEL expression for the request or limit as text. It may only be evaluated where `has_amount` is
    true."""
    return f"string({variable}.resources.{side}[{cel_string(resource)}])"


def number_of(text: str, resource: str) -> str:
    """Returns a CEL expression that converts a quantity, given as text, to a whole number, rounded up."""
    scale, exact = ("1000.0", "1000") if resource == "cpu" else ("1.0", "1")
    number = f"quantity({text})"
    # Nearly the next whole number: a double of 0.29 times 1000 may be a little above 290.
    rounded = f"int({number}.asApproximateFloat() * {scale} + 0.999999)"
    return f"({number}.isInteger() ? {number}.asInteger() * {exact} : {rounded})"


def quantity_number(variable: str, resource: str, side: str = "requests") -> str:
    """Returns a CEL expression for a request or limit as a whole number; 0 if there is none."""
    text = amount_text(variable, side, resource)
    return f"({has_amount(variable, side, resource)} ? {number_of(text, resource)} : 0)"


def pod_amount_expression(resource: str) -> str:
    """Returns a CEL expression for the requests of the whole pod without overhead, as the scheduler adds them up.

    It is the largest of these sums: the main containers with all sidecars; and, for each init container, that container
    with the sidecars before it."""
    of_c, of_d = quantity_number("c", resource), quantity_number("d", resource)
    is_sidecar = "has({0}.restartPolicy) && {0}.restartPolicy == 'Always'"
    sidecars = f"{_INIT}.filter(d, {is_sidecar.format('d')}).map(d, {of_d})"
    main = f"({_CONTAINERS}.map(c, {of_c}) + {sidecars}).sum()"
    before = f"{_INIT}.transformList(j, d, j < i && {is_sidecar.format('d')}, {of_d})"
    starting = f"{_INIT}.transformList(i, c, !({is_sidecar.format('c')}), ([{of_c}] + {before}).sum())"
    total = f"([{main}] + {starting}).max()"
    if resource not in POD_LEVEL:
        return total
    return f"({has_amount('object.spec', 'requests', resource)} ? {quantity_number('object.spec', resource)} : {total})"


def _positive(variable: str, side: str, resource: str) -> str:
    is_positive = f"quantity({amount_text(variable, side, resource)}).isGreaterThan(quantity('0'))"
    return f"({has_amount(variable, side, resource)} && {is_positive})"


def best_effort_expression(containers: str) -> str:
    """Returns a CEL expression that is true if no container has a request or a limit of cpu or memory."""
    tests = [_positive("c", side, resource) for side in ("requests", "limits") for resource in POD_LEVEL]
    return f"!{containers}.exists(c, {' || '.join(tests)})"


def guaranteed_expression(containers: str) -> str:
    """Returns a CEL expression that is true if each container has limits of cpu and memory, and requests equal to
    them."""
    tests = [
        f"{_positive('c', 'limits', resource)} && {has_amount('c', 'requests', resource)} && "
        f"quantity({amount_text('c', 'requests', resource)}).compareTo("
        f"quantity({amount_text('c', 'limits', resource)})) == 0"
        for resource in POD_LEVEL
    ]
    return f"{containers}.all(c, {' && '.join(f'({test})' for test in tests)})"


def format_number(number: str, resource: str) -> str:
    """Returns a CEL expression that writes a whole number as a quantity. Cpu is written as in 250m. Other resources are
    written in Mi if the number is a multiple of 1Mi, otherwise as a plain number."""
    if resource == "cpu":
        return f"({number} % 1000 == 0 ? string({number} / 1000) : string({number}) + 'm')"
    return f"({number} % 1048576 == 0 ? string({number} / 1048576) + 'Mi' : string({number}))"


def clamp_to_rule(rule: RequestRule, resource: str, number: int) -> int:
    """Returns the amount within the bounds of the rule, and at least 1."""
    low = quantity.scheduler_value(resource, rule.min) if rule.min else 1
    high = quantity.scheduler_value(resource, rule.max) if rule.max else None
    number = max(number, low)
    return number if high is None else min(number, high)


def needs_bounds(where: str) -> str:
    """Returns why amounts of the action `where` cannot be compiled without parameters."""
    return (
        f"spec.actions.{where}: a pod does not show whether a LimitRange or a quota would refuse it; see the "
        "option --params usage"
    )
