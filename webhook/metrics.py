"""What the webhook counts. Every label is a word of ours or bounded."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.runtime.metrics import Bounded, Spread, render, safe

_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5)
_BYTES: Final = (64, 256, 1024, 4096, 16384, 65536, 262144)


class Meters:
    """The webhook's meters in a registry of one's own. Methods match what `Service` wants told."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._policy, self._reason = Bounded(), Bounded()
        self._reviews = Counter(
            "trimtab_reviews",
            "Reviews answered, by path and HTTP status.",
            ["path", "code"],
            registry=registry,
        )
        self._answered: dict[tuple[str, int], Counter] = {}
        self._seconds = Spread(
            "trimtab_review_seconds",
            "Seconds from a whole request body to the answer, by path.",
            _SECONDS,
            registry,
            label="path",
        )
        self._decisions = Counter(
            "trimtab_decisions",
            "Actions of policies on pods: done, warned of or left, by policy, action and the reason's code.",
            ["policy", "action", "reason"],
            registry=registry,
        )
        self._failures = Counter(
            "trimtab_failures",
            "Our own mistakes that a net caught, by kind; the pods went through unchanged.",
            ["kind"],
            registry=registry,
        )
        self._outcomes = Counter(
            "trimtab_outcomes",
            "What became of reviews of pods, by outcome, dry runs apart.",
            ["outcome", "dry_run"],
            registry=registry,
        )
        self._patch = Spread("trimtab_patch_bytes", "Bytes of the patches that were sent.", _BYTES, registry)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """For `Service.observe`."""
        # Paths and statuses are few; looking a child up costs more than counting on it.
        counter = self._answered.get((path, status))
        if counter is None:
            counter = self._answered[path, status] = self._reviews.labels(path, str(status))
        counter.inc()
        self._seconds.observe(seconds, path)

    def failed(self, kind: str) -> None:
        """Count a mistake of ours; `kind` is a word of ours, such as `edge` or `self-check`."""
        self._failures.labels(kind).inc()

    def outcome(self, outcome: str, *, dry_run: bool, times: int = 1) -> None:
        """What became of reviews; `outcome` is a word of `trimtab.admission.judge.Outcome`."""
        self._outcomes.labels(outcome, str(dry_run).lower()).inc(times)

    def decided(self, policy: str, action: str, reason: str, times: int = 1) -> None:
        """One action of one policy on pods, with the code of its reason."""
        self._decisions.labels(self._policy(policy), action, self._reason(reason)).inc(times)

    def patched(self, size: int, times: int = 1) -> None:
        """Patches of `size` bytes were sent."""
        self._patch.observe(size, times=times)

    def certificate_expiry(self, read: Callable[[], float]) -> None:
        """Read at each scrape: the moment the certificate ends, in seconds since 1970."""
        self._gauge("trimtab_certificate_expiry_timestamp_seconds", "When the serving certificate ends.", read)

    def facts_age(self, read: Callable[[], float]) -> None:
        """Read at each scrape: seconds since the facts were last known to be right."""
        self._gauge(
            "trimtab_facts_age_seconds",
            "Seconds since the facts decisions rest on were last known to be right; NaN: never yet.",
            read,
        )

    def policies(self, read: Callable[[], float]) -> None:
        """Read at each scrape."""
        self._gauge("trimtab_policies", "Policies in force in this replica.", read)

    def problems(self, read: Callable[[], float]) -> None:
        """Read at each scrape: policies, recommendations and other objects that cannot be read as they stand."""
        self._gauge("trimtab_facts_problems", "Objects of the cluster that are there and make no sense.", read)

    def paused(self, read: Callable[[], float]) -> None:
        """Read at each scrape."""
        self._gauge("trimtab_paused", "1 while the switch that stops all changes is on.", read)

    def render(self) -> bytes:
        """For `Service.metrics`."""
        return render(self._registry)

    def _gauge(self, name: str, says: str, read: Callable[[], float]) -> None:
        Gauge(name, says, registry=self._registry).set_function(safe(read))
