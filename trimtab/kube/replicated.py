"""What can be set about every process of which one replica works and the others wait."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtab.kube.client import Deadlines
from trimtab.kube.lease import Terms
from trimtab.runtime.settings import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicated:
    """Each comes from `TRIMTAB_` and the field's name in capitals; what a process needs otherwise it says anew."""

    listen: Address = Address("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """HOST:PORT for metrics and health. All interfaces, because Prometheus and the kubelet ask from outside."""

    namespace: str = "trimtab-system"
    """Our own namespace: the Lease is here."""

    kubeconfig: Path | None = None
    """None: the account of the pod, or else the kubeconfig of the person who starts it."""

    lease: int = 30
    """Seconds a leader that died keeps the lease."""

    renew_deadline: float = 15.0
    """Seconds since its last renewal after which a leader writes nothing any more. It renews twice as often."""

    retry: float = 3.0
    """Seconds until the next try to renew, or to become the leader, after one that failed."""

    write_deadline: float = 10.0
    """Seconds a write may take. With the renew deadline it must be shorter than the lease."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is written."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """Written when the pages are served: JSON with `url`, `pid` and `identity`. None: only the log line."""

    @property
    def lease_terms(self) -> Terms:
        return Terms(lease=self.lease, renew_deadline=self.renew_deadline, retry=self.retry)

    @property
    def deadlines(self) -> Deadlines:
        return Deadlines(write=self.write_deadline, connect=min(5.0, self.write_deadline / 2))
