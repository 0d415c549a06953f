"""The webhook's metrics, counted by finding, and the log lines about decisions. Every label has a bounded set of
values.

A decision counts under twenty labels. Similar pods share their reasons, so a review only increments one number; the
labels are computed once per decision, when the metrics are scraped.
"""

from collections import Counter as CollectionsCounter
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.admission.admission_result import AdmissionOutcome, AdmissionRecord
from trimtab.admission.handler import AdmissionResponse
from trimtab.admission.template_cache import Lookup
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.bounded_cache import cache_short_strings
from trimtab.cluster.owner import controller_by_hash, controller_key
from trimtab.policy.recommendation_age import RecommendationAges
from trimtab.runtime.log import Logger
from trimtab.runtime.metrics import Bounded, LabelledHistogram, add_build_info, nan_on_error, render_metrics

_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5)
_BYTES: Final = (64, 256, 1024, 4096, 16384, 65536, 262144)


class WebhookMetrics:
    """The webhook's metrics in a registry. Methods match the fields of `Service`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        add_build_info(registry)
        self._policy_label, self._reason_label = Bounded(), Bounded()
        self._reviews = Counter(
            "trimtab_reviews",
            "The number of reviews that were answered, by path and HTTP status.",
            ["path", "code"],
            registry=registry,
        )
        self._review_counters: dict[tuple[str, int], Counter] = {}
        self._seconds = LabelledHistogram(
            "trimtab_review_duration_seconds",
            "The seconds from the end of the request body to the answer, by path.",
            _SECONDS,
            registry,
            label="path",
        )
        self._decisions = Counter(
            "trimtab_decisions",
            "The number of actions of policies on pods (done, warned of or left out), by policy, action and "
            "reason code.",
            ["policy", "action", "reason"],
            registry=registry,
        )
        self._failures = Counter(
            "trimtab_errors",
            "The number of errors of the webhook by kind; the pods were admitted unchanged, except for the kind "
            "`denied`.",
            ["kind"],
            registry=registry,
        )
        self._outcomes = Counter(
            "trimtab_review_outcomes",
            "The number of reviews of pods by outcome; dry runs are counted separately.",
            ["outcome", "dry_run"],
            registry=registry,
        )
        self._patch_bytes = LabelledHistogram(
            "trimtab_patch_bytes", "The number of bytes of the patches that were sent.", _BYTES, registry
        )
        self._lookups = Counter(
            "trimtab_decision_lookups",
            "The number of pods by how their decision was found: that of the same pod, that of a similar one, or none, "
            "with the reason.",
            ["result"],
            registry=registry,
        )
        self._counted_lookups: CollectionsCounter[str] = CollectionsCounter()

    def observe_review(self, path: str, status: int, seconds: float) -> None:
        """Counts a review; for `Service.observe`."""
        # Paths and statuses are few, and `labels` costs more than `inc`.
        counter = self._review_counters.get((path, status))
        if counter is None:
            counter = self._review_counters[path, status] = self._reviews.labels(path, str(status))
        counter.inc()
        self._seconds.observe(seconds, path)

    def count_failure(self, kind: str) -> None:
        """Counts a failure of Trimtab; `kind` is a fixed word, such as `edge` or `self-check`."""
        self._failures.labels(kind).inc()

    def count_outcome(self, outcome: str, *, dry_run: bool, times: int = 1) -> None:
        """Counts reviews by outcome, a value of `trimtab.admission.admission_result.AdmissionOutcome`."""
        self._outcomes.labels(outcome, str(dry_run).lower()).inc(times)

    def count_decision(self, policy: str, action: str, reason: str, times: int = 1) -> None:
        """Counts an action of a policy on pods, with the code of its reason."""
        self._decisions.labels(self._policy_label(policy), action, self._reason_label(reason)).inc(times)

    def count_lookups(self, totals: Mapping[Lookup, int]) -> None:
        """Counts lookups of decisions since the last call. `totals` are their numbers since the process began."""
        for lookup, total in totals.items():
            self._lookups.labels(lookup.value).inc(total - self._counted_lookups[lookup.value])
            self._counted_lookups[lookup.value] = total

    def observe_patch(self, size: int, times: int = 1) -> None:
        """Counts patches of `size` bytes."""
        self._patch_bytes.observe(size, times=times)

    def add_certificate_expiry(self, read: Callable[[], float]) -> None:
        """Adds a gauge, read at each scrape: when the certificate expires, in seconds since 1970."""
        self._add_gauge(
            "trimtab_certificate_expiry_timestamp_seconds",
            "The time at which the serving certificate expires, in seconds since 1970.",
            read,
        )

    def add_facts_age(self, read: Callable[[], float]) -> None:
        """Adds a gauge, read at each scrape: seconds since the facts were last known to be current."""
        self._add_gauge(
            "trimtab_facts_age_seconds",
            "The seconds since the webhook's view of the cluster was last known to be current; NaN if it never was.",
            read,
        )

    def add_policies(self, read: Callable[[], float]) -> None:
        """Adds a gauge, read at each scrape: the number of policies in force."""
        self._add_gauge("trimtab_policies", "The number of policies in force in this replica.", read)

    def add_avoidable_policies(self, read: Callable[[], float]) -> None:
        """Adds a gauge, read at each scrape: policies whose required action the author of a pod can avoid."""
        self._add_gauge(
            "trimtab_avoidable_policies",
            "The number of policies in force with a required action that the author of a pod can avoid by an image or "
            "an exclusion.",
            read,
        )

    def add_problems(self, read: Callable[[], float]) -> None:
        """Adds a gauge, read at each scrape: policies, recommendations and other objects that cannot be decoded."""
        self._add_gauge("trimtab_invalid_objects", "The number of objects of the cluster that are invalid.", read)

    def add_recommendations(self, read: Callable[[], RecommendationAges]) -> None:
        """Adds gauges, read at each scrape: containers of existing workloads by the age of their recommendation."""
        says = (
            "The number of containers of existing workloads, by state of their recommendation: fresh, past half "
            "of the age at which it expires, or expired."
        )
        gauge = Gauge("trimtab_recommended_containers", says, ("age",), registry=self._registry)
        for age in ("fresh", "aging", "ended"):
            gauge.labels(age).set_function(nan_on_error(partial(_containers_of_age, read, age)))

    def add_paused(self, read: Callable[[], float]) -> None:
        """Adds a gauge, read at each scrape: whether all changes are paused."""
        self._add_gauge("trimtab_paused", "1 while Trimtab is paused, so no pod is changed.", read)

    def render_text(self) -> bytes:
        """Returns the Prometheus text; for `Service.metrics`."""
        return render_metrics(self._registry)

    def _add_gauge(self, name: str, says: str, read: Callable[[], float]) -> None:
        Gauge(name, says, registry=self._registry).set_function(nan_on_error(read))


def _containers_of_age(read: Callable[[], RecommendationAges], age: str) -> float:
    return float(getattr(read(), age))


MAX_RECORDS = 512
"""The maximum number of different records counted before they are added to the metrics."""
MAX_RECORD_BYTES = 8 * 1024 * 1024
"""The maximum bytes of reviews whose records are kept, because a record holds its pod."""


_CountKey = tuple[AdmissionOutcome, bool, int, int, int, int]


class DecisionCounter:
    """Counts responses for the metrics, those that say the same together. Safe for any thread."""

    def __init__(self, meters: WebhookMetrics) -> None:
        self._meters = meters
        self._lock = Lock()
        self._bytes = 0
        self._counts: dict[_CountKey, int] = {}
        self._records: dict[_CountKey, AdmissionRecord] = {}
        """Kept while their counts are, so that no other tuple gets the same id."""

    def count_response(self, response: AdmissionResponse) -> None:
        """Counts one review."""
        record = response.record
        decision, size = record.decision, len(record.patch)
        # Pods that share a decision have records of their own with the very same reasons.
        parts = (0, 0, 0) if decision is None else (id(decision.changes), id(decision.fields_kept), id(decision.would))
        key = (record.outcome, response.request.dry_run, size, *parts)
        with self._lock:
            count = self._counts.get(key)
            if count is not None:
                self._counts[key] = count + 1
                return
            self._counts[key] = 1
            self._records[key] = record
            self._bytes += response.review_bytes
            if len(self._counts) >= MAX_RECORDS or self._bytes >= MAX_RECORD_BYTES:
                self._flush()

    def flush_counts(self) -> None:
        """Adds all counts to the metrics."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        counts, self._counts = self._counts, {}
        records, self._records, self._bytes = self._records, {}, 0
        decided: CollectionsCounter[tuple[str, str, str]] = CollectionsCounter()
        outcomes: CollectionsCounter[tuple[str, bool]] = CollectionsCounter()
        patches: CollectionsCounter[int] = CollectionsCounter()
        for key, times in counts.items():
            record, dry_run = records[key], key[1]
            outcomes[record.outcome.value, dry_run] += times
            if record.outcome is AdmissionOutcome.CHANGED:
                patches[len(record.patch)] += times
            results = _list_results(record)
            if times == 1:
                decided.update(results)  # in C: most records of new pods are counted once
            else:
                for words in results:
                    decided[words] += times
        # Together: a label of a metric costs more than all else that is done for a record.
        for (outcome, dry_run), times in outcomes.items():
            self._meters.count_outcome(outcome, dry_run=dry_run, times=times)
        for size, times in patches.items():
            self._meters.observe_patch(size, times)
        for (policy, field, reason), times in decided.items():
            self._meters.count_decision(policy, action_label(field), reason, times)


def _list_results(record: AdmissionRecord) -> list[tuple[str, str, str]]:
    """Returns policy, field and reason of each change, omission and possible change of the pod."""
    decision = record.decision
    if decision is None:
        return []
    changes = decision.changes if record.outcome is AdmissionOutcome.CHANGED else ()
    results = [(one.policy, one.field, one.reason.code.name) for one in changes]
    results += [(one.policy, one.field, one.reason.code.name) for one in decision.fields_kept]
    return results + [(one.policy, one.field, "would-change") for one in decision.would]


@cache_short_strings(max_length=256, max_entries=4096)
def action_label(field: str) -> str:
    """Returns the field without the names of containers and labels, so that the set of values stays small."""
    head, bracket, remainder = field.partition("[")
    if bracket and head.endswith("ontainers"):
        return remainder.partition("].")[2] or head
    return head or "policy"


_FAILURE_KINDS = {AdmissionOutcome.UNSAFE: "self-check", AdmissionOutcome.FAILED: "answer"}
"""Outcomes that are bugs of Trimtab, with the kind they are counted as."""


SLOW_SECONDS = 0.5
"""A response that takes longer is logged with its user, because it delays all other reviews."""


class DecisionLogger:
    """Logs and counts the result of each review."""

    def __init__(self, meters: WebhookMetrics, log: Logger, lookups: Mapping[Lookup, int] | None = None) -> None:
        """lookups: how decisions were found; the numbers grow while the process runs."""
        # Bound once: structlog's own proxy binds the logger anew for each line.
        self._meters, self._log = meters, log.bind()
        self._lookups: Mapping[Lookup, int] = {} if lookups is None else lookups
        self._counter = DecisionCounter(meters)

    def render_metrics(self) -> bytes:
        """Returns the Prometheus text with all reviews so far."""
        self._counter.flush_counts()
        # A copy: a review on another thread may find a decision in a way that did not occur before.
        self._meters.count_lookups(dict(self._lookups))
        return self._meters.render_text()

    def log_review(self, response: AdmissionResponse, seconds: float = 0.0) -> None:
        """Counts the response, and logs it if a pod was changed or denied, or something failed. `seconds`: the duration
        of the review."""
        self._counter.count_response(response)
        record, request = response.record, response.request
        if seconds >= SLOW_SECONDS:
            slow = {"seconds": round(seconds, 3), "bytes": response.review_bytes, "user": request.user_name}
            self._log.warning("the review took long", **slow, **_log_fields(response))
        outcome, decision = record.outcome, record.decision
        if outcome is AdmissionOutcome.CHANGED and decision is not None:
            changed = [change.field for change in decision.changes[:MAX_LOGGED_FIELDS]]
            self._log.info("pod changed", policies=record.policies, fields=changed, **_log_fields(response))
        elif outcome is AdmissionOutcome.DENIED and decision is not None:
            self._log.warning("pod denied", why=str(decision.denied), user=request.user_name, **_log_fields(response))
        elif outcome is AdmissionOutcome.TOO_LARGE:
            self._log.warning(
                "the pod is too large, so Trimtab did not decide about it",
                why=record.problem,
                user=request.user_name,
                **_log_fields(response),
            )
            if record.problem:
                self._meters.count_failure("denied")
        elif outcome in _FAILURE_KINDS:
            self._meters.count_failure(_FAILURE_KINDS[outcome])
            self._log.error("review failed", outcome=outcome.value, problem=record.problem, **_log_fields(response))
        for failure in decision.failures if decision is not None else ():
            self._meters.count_failure("action")
            self._log.error("an action failed", failure=failure, **_log_fields(response))


MAX_LOGGED_FIELDS = 20
"""A pod may have hundreds of containers, and each of them several changed fields."""


def _log_fields(response: AdmissionResponse) -> dict[str, object]:
    """Returns who the review is about.

    The API server generates the name of a controller's pod after admission: `pod` is then the prefix of the name, and
    `owner` the topmost controller that the pod itself shows.
    """
    decision, request = response.record.decision, response.request
    metadata = decision.pod.metadata if decision is not None else None
    owner = ""
    if metadata is not None and (controller := controller_key(metadata, request.namespace)) is not None:
        owner = str(controller_by_hash(value_or(metadata.labels, {}), controller) or controller)
    return {
        "uid": request.uid,
        "namespace": request.namespace,
        "pod": request.name or (metadata.generate_name if metadata is not None else ""),
        "owner": owner,
        "dry_run": request.dry_run,
    }
