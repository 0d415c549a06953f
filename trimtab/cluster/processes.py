"""The processes of Trimtab: what each is called, and what distinguishes it from the others.

Every other module iterates over `PROCESSES` or reads a field, so that a new process is declared here, gets its settings
and its permissions (`trimtab/installation/processes`), and is known everywhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessDeclaration:
    """One process of Trimtab."""

    name: str
    """The verb that runs the process; also the name of its container and of its component label."""

    has_lease: bool = False
    """Whether only the replica that holds the process's Lease works."""

    is_optional: bool = False
    """Whether the process is only installed on request."""

    is_called_over_tls: bool = False
    """Whether API servers call the process over TLS; otherwise it serves only metrics and health, over HTTP."""

    is_needed_by_pods: bool = False
    """Whether pods are created differently while the process is down: no drain evicts its last ready replica, and it is
    an error if the process is missing."""

    sets_overhead: bool = False
    """Whether the process must know which component writes the overhead of pods."""

    serves_vpas: bool = False
    """Whether the process is all that an installation for VPAs needs (`install --mode vpa`)."""

    signs_annotations: bool = False
    """Whether the process has a signing key. It signs annotations that other clients can write, too."""

    needs_signing_key: bool = False
    """Whether the process does nothing as long as it has no signing key."""

    @property
    def account(self) -> str:
        """The common name of the service account, the Deployment and the Lease."""
        return account_name(self.name)

    @property
    def signing_secret(self) -> str:
        """The name of the Secret with the signing keys."""
        return secret_of(self.name)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels by which the process's pods are recognized."""
        return {"app.kubernetes.io/name": "trimtab", "app.kubernetes.io/component": self.name}


def account_name(process: str) -> str:
    """Returns the common name of the process's service account, Deployment and Lease."""
    return f"trimtab-{process}"


def secret_of(process: str) -> str:
    """Returns the name of the Secret that holds a process's signing keys."""
    return f"trimtab-{process}-signing"


WEBHOOK = ProcessDeclaration(
    name="webhook",
    is_called_over_tls=True,
    is_needed_by_pods=True,
    sets_overhead=True,
    signs_annotations=True,
)
"""Answers the API server's admission reviews."""

WATCHDOG = ProcessDeclaration(name="watchdog", has_lease=True, sets_overhead=True)
"""Compares running pods with policies, and writes the status of policies."""

COMPACTOR = ProcessDeclaration(name="compactor", has_lease=True, signs_annotations=True, needs_signing_key=True)
"""Drains nodes, and resizes running pods."""

RECOMMENDER = ProcessDeclaration(name="recommender", has_lease=True, serves_vpas=True)
"""Collects usage, and publishes recommendations."""

METRICS_API = ProcessDeclaration(name="metrics-api", is_optional=True, is_called_over_tls=True)
"""Serves custom metrics. A cluster has only one provider of custom metrics."""

PROCESSES = (WEBHOOK, WATCHDOG, COMPACTOR, RECOMMENDER, METRICS_API)
