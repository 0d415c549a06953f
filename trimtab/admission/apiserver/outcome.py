"""What becomes of a pod that is created: stored, or refused?"""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.admission.apiserver import serialization
from trimtab.cluster.api.pod import Pod


@dataclass(frozen=True, slots=True)
class PodRejected:
    """The API server says no."""

    code: int
    """HTTP status: 400 unreadable, 403 an admission plugin, 422 validation, 500 unreadable after a webhook."""
    plugin: str
    """The admission plugin; "validation" or "decoding" where it is the API itself."""
    message: str
    """The server's own words after `pods "NAME" is forbidden: ` or `Pod "NAME" is invalid: `."""

    def __str__(self) -> str:
        return f"{self.code} {self.message}"


@dataclass(frozen=True, slots=True)
class ChainStep:
    """Something on the way that changed the pod."""

    number: int
    """The pass of the mutating chain: 1 or 2."""
    name: str
    """The plugin as Kubernetes calls it, "decoding", "defaulting" or "webhook"."""
    before: Pod
    after: Pod

    @property
    def changed(self) -> str:
        """In words: which field became what. Made when asked for: most callers only want the pod."""
        return "; ".join(serialization.changes(self.before, self.after)) or "written in the server's notation"

    def __str__(self) -> str:
        return f"pass {self.number}, {self.name}: {self.changed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAdmitted:
    """The pod is accepted and written down."""

    pod: Pod
    steps: tuple[ChainStep, ...] = ()
    """Only those that changed something, in order."""
    calls: int = 1
    """How often our webhook was called: 1 or 2."""


def aggregate(messages: Iterable[str]) -> str:
    """Several errors as one text, as apimachinery's `Aggregate.Error` does: repeated ones once, brackets from two."""
    distinct = list(dict.fromkeys(messages))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def forbidden(plugin: str, messages: Iterable[str]) -> PodRejected | None:
    """A 403 with these messages; None where there are none."""
    found = list(messages)
    return PodRejected(403, plugin, aggregate(found)) if found else None
