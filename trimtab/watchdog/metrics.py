"""The watchdog in numbers. Every label is a word of ours or bounded."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.admission.harm.counts import Counts
from trimtab.admission.running.report import Finding, Findings
from trimtab.admission.running.survey import Seen
from trimtab.cluster.reason import NotYet
from trimtab.cluster.resources import QoS, qos
from trimtab.runtime.metrics import Bounded


class Metrics:
    """Set after each look."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool], age: Callable[[], float]) -> None:
        self.registry = registry
        self._policy, self._reason = Bounded(), Bounded()

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_{name}", says, labels, registry=registry)

        self.unpatched = gauge(
            "unpatched_pods", "Running pods that lack what policy says, by why they lack it.", "policy", "reason"
        )
        self.would = gauge(
            "would_change_pods", "Running pods that a policy in mode warn or audit would change.", "policy"
        )
        self.skipped = gauge(
            "skipped_pods", "Running pods that a policy matches and leaves out, by why.", "policy", "reason"
        )
        self.overhead = gauge(
            "wrong_overhead_pods", "Running pods whose overhead is not their RuntimeClass's, by why.", "reason"
        )
        self.refused = gauge("refused_pods", "Running pods that would be denied if they were created now.")
        self.setting = gauge(
            "overhead_setting_wrong", "1 while pods show that the overhead setting is wrong; NaN: not known yet."
        )
        self.pods = gauge("policy_pods", "Running pods to each policy: matched, changed, overruled.", "policy", "state")
        self.harm = gauge("harm_pods", "Pods that carry a policy's change (after) or lack it (before), and those hit.",
                          "policy", "trouble", "side", "count")  # fmt: skip
        self.qos = gauge("qos_pods", "Running pods by their quality of service class.", "qos")
        self.running = gauge("running_pods", "Pods that run, as the watchdog sees them.")
        self.alike = gauge("running_pod_kinds", "Groups of running pods that are alike, and decided about once.")
        self.behind = gauge("watchdog_behind", "Groups of pods that the last look did not come to.")
        self.seconds = gauge("watchdog_look_seconds", "How long the last look took.")
        self.lost = gauge("watchdog_events_lost", "Events that could not be written since it started.")
        self.brakes = Counter("trimtab_harm_brakes", "Policies found harmful: put-to-warn, told, failed.",
                              ["policy", "trouble", "done"], registry=registry)  # fmt: skip
        self.faults = Counter(
            "trimtab_watchdog_faults", "Looks that did not come to their end, by kind.", ["kind"], registry=registry
        )
        gauge("watchdog_leading", "1 in the replica that leads, 0 in the others.").set_function(leading)
        gauge(
            "watchdog_data_age_seconds", "Seconds since what the watches hold was last known to be right."
        ).set_function(age)

    def look(self, seen: Seen, found: Findings, seconds: float) -> None:
        """One look and how long it took."""
        self.running.set(seen.pods)
        self.alike.set(len(seen.groups))
        self.behind.set(seen.behind)
        self.seconds.set(seconds)
        for name, pods in _by_qos(seen).items():
            self.qos.labels(name).set(pods)
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


def _by_qos(seen: Seen) -> dict[str, int]:
    """All three classes: that there is none of one is known, too."""
    found = dict.fromkeys(map(str, QoS), 0)
    for alike, pods in seen.groups.items():
        found[str(qos(alike.pod.spec))] += len(pods)
    return found


def _summed(found: Iterable[Finding]) -> Count[tuple[str, str]]:
    """Pods by policy and reason."""
    total: Count[tuple[str, str]] = Count()
    for one in found:
        total[one.policy, one.reason.code.name] += len(one.pods)
    return total
