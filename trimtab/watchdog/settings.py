"""What can be set about the watchdog, in which unit, and why the default is what it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtab.admission.audit.harm import HarmTerms
from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.policy.pod_context import AdmissionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """One process's settings; each comes from `TRIMTAB_` and the field's name in capitals."""

    namespace: str = "trimtab-system"
    """Our own namespace: its pods are never changed, and the Lease is here."""

    policies: tuple[Path, ...] = ()
    """Files or folders of policies, separated by `:`, where the webhook reads them, too. Empty: the cluster's own.
    Policies from a folder carry no time and have no status, and a harmful one can only be told of."""

    configuration: str = "trimtab"
    """Name of our MutatingWebhookConfiguration: pods older than it were never shown to us."""

    overhead: Literal["server", "webhook"] = "server"
    """Who writes pod overhead, as the webhook is set. Running pods show when it is wrong, and that is told."""

    paused: bool = False
    """As the webhook is set: true lets every pod through unchanged, so that none can lack anything."""

    interval: float = 30.0
    """Seconds between two looks. A look at 20 000 pods costs some hundredths of a second of CPU."""

    decisions: int = 1000
    """Decisions in one look, a tenth to a third of a millisecond each. What is left is decided with the next look."""

    status_every: float = 60.0
    """Seconds between two writes of one policy's status: each is a write to etcd and wakes everybody who watches."""

    event_every: float = 3600.0
    """Seconds after which an owner is told the same again. An API server forgets Events after an hour."""

    events: int = 50
    """Events in one look at the most. A new policy leaves every workload behind at once; the rest come with the next
    looks."""

    harm_brake: Literal["apply", "tell", "off"] = "apply"
    """What becomes of a policy that harms pods. `apply`: it is put to `warn`, so that new pods get what Kubernetes
    alone would give them: the safe side, and the default. `tell`: only said, as a dry run. `off`: not looked for."""

    harm_window: float = 3600.0
    """Seconds within which a trouble counts. An hour: memory creeps slowly; longer would blame a policy for
    yesterday."""

    harm_memory: float = 86400.0
    """Seconds for which pods from before a policy are remembered after they are gone. A day: a rollout that replaces
    every pod must not erase what it is compared with."""

    harm_unschedulable_after: float = 300.0
    """Seconds a pod may wait for a node before it counts. An autoscaler brings one in two to four minutes."""

    harm_pods: int = 5
    """Pods with and without a policy's change that must be known, each. One of fewer is a share of over 20%."""

    harm_troubled: int = 3
    """Pods with the change that must have been hit. Two may be chance, or one bad release."""

    harm_rise: int = 5
    """Percent of pods by which the share that is hit must have risen: one pod in twenty."""

    harm_factor: float = 2.0
    """How many times as often as without the change pods must be hit: what is killed now and then may stay so."""

    @property
    def terms(self) -> AdmissionSettings:
        """What decisions go by."""
        return AdmissionSettings(overhead=self.overhead, paused=self.paused, own_namespace=self.namespace)

    @property
    def harm_terms(self) -> HarmTerms:
        return HarmTerms(
            window=self.harm_window, memory=self.harm_memory, unschedulable_after=self.harm_unschedulable_after,
            least_pods=self.harm_pods, least_troubled=self.harm_troubled, rise=self.harm_rise / 100,
            factor=self.harm_factor,
        )  # fmt: skip
