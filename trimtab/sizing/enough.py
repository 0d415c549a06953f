"""Is there history to speak from, and how sure are we?"""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.cluster.moment import Seconds
from trimtab.cluster.reason import NotYet
from trimtab.sizing.reasons import INSUFFICIENT
from trimtab.sketch.hours import DAY
from trimtab.sketch.window import Window

LEAST_SECONDS = DAY
SLACK = 3600 // 6
"""The last sample of a day comes a little before its end."""
LEAST_DAYS = 7
"""What runs at times, such as a nightly job, is known by its runs: seen on so many days, for however long."""
LEAST_SAMPLES = {"cpu": 100, "memory": 4}
"""Memory is told by its peaks, four a day."""
LEAST_OF_RUNS = {"cpu": 20, "memory": 4}
"""Of a CronJob, whose runs may be short. Of fewer than twenty values P95 is the greatest."""
RUNS = "CronJob"
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
    """For how long it was seen; gaps are none of it."""
    confidence: float
    """0 to 1: of a week and a sample every five minutes, the scarcer; less where the last sample is old."""
    days_seen: int = 1
    """On how many days, for however long."""

    @property
    def days(self) -> float:
        return round(self.seconds / DAY, 1)

    @property
    def span(self) -> str:
        """For people: of what runs at times, the hours as well as the days."""
        if self.seconds + SLACK >= DAY:
            return f"{self.days:g} days"
        return f"{self.seconds / 3600:.0f} hours on {self.days_seen} days"


def seen(
    resource: str, window: Window, now: Seconds | None = None, running: Sequence[float] = (), *, kind: str = ""
) -> Seen | NotYet:
    """The window's percentiles; NotYet below a day of history, or runs on seven days. `now`: how old is it? None does
    not ask. `running`: values of an interval that is not over, and not in the window. `kind`: of the workload."""
    whole = window.whole()
    whole.extend(running)
    samples = whole.total
    least = (LEAST_OF_RUNS if kind == RUNS else LEAST_SAMPLES)[resource]
    if samples < least or not _long(window):
        return _not_yet(resource, window, samples, least)
    shares = (0.05, 0.5, 0.9, 0.95, 0.99)
    p5, p50, p90, p95, p99 = whole.percentiles(shares)
    return Seen(
        resource=resource, p5=p5, p50=p50, p90=p90, p95=p95, p99=p99, max=whole.top, samples=samples,
        seconds=window.seconds, confidence=confidence(resource, window.seconds, samples, _age(window, now)),
        days_seen=window.days_seen,
    )  # fmt: skip


def _long(window: Window) -> bool:
    return window.seconds + SLACK >= LEAST_SECONDS or window.days_seen >= LEAST_DAYS


def _age(window: Window, now: Seconds | None) -> int:
    return 0 if now is None else max(0, now - window.last)


def confidence(resource: str, seconds: int, samples: int, age: int = 0) -> float:
    """How much of what would make us sure is there."""
    amount = min(1.0, seconds / SURE_SECONDS, samples / SURE_SAMPLES[resource])
    faded: float = 2.0 ** -max(0.0, (age - FRESH) / DAY)
    return round(amount * faded, 2)


def _not_yet(resource: str, window: Window, samples: int, least: int) -> NotYet:
    """Of what comes and goes it is told on how many days it was seen: they may be enough before its hours are."""
    unit, days = "peaks" if resource == "memory" else "samples", window.days_seen
    goes = days > 2 and not window.seconds + SLACK >= LEAST_SECONDS
    have = f"{window.seconds / 3600:.1f} hours{f' on {days} days' if goes else ''}, {samples} {unit}"
    need = f"24 hours{f' or {LEAST_DAYS} days' if goes else ''}, {least} {unit}"
    return NotYet(reason=INSUFFICIENT(f"too little is known of its {resource}"), have=have, need=need)
