"""What the user who orders a drain permits beyond the safe default."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderWords:
    """How the user writes what an order may do: the options of `trimtab drain`, or the fields of a DrainOrder."""

    evicts_bare_pods: str = "--force"
    deletes_local_data: str = "--delete-emptydir-data"
    overrides_protection: str = "--override-protection"
    timeout: str = "--timeout"
    until: str = "--until"
    surge_pods: str = "--surge-pods"
    """Empty if the user cannot permit additional pods."""
    release: str = "as `trimtab drain --release` does"
    """How another client removes the record of an order from a node."""


FIELD_WORDS = OrderWords(
    evicts_bare_pods="`force: true`",
    deletes_local_data="`deleteEmptyDirData: true`",
    overrides_protection="`overrideProtection: true`",
    timeout="`timeout`",
    until="`until`",
    surge_pods="",
    release="as `trimtab compactor release` does",
)
"""The fields of a DrainOrder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRules:
    """What an order may do. The defaults are the safe ones."""

    evicts_bare_pods: bool = False
    """Whether pods that no controller recreates are evicted (`--force`)."""
    deletes_local_data: bool = False
    """Whether pods with an emptyDir on the disk are evicted (`--delete-emptydir-data`)."""
    overrides_protection: bool = False
    """Whether annotations that protect pods and nodes are ignored, and groups of pods are stopped
    (`--override-protection`)."""
    keeps_going: bool = False
    """Whether the nodes that can be drained are drained although others cannot (`--keep-going`)."""
    words: OrderWords = OrderWords()
    """How the reasons name what the user could permit."""
    surge_pods: int = 0
    """How many more pods a Deployment may have for a while, so that its budget allows an eviction (`--surge-pods`)."""
    at_once: int = 1
    """How many nodes are drained at the same time, all of one zone."""
