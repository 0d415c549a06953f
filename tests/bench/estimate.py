"""What would the VPA's recommender have said? (recommender/logic, VPA 1.6)"""

from dataclasses import dataclass

from trimtab.histogram.vpa import DAY, Histogram

MOST = 10**14
"""The largest amount it knows; "100T" is what people see of it."""
MARGIN = 0.15
TARGET, LOWER, UPPER = 0.9, 0.5, 0.95
LEAST = {"cpu": 25, "memory": 250 << 20}
"""Of a pod, in millicores and bytes; its containers share it evenly."""


@dataclass(frozen=True, slots=True)
class History:
    """How much has been seen: seconds from first to last, and samples of cpu."""

    seconds: float
    samples: int

    def confidence(self, interval: float = DAY) -> float:
        """Days of history, or days' worth of a sample a minute, the smaller."""
        return min(self.seconds / interval, self.samples / (interval / 60))


def amount(resource: str, value: float) -> int:
    """Millicores or bytes, truncated, from nothing to the most there is."""
    return int(min(MOST, max(0.0, value * 1000 if resource == "cpu" else value)))


def with_margin(number: int, margin: float = MARGIN) -> int:
    return number + int(number * margin)


def scaled(number: int, multiplier: float, exponent: float, confidence: float) -> int:
    """(1 + multiplier / confidence) ** exponent; with no confidence everything, or nothing."""
    if confidence == 0:
        return MOST if exponent > 0 else 0
    return int(min(float(MOST), number * factor(multiplier, exponent, confidence)))


def factor(multiplier: float, exponent: float, confidence: float) -> float:
    return float((1 + multiplier / confidence) ** exponent)


def at_least(resource: str, number: int, containers: int = 1) -> int:
    return max(number, int(LEAST[resource] / containers))


def target(resource: str, histogram: Histogram, containers: int = 1) -> int:
    return at_least(resource, with_margin(amount(resource, histogram.percentile(TARGET))), containers)


def lower(resource: str, histogram: Histogram, history: History, containers: int = 1) -> int:
    base = with_margin(amount(resource, histogram.percentile(LOWER)))
    return at_least(resource, scaled(base, 0.001, -2, history.confidence()), containers)


def upper(resource: str, histogram: Histogram, history: History, containers: int = 1) -> int:
    base = with_margin(amount(resource, histogram.percentile(UPPER)))
    return at_least(resource, scaled(base, 1.0, 1, history.confidence()), containers)


def rounded_up(number: int, step: int) -> int:
    """To a multiple (--round-cpu-millicores, --round-memory-bytes). Raises ValueError for a step of nothing or less."""
    if step < 1:
        raise ValueError(f"a step of {step}")
    return -(-number // step) * step
