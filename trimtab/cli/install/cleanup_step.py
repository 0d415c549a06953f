"""The outcome of one step of an installation or of a removal."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CleanupStep:
    """The outcome of one step for one object."""

    what: str
    """The kind, namespace and name of the object, as in "Service trimtab-system/trimtab-webhook"."""
    how: str
    """The outcome as text.

    For an applied manifest: applied, issued or trusted. For a removed one: removed, did not exist, or kept. For
    processes and nodes: stopped, uncordoned, scaled back, still running; or that a node stays cordoned or a Deployment
    keeps its second replica, with the reason."""
