"""How much is "100m", exactly?

The one quantity parser in the house. Kubernetes' syntax whole (apimachinery `resource.Quantity`): decimal
suffixes n u m k M G T P E, binary Ki Mi Gi Ti Pi Ei, exponents, signs. Values are integers, never floats:
parsed to nano-units (Kubernetes' own finest step; anything finer is rounded up, as it does), read out as
milli-units or whole units, rounded up as the scheduler rounds (`Quantity.MilliValue`, `Quantity.Value`).
"""

import re
from functools import lru_cache
from typing import NewType

Nano = NewType("Nano", int)
"""Billionths of a unit: exact for everything Kubernetes can write."""
Milli = NewType("Milli", int)
"""Thousandths of a core (or of any unit)."""
Bytes = NewType("Bytes", int)
"""Whole units: bytes for memory and storage, pieces for devices."""

Written = str | int | float
"""A quantity as YAML or JSON may hold it: the API server writes strings, people also write numbers."""

NANO = 10**9
_MOST = (2**63 - 1) * NANO
"""Kubernetes caps what is larger (quantity.go: "No fraction may be above 2^63-1")."""

MAX_CHARACTERS = 64
"""The API server writes every quantity in far fewer. A number of a million digits would take a minute to read, and
thousands of them would stay in memory."""

_PATTERN = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d{1,3})?", re.ASCII)
_SCALE = {
    None: NANO, "n": 1, "u": 10**3, "m": 10**6,
    "k": 10**12, "M": 10**15, "G": 10**18, "T": 10**21, "P": 10**24, "E": 10**27,
    "Ki": NANO << 10, "Mi": NANO << 20, "Gi": NANO << 30, "Ti": NANO << 40, "Pi": NANO << 50, "Ei": NANO << 60,
}  # fmt: skip


class NotAQuantity(ValueError):
    """The text is no Kubernetes quantity. `str(error)` says what was expected and what came."""

    def __init__(self, text: object) -> None:
        got = repr(text) if len(str(text)) <= MAX_CHARACTERS else f"{str(text)[:MAX_CHARACTERS]!r} and more"
        super().__init__(f"expected a quantity such as 250m, 1.5, 128Mi or 1e3, got {got}")
        self.text = text


@lru_cache(maxsize=16384, typed=True)
def parse(written: Written) -> Nano:
    """Nano-units, exact; finer than nano rounds away from zero, beyond ±(2^63-1) units is capped.

    Raises NotAQuantity for anything Kubernetes would refuse (and for NaN, infinities and booleans), and for what is
    longer than `MAX_CHARACTERS`.
    """
    if isinstance(written, bool):
        raise NotAQuantity(written)
    text = str(written)
    match = _PATTERN.fullmatch(text.strip()) if len(text) <= MAX_CHARACTERS else None
    if match is None:
        raise NotAQuantity(written)
    sign, digits, suffix = match.groups()
    whole, _, fraction = digits.partition(".")
    value = _scaled(int((whole + fraction) or "0"), suffix, len(fraction))
    value = min(value, _MOST)
    return Nano(-value if sign == "-" else value)


def _scaled(mantissa: int, suffix: str | None, places: int) -> int:
    """mantissa × 10^-places × suffix in nano-units, rounded up."""
    if suffix in _SCALE:
        return _up(mantissa * _SCALE[suffix], 10**places)
    power = int(str(suffix)[1:]) + 9 - places
    return mantissa * 10**power if power >= 0 else _up(mantissa, 10**-power)


def _up(numerator: int, divisor: int) -> int:
    return -(-numerator // divisor)


@lru_cache(maxsize=16384)
def milli(written: Written) -> Milli:
    """Thousandths, rounded up: what the scheduler counts for cpu."""
    return Milli(_up(parse(written), 10**6))


@lru_cache(maxsize=16384)
def whole(written: Written) -> Bytes:
    """Whole units, rounded up: what the scheduler counts for everything but cpu."""
    return Bytes(_up(parse(written), NANO))


def is_quantity(written: object) -> bool:
    """Would Kubernetes read this as a quantity?"""
    if not isinstance(written, str | int | float):
        return False
    try:
        parse(written)
    except NotAQuantity:
        return False
    return True


def scheduler_value(resource: str, written: Written) -> int:
    """The scheduler's number for this resource: millicores for cpu, whole units for anything else."""
    return milli(written) if resource == "cpu" else whole(written)


def compare(a: Written, b: Written) -> int:
    """-1, 0 or 1, by value: compare("0.1", "100m") is 0."""
    first, second = parse(a), parse(b)
    return (first > second) - (first < second)


def same(a: Written, b: Written) -> bool:
    """Equal by value, as Kubernetes' semantic equality has it."""
    return a == b or parse(a) == parse(b)


def cpu(millicores: int) -> str:
    """Millicores as Kubernetes prints them: 1500 → "1500m", 2000 → "2"."""
    return f"{millicores}m" if millicores % 1000 else str(millicores // 1000)


_BINARY = (
    (1 << 60, "Ei"),
    (1 << 50, "Pi"),
    (1 << 40, "Ti"),
    (1 << 30, "Gi"),
    (1 << 20, "Mi"),
    (1 << 10, "Ki"),
)


def memory(count: int) -> str:
    """Bytes with the largest binary suffix that loses nothing: 134217728 → "128Mi", 1000 → "1000"."""
    for size, suffix in _BINARY:
        if count and count % size == 0:
            return f"{count // size}{suffix}"
    return str(count)


def format_quantity(resource: str, number: int) -> str:
    """The scheduler's number back as text: the other way of `of`. Pieces of an extended resource stay a number."""
    if resource == "cpu":
        return cpu(number)
    return str(number) if "/" in resource else memory(number)


_DECIMAL_SI = ((10**27, "E"), (10**24, "P"), (10**21, "T"), (10**18, "G"), (10**15, "M"), (10**12, "k"),
               (NANO, ""), (10**6, "m"), (10**3, "u"), (1, "n"))  # fmt: skip


@lru_cache(maxsize=16384)
def canonical(written: Written) -> str:
    """As the API server stores it (`Quantity.CanonicalizeBytes`): "0.1" → "100m", "1024Mi" → "1Gi".

    The suffix family is kept; a binary quantity below 1024 is written in decimal, and a binary one with a
    fraction too.
    """
    nano = parse(written)
    suffix = (_PATTERN.fullmatch(str(written).strip()) or [None] * 4)[3]
    if suffix is not None and suffix[0] in "eE" and suffix not in ("E", "Ei"):
        return _exponent(nano, str(written).strip(), suffix)
    if suffix is not None and suffix.endswith("i") and abs(nano) >= 1024 * NANO and nano % NANO == 0:
        return memory_signed(nano // NANO)
    return _decimal(nano)


def _decimal(nano: int) -> str:
    for size, suffix in _DECIMAL_SI:
        if nano and nano % size == 0:
            return f"{nano // size}{suffix}"
    return "0"


def _exponent(nano: int, text: str, suffix: str) -> str:
    """A text that has the canonical digits and power already is kept to the letter: "1E3", "2e0" (asked of 1.36)."""
    for size, power in ((10 ** (9 + p), p) for p in range(18, -10, -3)):
        if nano and nano % size == 0:
            if (text[: -len(suffix)], int(suffix[1:])) == (str(nano // size), power):
                return text
            return f"{nano // size}e{power}" if power else str(nano // size)
    return "0"


def memory_signed(count: int) -> str:
    """Like `memory`, for a number that may be negative."""
    return memory(count) if count >= 0 else "-" + memory(-count)
