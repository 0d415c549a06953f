"""Amounts in CEL: the scheduler's whole numbers of quantities that a pod has as text.

CEL's quantities can be compared and added, and cannot be rounded or written. So amounts become whole numbers: cpu in
millicores, anything else in bytes or pieces, rounded up as the scheduler rounds them.
"""

from trimtab.policy.cel import cel_string

_CONTAINERS = "object.spec.containers"
_INIT = "(has(object.spec.initContainers) ? object.spec.initContainers : [])"
POD_LEVEL = ("cpu", "memory")
"""Resources that a pod may set for all its containers together."""


def has_amount(variable: str, side: str, resource: str) -> str:
    """Returns whether the container (or the pod's spec) sets this request or limit."""
    path = f"{variable}.resources"
    return f"has({path}) && has({path}.{side}) && {cel_string(resource)} in {path}.{side}"


def amount_text(variable: str, side: str, resource: str) -> str:
    """Returns the expression of the text; use it where `has_amount` holds."""
    return f"string({variable}.resources.{side}[{cel_string(resource)}])"


def number_of(text: str, resource: str) -> str:
    """Returns the whole number of a quantity's text, rounded up."""
    scale, exact = ("1000.0", "1000") if resource == "cpu" else ("1.0", "1")
    number = f"quantity({text})"
    # Nearly the next whole number: a double of 0.29 times 1000 may be a little above 290.
    rounded = f"int({number}.asApproximateFloat() * {scale} + 0.999999)"
    return f"({number}.isInteger() ? {number}.asInteger() * {exact} : {rounded})"


def quantity_number(variable: str, resource: str, side: str = "requests") -> str:
    """Returns the whole number of a request; 0 where there is none."""
    text = amount_text(variable, side, resource)
    return f"({has_amount(variable, side, resource)} ? {number_of(text, resource)} : 0)"


def pod_amount_expression(resource: str) -> str:
    """Returns the requests of the whole pod without overhead, as the scheduler adds them up: the larger of the main
    containers with the sidecars, and of each init container with the sidecars before it."""
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
    """Returns whether no container asks for cpu or memory, and none has a limit of them."""
    tests = [_positive("c", side, resource) for side in ("requests", "limits") for resource in POD_LEVEL]
    return f"!{containers}.exists(c, {' || '.join(tests)})"


def guaranteed_expression(containers: str) -> str:
    """Returns whether each container has limits of cpu and memory and asks for as much."""
    tests = [
        f"{_positive('c', 'limits', resource)} && {has_amount('c', 'requests', resource)} && "
        f"quantity({amount_text('c', 'requests', resource)}).compareTo("
        f"quantity({amount_text('c', 'limits', resource)})) == 0"
        for resource in POD_LEVEL
    ]
    return f"{containers}.all(c, {' && '.join(f'({test})' for test in tests)})"


def format_number(number: str, resource: str) -> str:
    """Returns the text of a whole number as a quantity: 250m of cpu; whole Mi of anything else where it is some."""
    if resource == "cpu":
        return f"({number} % 1000 == 0 ? string({number} / 1000) : string({number}) + 'm')"
    return f"({number} % 1048576 == 0 ? string({number} / 1048576) + 'Mi' : string({number}))"
