"""Records an Event on the owner, and a log line, for each new finding; and repeats the Event when the API server has
deleted it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trimtab.admission.audit.findings import AuditFinding, Findings
from trimtab.cluster.fair_share import take_turns
from trimtab.cluster.reason import Code
from trimtab.kube.events import About, Recorder
from trimtab.runtime.log import Logger

CONTROLLER = "trimtab.dev/watchdog"
ACTION = "Compare"

NameOf = Callable[[AuditFinding], About]
"""A function that returns the object for the Event about a finding: the topmost known owner, or else the pod."""


@dataclass(frozen=True, slots=True)
class PolicyNote:
    """A finding to be reported on one object."""

    about: About
    reason: Code
    text: str
    policy: str
    pods: int


def policy_notes(findings: Findings, about: NameOf) -> Iterator[PolicyNote]:
    """Yields one note for each owner, policy and reason. Findings of policies that change nothing and of pods that have
    opted out are not reported this way; they are only in metrics and status."""
    grouped: dict[tuple[About, str, Code], list[AuditFinding]] = {}
    for finding in (*findings.unpatched, *findings.overhead):
        grouped.setdefault((about(finding), finding.policy, finding.reason.code), []).append(finding)
    for (owner, policy, code), findings_of_note in grouped.items():
        pods = sum(len(finding.pods) for finding in findings_of_note)
        yield PolicyNote(owner, code, _note_text(findings_of_note[0], pods), policy, pods)


def _note_text(finding: AuditFinding, pods: int) -> str:
    name = min(pod.name for pod in finding.pods)
    names = f"{name} and {pods - 1} more" if pods > 1 else name
    prefix = f"{finding.policy}: " if finding.policy else ""
    changes = "; ".join(f"{c.field}: {_value_text(c.before)} → {_value_text(c.after)}" for c in finding.changes[:5])
    suffix = f" ({changes}{', …' if len(finding.changes) > 5 else ''})" if changes else ""
    return f"{prefix}{names}: {finding.reason}{suffix}"


def _value_text(value: object) -> str:
    return "none" if value is None else str(value)


@dataclass(slots=True)
class PolicyEventRecorder:
    """Records Events and log lines, and remembers which were recorded. Only one thread may use it."""

    recorder: Recorder
    log: Logger
    repeat_seconds: float
    """The number of seconds after which the same Event is recorded again."""
    max_events: int
    """The maximum number of Events in one round."""
    elapsed: Callable[[], float]
    _recorded_at: dict[tuple[About, str, str], float] = field(default_factory=dict)
    _last_setting_text: str = ""

    def record_findings(self, findings: Findings, about: NameOf) -> int:
        """Records the findings that are new, and returns the number of Events written."""
        text = str(findings.setting) if findings.setting is not None else ""
        if findings.setting is not None and text != self._last_setting_text:
            self.log.warning(findings.setting.code.name, why=text)
        self._last_setting_text = text
        current: dict[tuple[About, str, str], PolicyNote] = {}
        for note in policy_notes(findings, about):
            current[note.about, note.policy, note.reason.name] = note
        self._recorded_at = {key: recorded for key, recorded in self._recorded_at.items() if key in current}
        # Namespaces take turns: new findings of one, round by round, must not keep those of others waiting.
        due = take_turns(
            (
                note
                for key, note in current.items()
                if key not in self._recorded_at or self.elapsed() - self._recorded_at[key] >= self.repeat_seconds
            ),
            lambda note: note.about.namespace,
        )
        for note in due[: self.max_events]:
            self._record_note(note)
        return min(len(due), self.max_events)

    def _record_note(self, note: PolicyNote) -> None:
        key = (note.about, note.policy, note.reason.name)
        if key not in self._recorded_at:
            owner = f"{note.about.kind} {note.about.namespace}/{note.about.name}"
            self.log.info(note.reason.name, owner=owner, policy=note.policy or None, pods=note.pods, why=note.text)
        self._recorded_at[key] = self.elapsed()
        # Whether the Event for the note is a Warning. If a pod is merely older than a policy, the Event is not a
        # Warning, because that is normal after each change of the policy.
        self.recorder.record_event(
            note.about,
            event_reason(note.reason),
            note.text,
            action=ACTION,
            warning=note.reason.name not in ("created-before-policy", "decision-changed-since", "overhead-stale"),
        )

    def record_policy_event(self, about: About, code: Code, text: str, *, warning: bool = True) -> None:
        """Records an Event on a policy itself."""
        self.recorder.record_event(about, event_reason(code), text, action="Brake", warning=warning)


def event_reason(code: Code) -> str:
    """Returns the name of a reason code in UpperCamelCase, as Events have it: MissedByWebhook."""
    return "".join(part.title() for part in code.name.split("-"))
