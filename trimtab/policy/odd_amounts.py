"""Finds amounts in a policy that are far from what any container requests, such as a quantity without its unit."""

from collections.abc import Iterable, Iterator

from trimtab.cluster import quantity
from trimtab.cluster.reason import Reason
from trimtab.policy.actions import reasons as lint_reasons

_MIN_MEMORY = quantity.scheduler_value("memory", "1Mi")
# More than the largest machine that cloud providers rent out.
_MAX_AMOUNTS = {
    "cpu": quantity.scheduler_value("cpu", "448"),
    "memory": quantity.scheduler_value("memory", "32Ti"),
    "ephemeral-storage": quantity.scheduler_value("memory", "256Ti"),
}
_MAX_NUMBER = 2**63
_MIN_ODD_CORES = 100
"""From so many cores on, a request that a policy sets is taken for a forgotten `m`."""
_IN_BYTES = ("memory", "ephemeral-storage")


def find_odd_amounts(where: str, resource: str, amounts: Iterable[tuple[str, str | None]]) -> Iterator[Reason]:
    """Yields a finding for each amount of `amounts`, (word, quantity or None), that is implausible for the resource."""
    for word, amount in amounts:
        odd = "" if amount is None else _describe_odd_amount(resource, amount, is_set=word in ("otherwise", "min"))
        if odd:
            yield lint_reasons.ODD_AMOUNT(f"{where}.{word} is {amount}, which is {odd}")


def _describe_odd_amount(resource: str, amount: str, *, is_set: bool) -> str:
    """Returns what is wrong with an implausible amount, with the amount that was probably meant, or an empty string if
    the amount is plausible.

    `is_set`: the policy gives this request to containers; otherwise the amount is only a bound, which may be large.
    """
    number = quantity.scheduler_value(resource, amount)
    is_large_request = resource == "cpu" and is_set and number >= _MIN_ODD_CORES * 1000
    if is_large_request or number > _MAX_AMOUNTS.get(resource, _MAX_NUMBER):
        text = f"{number // 1000} cores" if resource == "cpu" else f"{number} bytes"
        return text + _suggest_unit(amount, "m" if resource == "cpu" else "")
    # The usual mistake: 128 for 128Mi, or 128m, which is a fraction of a byte.
    if resource in _IN_BYTES and quantity.parse(amount) < _MIN_MEMORY * quantity.NANO_PER_UNIT:
        text = "less than 1 byte" if quantity.parse(amount) < quantity.NANO_PER_UNIT else f"{number} bytes"
        return text + _suggest_unit(amount, "Mi")
    return ""


def _suggest_unit(amount: str, unit: str) -> str:
    """Returns `: did you mean …?` with the same number in the usual unit; empty for an amount with another unit."""
    number = str(amount).strip().removesuffix("m")
    return f": did you mean {number}{unit}?" if unit and number.isdecimal() else ""
