"""What the webhook counts. Every label is a word of ours or bounded.

How often was what found? Counted by finding, and put into the meters when somebody asks.

A decision counts under twenty labels. Pods that are alike share one finding, so a review adds one to one number, and
the twenty are worked out once for all of them.

One record, told twice: counted, and logged where a pod was changed or something went wrong.
"""

from collections import Counter as CollectionsCounter
from collections.abc import Callable
from functools import lru_cache, partial
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.admission.admission_result import AdmissionFinding, AdmissionOutcome, AdmissionRecord
from trimtab.policy.recommendation_age import RecommendationAges
from trimtab.runtime.log import Logger
from trimtab.runtime.metrics import Bounded, LabelledHistogram, render, safe

_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5)
_BYTES: Final = (64, 256, 1024, 4096, 16384, 65536, 262144)


class WebhookMetrics:
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
        self._seconds = LabelledHistogram(
            "trimtab_review_duration_seconds",
            "Seconds from a whole request body to the answer, by path.",
            _SECONDS,
            registry,
            label="path",
        )
        self._decisions = Counter(
            "trimtab_decisions",
            "Actions of policies on pods (done, warned of or left out), by policy, action and reason code.",
            ["policy", "action", "reason"],
            registry=registry,
        )
        self._failures = Counter(
            "trimtab_errors",
            "Errors of the webhook by kind; the pods were admitted unchanged, except for the kind `denied`.",
            ["kind"],
            registry=registry,
        )
        self._outcomes = Counter(
            "trimtab_review_outcomes",
            "Reviews of pods by outcome, with dry runs apart.",
            ["outcome", "dry_run"],
            registry=registry,
        )
        self._patch = LabelledHistogram("trimtab_patch_bytes", "Bytes of the patches that were sent.", _BYTES, registry)

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
        """What became of reviews; `outcome` is a word of `trimtab.admission.admission_result.AdmissionOutcome`."""
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
            "Seconds since the facts of the cluster were last known to be current; NaN: never yet.",
            read,
        )

    def policies(self, read: Callable[[], float]) -> None:
        """Read at each scrape."""
        self._gauge("trimtab_policies", "Policies in force in this replica.", read)

    def problems(self, read: Callable[[], float]) -> None:
        """Read at each scrape: policies, recommendations and other objects that cannot be read as they stand."""
        self._gauge("trimtab_invalid_objects", "Objects of the cluster that are invalid.", read)

    def recommendations(self, read: Callable[[], RecommendationAges]) -> None:
        """Read at each scrape: containers of standing workloads by the age of their recommendation."""
        says = (
            "Containers of standing workloads whose recommendation is fresh, past half of the age at which it ends, or "
            "ended."
        )
        gauge = Gauge("trimtab_recommended_containers", says, ("age",), registry=self._registry)
        for age in ("fresh", "aging", "ended"):
            gauge.labels(age).set_function(safe(partial(_of_age, read, age)))

    def paused(self, read: Callable[[], float]) -> None:
        """Read at each scrape."""
        self._gauge("trimtab_paused", "1 while the switch that stops all changes is on.", read)

    def render(self) -> bytes:
        """For `Service.metrics`."""
        return render(self._registry)

    def _gauge(self, name: str, says: str, read: Callable[[], float]) -> None:
        Gauge(name, says, registry=self._registry).set_function(safe(read))


def _of_age(read: Callable[[], RecommendationAges], age: str) -> float:
    return float(getattr(read(), age))


MOST = 512
"""Different findings held back; with more the meters are brought up to date."""
MAX_BYTES = 8 * 1024 * 1024
"""Of the reviews whose findings are held back: a finding holds its pod."""


class DecisionCounter:
    """Counts records for the meters. Safe from any thread."""

    def __init__(self, meters: WebhookMetrics) -> None:
        self._meters = meters
        self._lock = Lock()
        self._bytes = 0
        self._held: dict[tuple[int, bool], list[int]] = {}
        self._findings: dict[int, AdmissionFinding] = {}
        """Held beside their counts, so that no other finding gets their id."""

    def add(self, record: AdmissionRecord) -> None:
        """Count one review."""
        finding = record.finding
        key = id(finding), record.dry_run
        with self._lock:
            count = self._held.get(key)
            if count is not None:
                count[0] += 1
                return
            self._held[key] = [1]
            self._findings[key[0]] = finding
            self._bytes += record.size
            if len(self._held) >= MOST or self._bytes >= MAX_BYTES:
                self._pour()

    def pour(self) -> None:
        """Put all that is held back into the meters."""
        with self._lock:
            self._pour()

    def _pour(self) -> None:
        held, self._held = self._held, {}
        findings, self._findings, self._bytes = self._findings, {}, 0
        decided: CollectionsCounter[tuple[str, str, str]] = CollectionsCounter()
        for (number, dry_run), (times,) in held.items():
            finding = findings[number]
            self._meters.outcome(finding.outcome.value, dry_run=dry_run, times=times)
            if finding.outcome is AdmissionOutcome.CHANGED:
                self._meters.patched(len(finding.patch), times)
            for words in _decided(finding):
                decided[words] += times
        for (policy, what, reason), times in decided.items():
            self._meters.decided(policy, what, reason, times)


def _decided(finding: AdmissionFinding) -> list[tuple[str, str, str]]:
    """Policy, action and reason of each thing that was said of the pod."""
    decision = finding.decision
    if decision is None:
        return []
    changes = decision.changes if finding.outcome is AdmissionOutcome.CHANGED else ()
    found = [(c.policy, action(c.field), c.reason.code.name) for c in changes]
    found += [(left.policy, action(left.field), left.reason.code.name) for left in decision.left]
    return found + [(would.policy, action(would.field), "would-change") for would in decision.would]


@lru_cache(maxsize=4096)
def _action_of_short(field: str) -> str:
    return _action(field)


def action(field: str) -> str:
    """A field without what names a container or a label, so that the words stay few."""
    return _action_of_short(field) if len(field) <= _MAX_CACHED else _action(field)


_MAX_CACHED = 256
"""Characters of a field that is worth remembering; a field holds names that the pod's author chose."""


def _action(field: str) -> str:
    head, bracket, rest = field.partition("[")
    if bracket and head.endswith("ontainers"):
        return rest.partition("].")[2] or head
    return head or "policy"


_OURS = {AdmissionOutcome.UNSAFE: "self-check", AdmissionOutcome.FAILED: "answer"}
"""Outcomes that are bugs of ours, by the kind they are counted as."""


SLOW_SECONDS = 0.5
"""An answer that takes longer makes every other review wait: somebody should know whose it was."""


class DecisionLogger:
    """Tells what came of each review."""

    def __init__(self, meters: WebhookMetrics, log: Logger) -> None:
        self._meters, self._log = meters, log
        self._tally = DecisionCounter(meters)

    def metrics(self) -> bytes:
        """For a scrape, with every review told so far in it."""
        self._tally.pour()
        return self._meters.render()

    def tell(self, record: AdmissionRecord, seconds: float = 0.0) -> None:
        """Count the record; log it where somebody may ask about it later. `seconds`: what the answer took."""
        self._tally.add(record)
        if seconds >= SLOW_SECONDS:
            slow = {"seconds": round(seconds, 3), "bytes": record.size, "user": record.user}
            self._log.warning("a review was slow", **slow, **_where(record))
        outcome, decision = record.outcome, record.decision
        if outcome is AdmissionOutcome.CHANGED and decision is not None:
            policies = record.finding.policies
            self._log.info("pod changed", policies=policies, fields=len(decision.changes), **_where(record))
        elif outcome is AdmissionOutcome.DENIED and decision is not None:
            self._log.warning("pod denied", why=str(decision.denied), user=record.user, **_where(record))
        elif outcome is AdmissionOutcome.TOO_LARGE:
            self._log.warning("pod not decided about", why=record.problem, user=record.user, **_where(record))
            if record.problem:
                self._meters.failed("denied")
        elif outcome in _OURS:
            self._meters.failed(_OURS[outcome])
            self._log.error("review failed", outcome=outcome.value, problem=record.problem, **_where(record))
        for failure in decision.failures if decision is not None else ():
            self._meters.failed("action")
            self._log.error("an action failed", failure=failure, **_where(record))


def _where(record: AdmissionRecord) -> dict[str, object]:
    return {"uid": record.uid, "namespace": record.namespace, "pod": record.name, "dry_run": record.dry_run}
