"""Sums the resources of a pod's containers in the API server's notation, and rounds quantities as the server stores
them.

`cluster.resources` counts in the scheduler's units, while messages and defaults contain quantities. `Quantity.Add`
(apimachinery resource/quantity.go) keeps the notation of its first operand, unless that is zero: "512Mi" + "1" is
"536870913".

Stored quantities are multiples of one thousandth: `SetDefaults_ResourceList` (pkg/apis/core/v1/defaults.go, 1.36)
rounds them up, in pods as well as in LimitRanges, quotas and RuntimeClasses. "250u" of cpu is stored as 1m. Rounding is
the last default: values derived from other fields (such as a pod-level request from the containers' requests) are
derived from unrounded ones.
"""

import re
from collections.abc import Callable

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, UnsetType, change
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.quantity import NANO_PER_UNIT, Written

Read = Callable[[Resources | UnsetType], ResourceList]
"""A function that returns the requests or the limits of a container: `resources.requests_of` or
`resources.limits_of`."""

_EXPONENT = re.compile(r".*[eE][+-]?\d+")


def add_quantities(a: Written, b: Written) -> str:
    """Returns the sum of two quantities in the notation of `a`, or of `b` if `a` is zero."""
    first = quantity.parse(a)
    return _format_like(first + quantity.parse(b), like=str(a if first else b))


def multiply_quantity(a: Written, count: int) -> str:
    """Returns a multiple of a quantity in its notation."""
    return _format_like(count * quantity.parse(a), like=str(a))


def _format_like(nano: int, like: str) -> str:
    if like.endswith("i") and nano % NANO_PER_UNIT == 0 and abs(nano) >= 1024 * NANO_PER_UNIT:
        return quantity.format_signed_memory(nano // NANO_PER_UNIT)
    return quantity.canonical_form(f"{nano}e-9" if _EXPONENT.fullmatch(like) else f"{nano}n")


def add_resources(total: ResourceList, part: ResourceList) -> ResourceList:
    """Returns, for each resource, the sum of both amounts."""
    sums = _Sums(total)
    sums.add(part)
    return sums.written()


def max_resources(total: ResourceList, part: ResourceList) -> ResourceList:
    """Returns, for each resource, the larger of the two amounts."""
    maximum = dict(total)
    for name, value in part.items():
        if name not in maximum or quantity.compare_quantities(value, maximum[name]) > 0:
            maximum[name] = value
    return maximum


_Sum = tuple[int, Written]
"""(sum in billionths, an amount in whose notation it is written)."""


class _Sums:
    """Running sums of amounts: numbers, which are written only at the end. Of a hundred containers, most of the time
    would otherwise go into writing and reading each sum in between."""

    __slots__ = ("_amounts",)

    def __init__(self, amounts: ResourceList) -> None:
        self._amounts: dict[str, Written | _Sum] = dict(amounts)

    def add(self, amounts: ResourceList) -> None:
        """Adds the amounts."""
        for name, value in amounts.items():
            before = self._amounts.get(name)
            if before is None:
                self._amounts[name] = value
                continue
            nano, notation = before if isinstance(before, tuple) else (quantity.parse(before), before)
            # Go's `Quantity.Add` takes the notation of the other operand if this one is zero.
            self._amounts[name] = nano + quantity.parse(value), notation if nano else value

    def written(self) -> ResourceList:
        """Returns the sums as quantities. An amount to which nothing was added stays as it was written."""
        return {name: self._write(name) for name in self._amounts}

    def _write(self, name: str) -> Written:
        amount = self._amounts[name]
        return _format_like(amount[0], like=str(amount[1])) if isinstance(amount, tuple) else amount

    def plus(self, name: str, value: Written) -> Written:
        """Returns the sum of an amount and the sum so far of this resource, in the notation of the amount."""
        return add_quantities(value, self._write(name)) if name in self._amounts else value

    def of(self, names: ResourceList) -> ResourceList:
        """Returns the sums so far of these resources."""
        return {name: self._write(name) for name in names}


def sum_containers(spec: PodSpec, read: Read) -> ResourceList:
    """Returns the total of all containers, without pod-level resources and overhead.

    It is computed as in `AggregateContainerRequests` and `AggregateContainerLimits`
    (k8s.io/component-helpers/resource/helpers.go, 0.36). An init container needs to be compared only for the resources
    that it names: for the others, the sidecars before it have been compared already.
    """
    running, sidecars = _Sums({}), _Sums({})
    starting: ResourceList = {}
    for container in spec.containers:
        running.add(read(container.resources))
    for container in spec.init_containers:
        amounts = read(container.resources)
        if container.restart_policy == "Always":
            running.add(amounts)
            sidecars.add(amounts)
            starting = max_resources(starting, sidecars.of(amounts))
        else:
            starting = max_resources(starting, {name: sidecars.plus(name, value) for name, value in amounts.items()})
    return max_resources(running.written(), starting)


_NANO_PER_MILLI = 10**6


def round_quantities(amounts: ResourceList) -> ResourceList:
    """Returns the quantities as they are stored; the argument itself if nothing has to be rounded."""
    if all(map(_is_storable, amounts.values())):
        return amounts
    return {name: value if _is_storable(value) else f"{quantity.to_milli(value)}m" for name, value in amounts.items()}


def round_spec(spec: PodSpec) -> PodSpec:
    """Returns the spec with the quantities of containers, pod-level resources and overhead rounded."""
    return change(
        spec,
        containers=tuple(map(_round_container, spec.containers)),
        init_containers=tuple(map(_round_container, spec.init_containers)),
        resources=_round_resources(spec.resources),
        overhead=_round_list(spec.overhead),
    )


def _is_storable(value: Written) -> bool:
    return quantity.parse(value) % _NANO_PER_MILLI == 0


def _round_container(container: Container) -> Container:
    resources = _round_resources(container.resources)
    return container if resources is container.resources else change(container, resources=resources)


def _round_resources(resources: Resources | UnsetType) -> Resources | UnsetType:
    if isinstance(resources, UnsetType):
        return resources
    requests, limits = _round_list(resources.requests), _round_list(resources.limits)
    if requests is resources.requests and limits is resources.limits:
        return resources
    return change(resources, requests=requests, limits=limits)


def _round_list(amounts: ResourceList | UnsetType) -> ResourceList | UnsetType:
    return amounts if isinstance(amounts, UnsetType) else round_quantities(amounts)
