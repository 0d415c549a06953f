"""Kubernetes quantities as exact integers, and back.

This is the only quantity parser in Trimtab. It reads the whole syntax of Kubernetes (apimachinery `resource.Quantity`):
the decimal suffixes n u m k M G T P E, the binary ones Ki Mi Gi Ti Pi Ei, exponents, and signs. Values are integers,
never floats. A quantity is parsed to nano-units, the finest unit of Kubernetes (anything finer is rounded up, as
Kubernetes does), and converted to milli-units or whole units, rounded up as the scheduler does (`Quantity.MilliValue`,
`Quantity.Value`).
"""

import re
from functools import lru_cache
from typing import NewType

Nano = NewType("Nano", int)
"""Billionths of a unit. They are exact for every quantity that Kubernetes can store."""
Milli = NewType("Milli", int)
"""Thousandths of a core (or of any unit)."""
Bytes = NewType("Bytes", int)
"""Whole units: bytes for memory and storage, a count for devices."""

Written = str | int | float
"""A quantity as it is written in YAML or JSON: the API server writes strings; people also write numbers."""

NANO_PER_UNIT = 10**9
# Kubernetes caps what is larger (quantity.go: "No fraction may be above 2^63-1").
_MAX_NANO = (2**63 - 1) * NANO_PER_UNIT

MAX_CHARACTERS = 64
"""Longer texts are rejected. The API server writes every quantity in far fewer characters, while a number of a million
digits would take a minute to parse."""

_PATTERN = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d{1,3})?", re.ASCII)
_SCALE = {
    None: NANO_PER_UNIT,
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    "k": 10**12,
    "M": 10**15,
    "G": 10**18,
    "T": 10**21,
    "P": 10**24,
    "E": 10**27,
    "Ki": NANO_PER_UNIT << 10,
    "Mi": NANO_PER_UNIT << 20,
    "Gi": NANO_PER_UNIT << 30,
    "Ti": NANO_PER_UNIT << 40,
    "Pi": NANO_PER_UNIT << 50,
    "Ei": NANO_PER_UNIT << 60,
}


class NotAQuantity(ValueError):
    """Raised for a text that is not a Kubernetes quantity. `str(error)` says what was expected and what the text is."""

    def __init__(self, text: object) -> None:
        got = repr(text) if len(str(text)) <= MAX_CHARACTERS else f"{str(text)[:MAX_CHARACTERS]!r} and more"
        super().__init__(f"expected a quantity such as 250m, 1.5, 128Mi or 1e3, got {got}")
        self.text = text


# A cluster has few distinct quantities. Typed, because 1, 1.0 and True are equal keys otherwise.
@lru_cache(maxsize=16384, typed=True)
def parse(quantity: Written) -> Nano:
    """Returns the quantity in nano-units. Digits below a nano-unit are rounded away from zero, and values beyond
    ±(2^63-1) units are capped.

    Raises NotAQuantity for what Kubernetes would reject, for NaN, infinities and booleans, and for text that is longer
    than `MAX_CHARACTERS`.
    """
    # To Python, True is the number 1.
    if isinstance(quantity, bool):
        raise NotAQuantity(quantity)
    text = str(quantity)
    match = _PATTERN.fullmatch(text.strip()) if len(text) <= MAX_CHARACTERS else None
    if match is None:
        raise NotAQuantity(quantity)
    sign, digits, suffix = match.groups()
    whole, _, fraction = digits.partition(".")
    value = _scale_to_nano(int((whole + fraction) or "0"), suffix, len(fraction))
    # Capped before the sign is applied: both limits have the same magnitude.
    value = min(value, _MAX_NANO)
    return Nano(-value if sign == "-" else value)


def _scale_to_nano(mantissa: int, suffix: str | None, places: int) -> int:
    """Returns mantissa × 10^-places × (value of the suffix) in nano-units, rounded up."""
    if suffix in _SCALE:
        return _divide_up(mantissa * _SCALE[suffix], 10**places)
    # An exponent: 9 for nano-units, less the digits after the point.
    power = int(str(suffix)[1:]) + 9 - places
    return mantissa * 10**power if power >= 0 else _divide_up(mantissa, 10**-power)


def _divide_up(numerator: int, divisor: int) -> int:
    # Integer division that rounds up: Python's `//` rounds toward minus infinity.
    return -(-numerator // divisor)


@lru_cache(maxsize=16384)
def to_milli(quantity: Written) -> Milli:
    """Returns the quantity in thousandths of a unit, rounded up: the unit in which the scheduler counts cpu."""
    return Milli(_divide_up(parse(quantity), 10**6))


@lru_cache(maxsize=16384)
def to_whole_units(quantity: Written) -> Bytes:
    """Returns the quantity in whole units, rounded up: the unit in which the scheduler counts every resource but
    cpu."""
    return Bytes(_divide_up(parse(quantity), NANO_PER_UNIT))


def is_quantity(value: object) -> bool:
    """Returns whether Kubernetes accepts this value as a quantity."""
    if not isinstance(value, str | int | float):
        return False
    try:
        parse(value)
    except NotAQuantity:
        return False
    return True


def scheduler_value(resource: str, quantity: Written) -> int:
    """Returns the quantity in the unit in which the scheduler counts this resource: millicores for cpu, whole units for
    any other."""
    return to_milli(quantity) if resource == "cpu" else to_whole_units(quantity)


def compare_quantities(a: Written, b: Written) -> int:
    """Returns -1, 0 or 1 if `a` is less than, equal to, or greater than `b`: "0.1" equals "100m"."""
    first, second = parse(a), parse(b)
    return (first > second) - (first < second)


def is_same_quantity(a: Written, b: Written) -> bool:
    """Returns whether two quantities are equal by value, as in Kubernetes' semantic equality."""
    # Equal text is the common case and needs no parsing.
    return a == b or parse(a) == parse(b)


def format_cpu(millicores: int) -> str:
    """Returns millicores as Kubernetes prints them: 1500 → "1500m", 2000 → "2"."""
    return f"{millicores}m" if millicores % 1000 else str(millicores // 1000)


_BINARY_SUFFIXES = (
    (1 << 60, "Ei"),
    (1 << 50, "Pi"),
    (1 << 40, "Ti"),
    (1 << 30, "Gi"),
    (1 << 20, "Mi"),
    (1 << 10, "Ki"),
)


def format_memory(count: int) -> str:
    """Returns bytes with the largest binary suffix that loses nothing: 134217728 → "128Mi", 1000 → "1000"."""
    for size, suffix in _BINARY_SUFFIXES:
        if count and count % size == 0:
            return f"{count // size}{suffix}"
    return str(count)


def format_quantity(resource: str, number: int) -> str:
    """Returns an amount in the scheduler's unit as a quantity: the inverse of `scheduler_value`. The amount of an
    extended resource is a plain number."""
    if resource == "cpu":
        return format_cpu(number)
    return str(number) if "/" in resource else format_memory(number)


_DECIMAL_SUFFIXES = (
    (10**27, "E"),
    (10**24, "P"),
    (10**21, "T"),
    (10**18, "G"),
    (10**15, "M"),
    (10**12, "k"),
    (NANO_PER_UNIT, ""),
    (10**6, "m"),
    (10**3, "u"),
    (1, "n"),
)


@lru_cache(maxsize=16384)
def canonical_form(quantity: Written) -> str:
    """Returns the quantity as the API server stores it (`Quantity.CanonicalizeBytes`): "0.1" → "100m", "1024Mi" →
    "1Gi".

    A decimal quantity stays decimal and a binary one binary, except that a binary quantity below 1024 or with a
    fraction is written as a decimal.
    """
    nano = parse(quantity)
    suffix = (_PATTERN.fullmatch(str(quantity).strip()) or [None] * 4)[3]
    if suffix is not None and suffix[0] in "eE" and suffix not in ("E", "Ei"):
        # The quantity in exponent form. A text in canonical form, such as "1E3" or "2e0", stays as it is (measured
        # against the API server, 1.36).
        text = str(quantity).strip()
        for size, power in ((10 ** (9 + p), p) for p in range(18, -10, -3)):
            if nano and nano % size == 0:
                if (text[: -len(suffix)], int(suffix[1:])) == (str(nano // size), power):
                    return text
                return f"{nano // size}e{power}" if power else str(nano // size)
        return "0"
    if suffix is not None and suffix.endswith("i") and abs(nano) >= 1024 * NANO_PER_UNIT and nano % NANO_PER_UNIT == 0:
        return format_signed_memory(nano // NANO_PER_UNIT)
    return _format_decimal(nano)


def _format_decimal(nano: int) -> str:
    for size, suffix in _DECIMAL_SUFFIXES:
        if nano and nano % size == 0:
            return f"{nano // size}{suffix}"
    return "0"


def format_signed_memory(count: int) -> str:
    """Returns bytes, which may be negative, with the largest binary suffix that loses nothing."""
    return format_memory(count) if count >= 0 else "-" + format_memory(-count)
