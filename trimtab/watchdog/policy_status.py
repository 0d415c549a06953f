"""Builds the status of a PodPolicy from an audit and from the policy's last status, and writes it if it differs, but
not too often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit.findings import PolicyTally
from trimtab.admission.audit.harm import Count, Counts, HarmEvidence, Verdict
from trimtab.admission.audit.original_pod import FailureKind
from trimtab.cluster.reason import NotYet
from trimtab.kube.client import APPLY_PATCH
from trimtab.kube.errors import KubeFault, NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, object_path
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.policy.status import HARM_BRAKE, LOADED, PolicyStatus, StatusCondition, encode_status
from trimtab.policy.status import HarmStatus as Before
from trimtab.runtime.log import Logger


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObservation:
    """What was observed about one policy of the cluster."""

    name: str
    generation: int
    mode: str
    """The mode in force."""
    spec_written_at: str
    """When the policy's spec was last written."""
    mistakes: tuple[str, ...] = ()
    """The mistakes because of which the document does not load, so that its previous version is in force."""
    tally: PolicyTally
    counts: Counts | None = None
    """The number of pods by result, or None if the policy's mode is not `apply`."""
    verdict: Verdict | None = None
    """Whether the policy does harm, or None if it is not checked for harm."""
    braked: bool = False
    """Whether the policy has just been set to `warn` because of the verdict."""
    before: PolicyStatus
    """The present status of the policy."""


def build_status(observation: PolicyObservation, now: str) -> PolicyStatus:
    """Returns the new status. A condition that has not changed keeps the time of its last transition."""
    tally = observation.tally
    # The generation of the spec that the brake holds: the present one or none.
    is_held = observation.braked or observation.before.braked_generation == observation.generation
    return PolicyStatus(
        observed_generation=observation.generation,
        braked_generation=observation.generation if is_held else 0,
        matched=tally.matched,
        changed=tally.changed,
        unpatched=tally.unpatched,
        would=tally.would,
        skipped=tally.skipped,
        overruled=tally.overruled,
        last_error="; ".join(observation.mistakes) or tally.failure,
        conditions=(_loaded_condition(observation, now), _brake_condition(observation, now)),
        harm=_harm_status(observation),
    )


def _loaded_condition(observation: PolicyObservation, now: str) -> StatusCondition:
    if observation.mistakes:
        mistakes = "; ".join(observation.mistakes)
        return _condition(
            observation,
            now,
            LOADED,
            "False",
            "Mistakes",
            f"the policy document is invalid, and its previous version stays in force: {mistakes}",
        )
    return _condition(observation, now, LOADED, "True", "Sound", "the policy document is valid and in force")


def _brake_condition(observation: PolicyObservation, now: str) -> StatusCondition:
    """Returns the HarmBrake condition. Once it is True, it stays so until the policy is edited and its mode is
    `apply`."""
    if observation.braked and isinstance(observation.verdict, HarmEvidence):
        return _condition(
            observation,
            now,
            HARM_BRAKE,
            "True",
            observation.verdict.trouble.name.title().replace("_", ""),
            f"the watchdog set the policy to warn: {observation.verdict.reason}",
        )
    before = observation.before.find_condition(HARM_BRAKE)
    if before is not None and before.status == "True" and observation.mode != "apply":
        return before
    was_on = before is not None and (before.status == "True" or before.reason == _REARMED)
    if was_on and observation.verdict is not None and not isinstance(observation.verdict, HarmEvidence):
        return _condition(
            observation, now, HARM_BRAKE, "False", _REARMED, "the policy was edited, and its mode is apply"
        )
    return _brake_off_condition(observation, now)


_REARMED = "AppliedAgain"


def _brake_off_condition(observation: PolicyObservation, now: str) -> StatusCondition:
    match observation.verdict:
        case None:
            return _condition(
                observation,
                now,
                HARM_BRAKE,
                "False",
                "NotChecked",
                "the policy is not in mode apply, or the setting with which the watchdog sets harmful policies "
                "to warn is off",
            )
        case NotYet():
            return _condition(observation, now, HARM_BRAKE, "Unknown", "TooFewPods", str(observation.verdict))
        case HarmEvidence():
            text = str(observation.verdict.reason)
            message = (
                f"the watchdog would set the policy to warn: {text}" if observation.verdict.is_brake_allowed else text
            )
            return _condition(observation, now, HARM_BRAKE, "False", "ReportedOnly", message)
        case _:
            reason = "".join(part.title() for part in observation.verdict.code.name.split("-"))
            return _condition(observation, now, HARM_BRAKE, "False", reason, str(observation.verdict))


def _condition(
    observation: PolicyObservation, now: str, kind: str, value: str, reason: str, message: str
) -> StatusCondition:
    before = observation.before.find_condition(kind)
    since = before.last_transition_time if before is not None and before.status == value else now
    return StatusCondition(
        type=kind,
        status=value,
        reason=reason,
        message=message[:_MAX_MESSAGE_CHARACTERS],
        last_transition_time=since,
        observed_generation=observation.generation,
    )


_MAX_MESSAGE_CHARACTERS = 2000
"""The maximum length of a condition's message. The API allows 32 768 characters, but few readers want that many."""


def _harm_status(observation: PolicyObservation) -> Before | None:
    """Returns the counts of pods without the policy's changes: the current ones while the policy is in force, otherwise
    those stored last."""
    if observation.counts is None:
        return observation.before.harm
    counts_before = {trouble: compared.before for trouble, compared in observation.counts.items()}
    return Before(
        since=observation.spec_written_at,
        pods=max((count.pods for count in counts_before.values()), default=0),
        oom_killed=counts_before[FailureKind.OOM_KILLED].hit,
        evicted=counts_before[FailureKind.EVICTED].hit,
        unschedulable=counts_before[FailureKind.UNSCHEDULABLE].hit,
    )


def restored_counts(stored: Before, written: str) -> Mapping[FailureKind, Count]:
    """Returns the counts that an earlier leader has stored for this version of the policy; empty if the stored counts
    are for another version."""
    if stored.since != written or not stored.pods:
        return {}
    failures = {
        FailureKind.OOM_KILLED: stored.oom_killed,
        FailureKind.EVICTED: stored.evicted,
        FailureKind.UNSCHEDULABLE: stored.unschedulable,
    }
    return {trouble: Count(stored.pods, count) for trouble, count in failures.items()}


@dataclass(slots=True)
class PolicyStatusWriter:
    """Writes statuses to the cluster. Only one thread may use it."""

    writer: Writer
    log: Logger
    every: float
    """The number of seconds between two writes of one policy's status. Urgent changes are written at once."""
    elapsed: Callable[[], float]
    _last_writes: dict[str, tuple[float, PolicyStatus]] = field(default_factory=dict)

    def write_status(self, name: str, before: PolicyStatus, status: PolicyStatus) -> bool:
        """Writes the status if it differs from `before`, the one in the cluster. Returns whether it was written. Errors
        are logged, and the write is repeated in the next round."""
        if status == before or self._is_too_soon(name, status):
            return False
        try:
            self._apply(name, status)
        except NotFound:
            return False  # the policy was deleted
        except KubeFault as error:
            self.log.warning("status.not-written", policy=name, error=str(error))
            return False
        self._last_writes[name] = (self.elapsed(), status)
        return True

    def drop_others(self, names: set[str]) -> None:
        """Forgets when statuses were last written, except for the policies in `names`."""
        self._last_writes = {name: last_write for name, last_write in self._last_writes.items() if name in names}

    def _is_too_soon(self, name: str, status: PolicyStatus) -> bool:
        """Returns whether the last write was so recent that the status must wait. False if an urgent condition has
        changed."""
        last_write = self._last_writes.get(name)
        if last_write is None:
            return False
        time, last = last_write
        return self.elapsed() - time < self.every and _urgent_conditions(last) == _urgent_conditions(status)

    def _apply(self, name: str, status: PolicyStatus) -> None:
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "status": encode_status(status)}
        path, operation = object_path(LIST_SOURCES[KIND], "", name, "status"), f"apply status of PodPolicy {name}"
        self.writer.write("PATCH", path, body, doing=operation, content_type=APPLY_PATCH, query={"force": "true"})


def _urgent_conditions(status: PolicyStatus) -> list[tuple[str, bool]]:
    """Returns the states of conditions whose changes are written at once: a document that does not load, and an active
    harm brake."""
    return [
        (condition.type, condition.status == ("True" if condition.type == HARM_BRAKE else "False"))
        for condition in status.conditions
    ]
