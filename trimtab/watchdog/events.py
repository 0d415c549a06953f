"""Who is told what: an Event on the owner and a log line for each new finding; again when the Event is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trimtab.admission.audit.findings import AuditFinding, Findings
from trimtab.cluster.reason import Code, Reason
from trimtab.kube.events import About, Recorder
from trimtab.runtime.log import Logger

CONTROLLER = "trimtab.dev/watchdog"
ACTION = "Compare"

NameOf = Callable[[AuditFinding], About]
"""The object to be told about: the topmost owner that is known, else the pod."""


@dataclass(frozen=True, slots=True)
class PolicyNote:
    """One thing to tell of one object."""

    about: About
    reason: Code
    text: str
    policy: str
    pods: int


def notes(found: Findings, about: NameOf) -> Iterator[PolicyNote]:
    """One per owner, policy and reason. What only watches, and who opted out, is in metrics and status alone."""
    grouped: dict[tuple[About, str, Code], list[AuditFinding]] = {}
    for one in (*found.unpatched, *found.overhead):
        grouped.setdefault((about(one), one.policy, one.reason.code), []).append(one)
    for (owner, policy, code), same in grouped.items():
        pods = sum(len(one.pods) for one in same)
        yield PolicyNote(owner, code, _text(same[0], pods), policy, pods)


def _text(one: AuditFinding, pods: int) -> str:
    name = min(pod.name for pod in one.pods)
    several = f"{name} and {pods - 1} more" if pods > 1 else name
    told = f"{one.policy}: " if one.policy else ""
    changes = "; ".join(f"{c.field}: {_word(c.before)} → {_word(c.after)}" for c in one.changes[:5])
    more = f" ({changes}{', …' if len(one.changes) > 5 else ''})" if changes else ""
    return f"{told}{several}: {one.reason}{more}"


def _word(value: object) -> str:
    return "none" if value is None else str(value)


@dataclass(slots=True)
class PolicyEventRecorder:
    """Remembers what was told. Not for two threads."""

    recorder: Recorder
    log: Logger
    again: float
    """Seconds after which the same is told again."""
    most: int
    """Events in one look."""
    elapsed: Callable[[], float]
    _told: dict[tuple[About, str, str], float] = field(default_factory=dict)
    _setting: str = ""

    def look(self, found: Findings, about: NameOf) -> int:
        """Tell what is new; how many Events were written."""
        self._tell_setting(found.setting)
        standing: dict[tuple[About, str, str], PolicyNote] = {}
        for note in notes(found, about):
            standing[note.about, note.policy, note.reason.name] = note
        self._told = {key: at for key, at in self._told.items() if key in standing}
        due = [note for key, note in standing.items() if self._is_due(key)]
        for note in due[: self.most]:
            self._note(note)
        return min(len(due), self.most)

    def _is_due(self, key: tuple[About, str, str]) -> bool:
        return key not in self._told or self.elapsed() - self._told[key] >= self.again

    def _note(self, note: PolicyNote) -> None:
        key = (note.about, note.policy, note.reason.name)
        if key not in self._told:
            owner = f"{note.about.kind} {note.about.namespace}/{note.about.name}"
            self.log.info(
                note.reason.name, owner=owner, policy=note.policy or None, pods=note.pods, why=note.text
            )  # fmt: skip
        self._told[key] = self.elapsed()
        self.recorder.tell(note.about, event_reason(note.reason), note.text, action=ACTION, warning=_is_warning(note))

    def _tell_setting(self, wrong: Reason | None) -> None:
        text = str(wrong) if wrong is not None else ""
        if wrong is not None and text != self._setting:
            self.log.warning(wrong.code.name, why=text)
        self._setting = text

    def policy(self, about: About, code: Code, text: str, *, warning: bool = True) -> None:
        """Something about a policy itself."""
        self.recorder.tell(about, event_reason(code), text, action="Brake", warning=warning)


def event_reason(code: Code) -> str:
    """An Event's reason is one word in camel case: MissedByWebhook."""
    return "".join(part.title() for part in code.name.split("-"))


def _is_warning(note: PolicyNote) -> bool:
    """That a pod is older than a policy is how it always begins."""
    return note.reason.name not in ("created-before-policy", "decision-changed-since", "overhead-stale")
