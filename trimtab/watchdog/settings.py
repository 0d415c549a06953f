"""The settings of the watchdog, with their units and the reasons for their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from trimtab.admission.audit.harm import HarmTerms
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.cluster.processes import WATCHDOG
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.workers.leader_process import LeaderProcessSettings

_RENAMED = {
    "CONFIGURATION": "configuration_name",
    "DECISIONS": "max_decisions_per_check",
    "EVENT_EVERY": "event_repeat_interval_seconds",
    "EVENTS": "max_events_per_check",
    "HARM_BRAKE": "harm_brake",
    "HARM_FACTOR": "harm_min_ratio",
    "HARM_MEMORY": "harm_retention_seconds",
    "HARM_PODS": "harm_min_pods",
    "HARM_RISE": "harm_min_increase_percent",
    "HARM_TROUBLED": "harm_min_failed_pods",
    "HARM_UNSCHEDULABLE_AFTER": "harm_unschedulable_seconds",
    "HARM_WINDOW": "harm_window_seconds",
    "INTERVAL": "check_interval_seconds",
    "KUBECONFIG": "kubeconfig",
    "LEASE": "lease_duration_seconds",
    "LISTEN": "listen",
    "PAUSED": "webhook_paused",
    "READY_FILE": "ready_file",
    "RENEW_DEADLINE": "renew_deadline_seconds",
    "RETRY": "retry_period_seconds",
    "STATUS_EVERY": "status_write_interval_seconds",
    "WRITE_DEADLINE": "write_timeout_seconds",
}
"""Former variable without `TRIMTAB_` → the present field, for settings that had another name in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """The settings of the watchdog; `environment.variable_name` returns the name of the environment variable for
    each."""

    process: ClassVar[str] = WATCHDOG.name
    renamed: ClassVar[Mapping[str, str]] = _RENAMED

    namespace: str = "trimtab-system"
    """Trimtab's own namespace. Its pods are never changed, and the Lease is in it."""

    policies: tuple[Path, ...] = ()
    """The files or folders with policies, separated by `:`, if the webhook reads its policies there. Empty: the
    cluster's PodPolicies. Policies from a folder have no creation time and no status; the watchdog reports a harmful
    one but cannot stop it."""

    configuration_name: str = "trimtab"
    """The name of Trimtab's MutatingWebhookConfiguration: pods that are older than it were never sent to the
    webhook."""

    overhead: OverheadWriter = "server"
    """The component that sets the overhead of pods. Use the same value as for the webhook; the watchdog reports running
    pods that contradict it."""

    webhook_paused: bool = False
    """Whether the webhook is paused; use the same value as for TRIMTAB_WEBHOOK_PAUSED. While this is true, no pod
    counts as lacking a change."""

    check_interval_seconds: float = 30.0
    """The number of seconds between two checks. A check of 20 000 pods needs some hundredths of a second of CPU
    time."""

    max_decisions_per_check: int = 1000
    """The largest number of decisions in one check; a decision takes a tenth to a third of a millisecond. The remaining
    pods are decided in the next check."""

    status_write_interval_seconds: float = 60.0
    """The number of seconds between two writes of one policy's status: each is a write to etcd and an event for every
    watch."""

    event_repeat_interval_seconds: float = 3600.0
    """The number of seconds after which the watchdog repeats an Event for an owner. An API server deletes Events after
    an hour."""

    max_events_per_check: int = 50
    """The largest number of Events in one check. A new policy concerns every workload at once; further Events are
    recorded in the next checks."""

    harm_brake: Literal["apply", "report", "off"] = "apply"
    """What the watchdog does with a policy that harms pods. `apply`: it sets the policy's mode to `warn`, so that new
    pods get only what Kubernetes gives them: the safe side, and the default. `report`: it only reports the policy,
    as in a dry run. `off`: it does not look for harm."""

    harm_window_seconds: float = 3600.0
    """The number of seconds for which a failure of a pod counts. The default is an hour: memory grows slowly, and with
    a longer window a policy would be blamed for yesterday's failures."""

    harm_retention_seconds: float = 86400.0
    """The number of seconds for which the watchdog remembers pods from before a policy after they are deleted. The
    default is a day: even if a rollout replaces every pod, the policy can be compared with what was before."""

    harm_unschedulable_seconds: float = 300.0
    """The number of seconds for which a pod may wait for a node before it counts as failed. A cluster autoscaler adds a
    node in two to four minutes."""

    harm_min_pods: int = 5
    """The smallest number of pods that must be known both with and without a policy's change. With fewer, a single
    failed pod would be more than 20%."""

    harm_min_failed_pods: int = 3
    """The smallest number of pods with the change that must have failed. Two may be a coincidence, or one bad
    release."""

    harm_min_increase_percent: int = 5
    """The smallest increase of the share of failed pods, in percentage points."""

    harm_min_ratio: float = 2.0
    """How many times as often pods with the change must fail, compared with pods without it."""

    @property
    def admission_settings(self) -> AdmissionSettings:
        """The settings for decisions on pods, the same as in the webhook."""
        return AdmissionSettings(overhead=self.overhead, paused=self.webhook_paused, own_namespace=self.namespace)

    @property
    def harm_terms(self) -> HarmTerms:
        return HarmTerms(
            window=self.harm_window_seconds,
            memory=self.harm_retention_seconds,
            unschedulable_after=self.harm_unschedulable_seconds,
            least_pods=self.harm_min_pods,
            least_troubled=self.harm_min_failed_pods,
            rise=self.harm_min_increase_percent / 100,
            factor=self.harm_min_ratio,
        )
