"""The watchdog in numbers. Every label is a word of ours or bounded."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.admission.harm.counts import Counts
from trimtab.admission.running.report import Finding, Findings
from trimtab.admission.running.survey import Seen
from trimtab.cluster.reason import NotYet
from trimtab.runtime.metrics import Bounded


class Metrics:
    """Set after each look."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool], age: Callable[[], float]) -> None:
        self.registry = registry
        self._policy, self._reason = Bounded(), Bounded()

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_{name}", says, labels, registry=registry)

        self.unpatched = gauge("unpatched_pods", "Running pods that lack what policy says.", "policy", "reason")
        self.would = gauge("would_change_pods", "Running pods a policy that only watches would change.", "policy")
        self.skipped = gauge("skipped_pods", "Running pods a policy's match means, left out.", "policy", "reason")
        self.overhead = gauge("wrong_overhead_pods", "Running pods whose overhead is not their class's.", "reason")
        self.refused = gauge("refused_pods", "Running pods that would be denied if they were created now.")
        self.setting = gauge("overhead_setting_wrong", "1 while pods show that the setting is wrong; NaN: not known.")
        self.pods = gauge("policy_pods", "Running pods to each policy: matched, changed, overruled.", "policy", "state")
        self.harm = gauge("harm_pods", "Pods, and those hit, that carry a policy's change or lack it.",
                          "policy", "trouble", "side", "count")  # fmt: skip
        self.running = gauge("running_pods", "Pods that run, as the watchdog sees them.")
        self.alike = gauge("running_pod_kinds", "Kinds of pods that are decided alike.")
        self.behind = gauge("watchdog_behind", "Kinds of pods left for the next look.")
        self.seconds = gauge("watchdog_look_seconds", "How long the last look took.")
        self.lost = gauge("watchdog_events_lost", "Events that could not be written.")
        self.brakes = Counter("trimtab_harm_brakes", "Policies found harmful, by what became of them.",
                              ["policy", "trouble", "done"], registry=registry)  # fmt: skip
        self.faults = Counter("trimtab_watchdog_faults", "What went wrong, by kind.", ["kind"], registry=registry)
        gauge("watchdog_leading", "1 in the replica that leads.").set_function(leading)
        gauge("watchdog_data_age_seconds", "Age of what the watches hold.").set_function(age)

    def look(self, seen: Seen, found: Findings, seconds: float) -> None:
        """One look and how long it took."""
        self.running.set(seen.pods)
        self.alike.set(len(seen.groups))
        self.behind.set(seen.behind)
        self.seconds.set(seconds)
        self._by_both(self.unpatched, found.unpatched)
        self._by_both(self.skipped, found.left_out)
        self.refused.set(sum(len(one.pods) for one in found.refused))
        self.would.clear()
        self.pods.clear()
        for name, tally in found.tallies.items():
            policy = self._policy(name)
            self.would.labels(policy).set(tally.would)
            for state in ("matched", "changed", "overruled"):
                self.pods.labels(policy, state).set(getattr(tally, state))
        self.overhead.clear()
        for (_, reason), pods in _summed(found.overhead).items():
            self.overhead.labels(reason).set(pods)
        self.setting.set(float("nan") if isinstance(found.filled_by, NotYet) else found.setting is not None)

    def compared(self, counts: dict[str, Counts]) -> None:
        """What the harm brake looks at."""
        self.harm.clear()
        for policy, by_trouble in counts.items():
            for trouble, compared in by_trouble.items():
                for side in ("before", "after"):
                    count = getattr(compared, side)
                    for what in ("pods", "hit"):
                        self.harm.labels(self._policy(policy), trouble, side, what).set(getattr(count, what))

    def braked(self, policy: str, trouble: str, done: str) -> None:
        """A policy was found harmful; `done`: put-to-warn, told, failed."""
        self.brakes.labels(self._policy(policy), trouble, done).inc()

    def _by_both(self, gauge: Gauge, found: Iterable[Finding]) -> None:
        gauge.clear()
        for (policy, reason), pods in _summed(found).items():
            gauge.labels(self._policy(policy), self._reason(reason)).set(pods)


def _summed(found: Iterable[Finding]) -> Count[tuple[str, str]]:
    """Pods by policy and reason."""
    total: Count[tuple[str, str]] = Count()
    for one in found:
        total[one.policy, one.reason.code.name] += len(one.pods)
    return total
