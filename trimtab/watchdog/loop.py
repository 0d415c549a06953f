"""Runs the watchdog's rounds: audits the pods, judges the policies, writes statuses and records Events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.drift import AuditState as AuditState
from trimtab.admission.audit.findings import AuditFinding, Findings, PolicyTally, build_findings
from trimtab.admission.audit.harm import (
    Counts,
    FailureHistory,
    HarmEvidence,
    Verdict,
    Watched,
    compare_failures,
    judge_harm,
)
from trimtab.admission.audit.original_pod import AuditedPod
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.timestamps import format_timestamp
from trimtab.kube.events import About
from trimtab.kube.resources import LIST_SOURCES
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.policy.required_action_rules import required_actions
from trimtab.watchdog.harm_brake import BrakeActuator, Policy
from trimtab.watchdog.metrics import Metrics
from trimtab.watchdog.pod_watcher import Evictions
from trimtab.watchdog.policy_events import PolicyEventRecorder
from trimtab.watchdog.policy_state import AuditStateBuilder, ObservedPolicy
from trimtab.watchdog.policy_status import PolicyObservation, PolicyStatusWriter, build_status, restored_counts

CATCH_UP_SECONDS = 1.0
"""The number of seconds until the next round, as long as some pod templates have not been decided yet."""


@dataclass(slots=True, kw_only=True)
class Loop:
    """What the leading replica of the watchdog does. Only one thread may use it."""

    state_builder: AuditStateBuilder
    pods: Callable[[], Iterable[AuditedPod]]
    is_fresh: Callable[[], bool]
    """Returns whether the data from the watches is recent enough to act on."""
    brake: BrakeActuator | None
    """What is done with harmful policies, or None if policies are not checked for harm."""
    statuses: PolicyStatusWriter
    event_recorder: PolicyEventRecorder
    metrics: Metrics
    interval: float
    now: Callable[[], float]
    """Returns the time in seconds since 1970."""
    elapsed: Callable[[], float]
    auditor: Auditor
    history: FailureHistory
    _evictions: Evictions = field(default_factory=Evictions)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _stopped_now: set[str] = field(default_factory=set)
    """The policies that were set to `warn` in this round."""
    _brakes: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Policy → the version of it that was found harmful, and what was done. The watch may not have delivered that
    change yet."""
    _restored: set[tuple[str, str]] = field(default_factory=set)

    def run_round(self) -> float:
        """Runs one round, and returns the number of seconds until the next. Nothing is written while the data is out of
        date or some templates are not decided yet."""
        started, now = self.elapsed(), self.now()
        inputs = self.state_builder.build_inputs(int(now))
        watched = self._watched(inputs)
        self._count_deleted(watched, now)
        pods = tuple(self.pods())
        for pod in self._evictions.find_new(pods):
            self.metrics.count_eviction(value_or(pod.alike.pod.spec.runtime_class_name, ""))
        state = self.auditor.audit_pods(pods, inputs)
        result = build_findings(state, inputs, self.state_builder.change_times())
        if self.is_fresh() and not state.behind:
            counts = self._compare_harm(pods, state, watched, now)
            self._write_statuses(result, counts, now)
            self.event_recorder.record_findings(result, self._event_object)
        self.metrics.observe_round(state, result, inputs.facts, self.elapsed() - started)
        self.metrics.lost.set(self.event_recorder.recorder.lost_events)
        return CATCH_UP_SECONDS if state.behind else self.interval

    def _watched(self, inputs: AuditInputs) -> list[Watched]:
        """Returns the policies that are checked for harm, with the counts that an earlier leader has stored in their
        status."""
        if self.brake is None:
            return []
        return [
            self._watch_policy(policy.name, has_required_action=bool(required_actions(policy.spec.actions)))
            for policy in inputs.policies.all
            if policy.spec.enabled and policy.spec.mode == "apply"
        ]

    def _watch_policy(self, name: str, *, has_required_action: bool) -> Watched:
        policy = self.state_builder.policies.get(name)
        watched = Watched(
            name=name, since=policy.changed_at if policy else None, has_required_action=has_required_action
        )
        if policy is not None and policy.status.harm and (name, policy.spec_written_at) not in self._restored:
            self._restored.add((name, policy.spec_written_at))
            self.history.restore_counts(watched, restored_counts(policy.status.harm, policy.spec_written_at))
        return watched

    def _count_deleted(self, watched: list[Watched], now: float) -> None:
        for pod in self.state_builder.take_deleted_pods():
            self.history.record_deleted(pod, self.auditor.result_of(pod.alike), watched, now)
        self.history.drop_old_counts(now)

    def _compare_harm(
        self, pods: tuple[AuditedPod, ...], state: AuditState, watched: list[Watched], now: float
    ) -> dict[str, Counts]:
        counts = compare_failures(pods, state.results, watched, self.history, now)
        self.metrics.set_comparisons(counts)
        required = {policy.name for policy in watched if policy.has_required_action}
        self._verdicts = {
            name: judge_harm(name, by_failure, self.history.terms, has_required_action=name in required)
            for name, by_failure in counts.items()
        }
        self._stopped_now = set()
        for name, verdict in self._verdicts.items():
            if isinstance(verdict, HarmEvidence):
                self._set_to_warn(name, verdict)
        return counts

    def _set_to_warn(self, name: str, harm: HarmEvidence) -> None:
        observed = self.state_builder.policies.get(name)
        version = observed.version if observed else ""
        if self.brake is None:
            return
        braked_version = version or str(harm.trouble)
        done = ("set-to-warn", "reported") if harm.is_brake_allowed else ("set-to-warn", "reported", "withheld")
        if self._brakes.get(name) in [(braked_version, action) for action in done]:
            # The watch has not delivered the brake yet: the status that is written now must not release it.
            if self._brakes[name][1] == "set-to-warn":
                self._stopped_now.add(name)
            return
        policy = Policy(name, observed.uid, version, observed.generation) if observed else Policy(name, "", version)
        action = self.brake.set_to_warn(policy, harm) if harm.is_brake_allowed else "withheld"
        self._brakes[name] = braked_version, action  # a failed patch is tried again in the next round
        self.metrics.count_brake(name, harm.trouble, action)
        if observed is None:
            return
        if action == "set-to-warn":
            self._stopped_now.add(name)
        about = About(kind=KIND, name=name, uid=observed.uid, api_version=API_VERSION)
        text = f"{_ACTION_TEXTS[action]}: {harm.reason}" if harm.is_brake_allowed else str(harm.reason)
        self.event_recorder.record_policy_event(about, harm.reason.code, text)

    def _write_statuses(self, result: Findings, counts: dict[str, Counts], now: float) -> None:
        self.statuses.drop_others(set(self.state_builder.policies))
        for name, policy in self.state_builder.policies.items():
            observation = self._observe_policy(policy, result.tallies.get(name) or PolicyTally(), counts.get(name))
            self.statuses.write_status(name, policy.status, build_status(observation, format_timestamp(int(now))))

    def _observe_policy(self, policy: ObservedPolicy, tally: PolicyTally, counts: Counts | None) -> PolicyObservation:
        is_braked = policy.name in self._stopped_now
        return PolicyObservation(
            name=policy.name,
            generation=policy.generation,
            mode="warn" if is_braked else policy.mode,
            spec_written_at=policy.spec_written_at,
            mistakes=self.state_builder.policy_mistakes(policy.name),
            tally=tally,
            counts=counts,
            braked=is_braked,
            verdict=self._verdicts.get(policy.name),
            before=policy.status,
        )

    def _event_object(self, finding: AuditFinding) -> About:
        """Returns the object for an Event about a finding: the topmost owner whose UID is known; otherwise the direct
        owner, as the pod names it; otherwise the pod."""
        namespace = finding.alike.namespace
        for owner in reversed(finding.owners):
            uid = self.state_builder.uids.get(owner)
            if uid is not None:
                version = LIST_SOURCES[owner.kind].group_version
                return About(kind=owner.kind, name=owner.name, namespace=namespace, uid=uid, api_version=version)
        nearest = finding.alike.pod.metadata.controller_owner
        if nearest is not None:
            return About(
                kind=nearest.kind_name,
                name=nearest.name,
                namespace=namespace,
                uid=nearest.uid,
                api_version=nearest.api_version or "v1",
            )
        pod = min(finding.pods, key=lambda pod: pod.name)
        return About(kind="Pod", name=pod.name, namespace=namespace, uid=pod.uid)


_ACTION_TEXTS = {"set-to-warn": "set to warn", "reported": "would be set to warn", "failed": "could not be set to warn"}
