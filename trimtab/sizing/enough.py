"""Is there history to speak from, and how sure are we?"""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.cluster.moment import Seconds
from trimtab.cluster.reason import NotYet
from trimtab.sizing.reasons import INSUFFICIENT
from trimtab.sketch.window import DAY, Window

LEAST_SECONDS = DAY
SLACK = 3600 // 6
"""The last sample of a day comes a little before its end."""
LEAST_SAMPLES = {"cpu": 100, "memory": 4}
"""Memory is told by its peaks, four a day."""
SURE_SECONDS, SURE_SAMPLES = 7 * DAY, {"cpu": 2016, "memory": 28}
"""A week has its weekend: more history adds little."""
FRESH = DAY
"""Usage that ended longer ago is worth half for each further day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one resource: cores, or bytes of peaks."""

    resource: str
    p5: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float
    samples: int
    seconds: int
    """From the first to the last."""
    confidence: float
    """0 to 1: of a week and a sample every five minutes, the scarcer; less where the last sample is old."""

    @property
    def days(self) -> float:
        return round(self.seconds / DAY, 1)


def seen(resource: str, window: Window, now: Seconds | None = None, running: Sequence[float] = ()) -> Seen | NotYet:
    """The window's percentiles; NotYet below a day of history. `now`: how old is it? None does not ask. `running`:
    values of an interval that is not over, and not in the window."""
    whole = window.whole()
    whole.extend(running)
    samples = whole.total
    if window.seconds + SLACK < LEAST_SECONDS or samples < LEAST_SAMPLES[resource]:
        return _not_yet(resource, window.seconds, samples)
    shares = (0.05, 0.5, 0.9, 0.95, 0.99)
    p5, p50, p90, p95, p99 = whole.percentiles(shares)
    return Seen(
        resource=resource, p5=p5, p50=p50, p90=p90, p95=p95, p99=p99, max=whole.top, samples=samples,
        seconds=window.seconds, confidence=confidence(resource, window.seconds, samples, _age(window, now)),
    )  # fmt: skip


def _age(window: Window, now: Seconds | None) -> int:
    return 0 if now is None else max(0, now - window.last)


def confidence(resource: str, seconds: int, samples: int, age: int = 0) -> float:
    """How much of what would make us sure is there."""
    amount = min(1.0, seconds / SURE_SECONDS, samples / SURE_SAMPLES[resource])
    faded: float = 2.0 ** -max(0.0, (age - FRESH) / DAY)
    return round(amount * faded, 2)


def _not_yet(resource: str, seconds: int, samples: int) -> NotYet:
    unit = "peaks" if resource == "memory" else "samples"
    have = f"{seconds / 3600:.1f} hours, {samples} {unit}"
    need = f"24 hours, {LEAST_SAMPLES[resource]} {unit}"
    return NotYet(reason=INSUFFICIENT(f"too little is known of its {resource}"), have=have, need=need)
