"""What can be set about the watchdog, in which unit, and why the default is what it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from trimtab.admission.audit.harm import HarmTerms
from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.policy.pod_context import AdmissionSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """The watchdog's settings; `environment.variable_name` gives the name of each one's variable."""

    process: ClassVar[str] = "watchdog"

    namespace: str = "trimtab-system"
    """Trimtab's own namespace: its pods are never changed, and the Lease is here."""

    policies: tuple[Path, ...] = ()
    """Files or folders of policies, separated by `:`, if the webhook reads them there. Empty: the cluster's
    PodPolicies. Policies from a folder have no creation time and no status; the watchdog reports a harmful one and
    cannot stop it."""

    configuration_name: str = "trimtab"
    """The name of Trimtab's MutatingWebhookConfiguration: the webhook never saw pods that are older than it."""

    overhead: Literal["server", "webhook"] = "server"
    """The component that writes pod overhead. Use the same value as for the webhook; the watchdog reports running pods
    that contradict it."""

    webhook_paused: bool = False
    """Use the same value as TRIMTAB_WEBHOOK_PAUSED: while it is true, no pod can lack a change."""

    check_interval_seconds: float = 30.0
    """Seconds between two checks. A check of 20 000 pods costs some hundredths of a second of CPU."""

    max_decisions_per_check: int = 1000
    """The largest number of decisions in one check; a decision takes a tenth to a third of a millisecond. The next
    check decides the remaining pods."""

    status_write_interval_seconds: float = 60.0
    """Seconds between two writes of one policy's status: each is a write to etcd and an event for every watch."""

    event_repeat_interval_seconds: float = 3600.0
    """Seconds after which the watchdog repeats an Event for an owner. An API server deletes Events after an hour."""

    max_events_per_check: int = 50
    """The largest number of Events in one check. A new policy concerns every workload at once; the next checks record
    the rest."""

    harm_brake: Literal["apply", "report", "off"] = "apply"
    """What the watchdog does with a policy that harms pods. `apply`: it sets the policy's mode to `warn`, so that new
    pods get only what Kubernetes gives them: the safe side, and the default. `report`: it only reports the policy,
    as in a dry run. `off`: it does not look for harm."""

    harm_window_seconds: float = 3600.0
    """Seconds for which a failure of a pod counts. The default is an hour: memory grows slowly, and a longer window
    would blame a policy for yesterday's failures."""

    harm_retention_seconds: float = 86400.0
    """Seconds for which the watchdog remembers pods from before a policy after they are gone. The default is a day: a
    rollout that replaces every pod must not erase what the policy is compared with."""

    harm_unschedulable_seconds: float = 300.0
    """Seconds for which a pod may wait for a node before it counts as failed. A cluster autoscaler adds a node in two
    to four minutes."""

    harm_min_pods: int = 5
    """The smallest number of pods that must be known both with and without a policy's change. One failed pod of fewer
    is more than 20%."""

    harm_min_failed_pods: int = 3
    """The smallest number of pods with the change that must have failed. Two may be chance, or one bad release."""

    harm_min_increase_percent: int = 5
    """The smallest increase of the share of failed pods, in percent of all pods."""

    harm_min_ratio: float = 2.0
    """How many times as often pods must fail with the change as without it."""

    @property
    def admission_settings(self) -> AdmissionSettings:
        """What decisions go by."""
        return AdmissionSettings(overhead=self.overhead, paused=self.webhook_paused, own_namespace=self.namespace)

    @property
    def harm_terms(self) -> HarmTerms:
        return HarmTerms(
            window=self.harm_window_seconds, memory=self.harm_retention_seconds,
            unschedulable_after=self.harm_unschedulable_seconds,
            least_pods=self.harm_min_pods, least_troubled=self.harm_min_failed_pods,
            rise=self.harm_min_increase_percent / 100,
            factor=self.harm_min_ratio,
        )  # fmt: skip
