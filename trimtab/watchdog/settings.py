"""The watchdog's settings: units, and the reason for each default."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trimtab.admission.audit.harm import HarmTerms
from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.policy.pod_context import AdmissionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """The settings of one process; each is read from `TRIMTAB_` and the field's name in capitals."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace: its pods are never changed, and the Lease is here."""

    policies: tuple[Path, ...] = ()
    """Files or folders of policies, separated by `:`, if the webhook reads them too. Empty: the policies of the
    cluster. Policies from a folder have no time and no status, and a harmful one can only be reported."""

    configuration: str = "trimtab"
    """The name of Trimtab's MutatingWebhookConfiguration: pods older than it were never sent to the webhook."""

    overhead: Literal["server", "webhook"] = "server"
    """The writer of pod overhead, as set for the webhook. Running pods show when it is wrong, and that is reported."""

    paused: bool = False
    """As set for the webhook: true admits every pod unchanged, so that no pod lacks a change."""

    interval: float = 30.0
    """Seconds between two rounds. A round over 20 000 pods costs some hundredths of a second of CPU."""

    decisions: int = 1000
    """Decisions in one round, a tenth to a third of a millisecond each. The rest is decided in the next round."""

    status_every: float = 60.0
    """Seconds between two writes of one policy's status: each is a write to etcd and an event for every watch on
    policies."""

    event_every: float = 3600.0
    """Seconds after which the same Event is recorded again. An API server drops Events after an hour."""

    events: int = 50
    """The maximum number of Events in one round. A new policy makes every workload differ at once; the rest follow in
    the next rounds."""

    harm_brake: Literal["apply", "tell", "off"] = "apply"
    """What happens to a policy that harms pods. `apply`: it is put to `warn`, so that new pods get what Kubernetes
    alone would give them; the safe side, and the default. `tell`: it is only reported, as in a dry run. `off`:
    policies are not checked for harm."""

    harm_window: float = 3600.0
    """Seconds within which a failure counts. An hour: memory grows slowly, and a longer window would attribute
    yesterday's failures to a policy."""

    harm_memory: float = 86400.0
    """Seconds for which deleted pods from before a policy are remembered. A day: a rollout that replaces every pod
    must not erase the comparison."""

    harm_unschedulable_after: float = 300.0
    """Seconds that a pod may be unschedulable before it counts. An autoscaler adds a node in two to four minutes."""

    harm_pods: int = 5
    """Minimum number of pods with, and without, a policy's change. Below five, one failed pod is a share of
    over 20%."""

    harm_troubled: int = 3
    """Minimum number of failed pods with the change. Two may be chance, or one bad release."""

    harm_rise: int = 5
    """Percent of pods by which the share of failed pods must have risen: one pod in twenty."""

    harm_factor: float = 2.0
    """Minimum ratio to the share of failed pods without the change: workloads that fail now and then do not count."""

    @property
    def terms(self) -> AdmissionSettings:
        """The settings that decisions read."""
        return AdmissionSettings(overhead=self.overhead, paused=self.paused, own_namespace=self.namespace)

    @property
    def harm_terms(self) -> HarmTerms:
        return HarmTerms(
            window=self.harm_window, memory=self.harm_memory, unschedulable_after=self.harm_unschedulable_after,
            least_pods=self.harm_pods, least_troubled=self.harm_troubled, rise=self.harm_rise / 100,
            factor=self.harm_factor,
        )  # fmt: skip
