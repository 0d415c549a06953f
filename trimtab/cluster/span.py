"""How long is "1h30m"?"""

import re
from fractions import Fraction

_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|ns|m|s)")
_ALL = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|us|µs|ns|m|s))+")
_SECONDS = {
    "h": Fraction(3600), "m": Fraction(60), "s": Fraction(1),
    "ms": Fraction(1, 1000), "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "ns": Fraction(1, 10**9),
}  # fmt: skip


def seconds_of(text: str) -> int | None:
    """A Go duration in whole seconds, rounded up; None when it is none (or negative)."""
    if text == "0":
        return 0
    if not _ALL.fullmatch(text.strip()):
        return None
    total = sum((Fraction(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Fraction(0))
    return -(-total.numerator // total.denominator)
