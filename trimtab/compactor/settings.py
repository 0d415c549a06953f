"""What can be set about the compactor, in which unit, and why the default is what it is."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtab.cluster.cluster_autoscaler import NAME, NAMESPACE, flags_of
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.policy.pod_context import AdmissionSettings as AdmissionTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """One process's settings; each comes from `TRIMTAB_` and the field's name in capitals."""

    namespace: str = "trimtab-system"
    """Our own namespace: pools are read here and nowhere else, state and Lease are written here."""

    rehearse: bool = False
    """True: nothing begins in any pool, whatever it says; what was begun before is given back. The global switch."""

    paused: bool = False
    """True: as if `trimtab.dev/paused: "true"` stood on our namespace."""

    interval: float = 60.0
    """Seconds between two plans. What is under-used for ten minutes can wait for one."""

    settle: float = 15.0
    """Seconds between a plan and the fresh look before it begins: pods that come and go show themselves."""

    tick: float = 2.0
    """Seconds between two looks at drains that are under way."""

    stale: float = 120.0
    """Seconds after which what a watch holds is too old to act on. A quiet watch hears from the server every minute."""

    lease: int = 60
    """Seconds a leader that died keeps the lease. What plans once a minute need not be back sooner."""

    renew_deadline: float = 30.0
    """Seconds since its last renewal after which a leader writes nothing any more. It renews twice as often."""

    drain_limit: int = 900
    """Seconds from a cordon to the last successor's readiness; the longest grace period comes on top."""

    end_limit: int = 120
    """Seconds a pod may be there past its grace period before its drain is given up."""

    ready_limit: int = 300
    """Seconds a successor may need to be ready."""

    pending_limit: int = 30
    """Seconds a pod may wait for a node before cordoned nodes it would fit on are opened again."""

    taken_limit: int | None = None
    """Seconds an empty node waits for its removal. None: what the autoscaler's own settings imply, and five minutes."""

    rest: int = 3600
    """Seconds in which a pod is not moved twice."""

    closed: int = 3600
    """Seconds a pool stays closed after two failed drains in a row."""

    drains: int = 10
    """Nodes emptied at the same time in all pools together: the autoscaler's own ceiling."""

    steer: bool = True
    """True: nodes the plan will empty get the soft taint `trimtab.dev/leaving`, so that successors land elsewhere."""

    scale_namespaces: tuple[str, ...] = ()
    """Namespaces, separated by `:`, in which the account may scale Deployments (`trimtab install --scale-namespace`).
    In any other the only replica of a workload stays, whatever its pool says: it would need a second one first."""

    policies: tuple[Path, ...] = ()
    """Files or folders of policies, separated by `:`, where the webhook reads them, too. Empty: the cluster's own. What
    they would give a successor is what must fit elsewhere."""

    overhead: Literal["server", "webhook"] = "server"
    """Who writes pod overhead, as the webhook is set."""

    autoscaler: Literal["seen", "assumed"] = "seen"
    """`seen`: without a status ConfigMap of the cluster autoscaler nothing begins, for nobody would take what is
    emptied. `assumed`: there is one that writes no status here, and it is taken for well."""

    autoscaler_namespace: str = NAMESPACE
    """Where the cluster autoscaler runs and writes its status: its own flag `--namespace`."""

    autoscaler_status: str = NAME
    """The ConfigMap of its status: its flag `--status-config-map-name`. The compactor may read the one of this name
    alone: whoever changes it gives `trimtab install` the same name, or the chart."""

    autoscaler_flags: str | None = None
    """The cluster autoscaler's own flags, as on its command line. None: its defaults."""

    @property
    def terms(self) -> DrainTimeouts:
        """The patience with drains."""
        return DrainTimeouts(
            drain=self.drain_limit, end=self.end_limit, ready=self.ready_limit, pending=self.pending_limit,
            taken=self.taken_limit, rest=self.rest, closed=self.closed, drains=self.drains,
        )  # fmt: skip

    @property
    def admission(self) -> AdmissionTerms:
        """What the webhook is told."""
        return AdmissionTerms(overhead=self.overhead, own_namespace=self.namespace)

    @property
    def flags(self) -> dict[str, str]:
        """The autoscaler's flags by name."""
        return flags_of(shlex.split(self.autoscaler_flags or ""))
