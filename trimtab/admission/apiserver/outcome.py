"""The result of simulating the creation of a pod: the stored pod with the steps that changed it, or a rejection."""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.admission.apiserver import serialization
from trimtab.cluster.api.pod import Pod


@dataclass(frozen=True, slots=True)
class PodRejected:
    """A rejection by the API server."""

    code: int
    """The HTTP status: 400 for an unreadable pod, 403 from an admission plugin, 422 from validation, 500 for a pod that
    is unreadable after a webhook."""
    plugin: str
    """The name of the admission plugin; "validation" or "decoding" if the API itself rejects the pod."""
    message: str
    """The server's text after `pods "NAME" is forbidden: ` or `Pod "NAME" is invalid: `."""

    def __str__(self) -> str:
        return f"{self.code} {self.message}"


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A step of admission that changed the pod."""

    number: int
    """The pass of the mutating chain in which the step ran: 1 or 2."""
    name: str
    """The plugin's name in Kubernetes, or "decoding", "defaulting" or "webhook"."""
    before: Pod
    after: Pod

    @property
    def changed_fields(self) -> str:
        """A description of the changed fields. It is computed when it is read, because most callers only need the
        pod."""
        return "; ".join(serialization.describe_changes(self.before, self.after)) or "written in the server's notation"

    def __str__(self) -> str:
        return f"pass {self.number}, {self.name}: {self.changed_fields}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAdmitted:
    """The pod as it is stored."""

    pod: Pod
    steps: tuple[ChainStep, ...] = ()
    """The steps that changed the pod, in order."""
    calls: int = 1
    """How many times the webhook was called: 1 or 2."""


def join_errors(messages: Iterable[str]) -> str:
    """Returns several errors as one text, as apimachinery's `Aggregate.Error` does: without repetitions, and in
    brackets if there are two or more."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def forbid_pod(plugin: str, messages: Iterable[str]) -> PodRejected | None:
    """Returns a rejection with 403 and these messages, or None if there are none."""
    listed = list(messages)
    return PodRejected(403, plugin, join_errors(listed)) if listed else None
