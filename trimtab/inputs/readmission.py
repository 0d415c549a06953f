"""What evicted pods would request when they are created again, as a plan uses it. A module of its own, because a plan
without policies needs nothing of what computes it (`planned_requests`)."""

from dataclasses import dataclass

from trimtab.cluster.config_error import ConfigError
from trimtab.compaction.resize.types import ResizeAdvice
from trimtab.scheduling.cluster_model import Again


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmission:
    """The requests that pods would get if they were created again, with the notes and mistakes of the policies."""

    readmitted_requests: Again | None = None
    """Returns the requests of a pod that is created again; None if pods keep their present requests, because there is
    no policy and no VPA, and pod templates say nothing else."""
    notes: tuple[str, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()
    resizes: ResizeAdvice | None = None
    """The resizes that policies permit for running pods, or None if no policy does, or if they were not requested."""
