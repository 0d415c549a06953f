"""The settings of the compactor, with their units and the reasons for their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from trimtab.cluster.autoscaler_processes import arguments_of_status, split_processes
from trimtab.cluster.cluster_autoscaler import STATUS_NAME, STATUS_NAMESPACE, split_status_names
from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.cluster.pool import Pool
from trimtab.cluster.processes import COMPACTOR
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.resize.types import ResizeSettings
from trimtab.compactor.notifications.messages import NotificationFormat
from trimtab.compactor.notifications.sender import NotificationTerms
from trimtab.policy.pod_context import AdmissionSettings as AdmissionTerms
from trimtab.workers.leader_process import LeaderProcessSettings

_DRAIN = DrainTimeouts()
ACCOUNT = COMPACTOR.account
"""The common name of the compactor's service account, Deployment and Lease."""


_RENAMED = {
    "AUTOSCALER": "require_autoscaler_status",
    "AUTOSCALER_FLAGS": "autoscaler_flags",
    "AUTOSCALER_STATUS": "autoscaler_status_configmap",
    "CLOSED": "pool_backoff_seconds",
    "DRAIN_LIMIT": "drain_timeout_seconds",
    "DRAINS": "max_concurrent_drains",
    "END_LIMIT": "pod_termination_timeout_seconds",
    "INTERVAL": "plan_interval_seconds",
    "KUBECONFIG": "kubeconfig",
    "LEASE": "lease_duration_seconds",
    "LISTEN": "listen",
    "PAUSED": "paused",
    "PENDING_LIMIT": "pending_timeout_seconds",
    "READY_FILE": "ready_file",
    "READY_LIMIT": "ready_timeout_seconds",
    "REHEARSE": "rehearse",
    "RENEW_DEADLINE": "renew_deadline_seconds",
    "REST": "move_cooldown_seconds",
    "RETRY": "retry_period_seconds",
    "SCALE_NAMESPACES": "scale_namespaces",
    "SETTLE": "recheck_delay_seconds",
    "STALE": "max_watch_age_seconds",
    "STEER": "soft_taint",
    "TAKEN_LIMIT": "node_removal_timeout_seconds",
    "TICK": "drain_poll_interval_seconds",
    "WRITE_DEADLINE": "write_timeout_seconds",
}
"""Former variable without `TRIMTAB_` → the present field, for settings that had another name in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """The settings of the compactor; `environment.variable_name` returns the name of the environment variable for
    each."""

    process: ClassVar[str] = COMPACTOR.name
    renamed: ClassVar[Mapping[str, str]] = _RENAMED

    namespace: str = "trimtab-system"
    """Trimtab's own namespace. The compactor reads pools only there, and writes its state and its Lease there."""

    rehearse: bool = False
    """True: the compactor starts no drain in any pool, whatever the pool's mode is, and undoes drains that are in
    progress. This is the global switch."""

    paused: bool = False
    """True: has the same effect as the annotation `trimtab.dev/paused: "true"` on Trimtab's namespace."""

    plan_interval_seconds: float = 60.0
    """The number of seconds between two plans. A node that has been under-used for ten minutes can wait for another
    minute."""

    recheck_delay_seconds: float = 15.0
    """The number of seconds between a plan and the second reading of the cluster before a drain starts: pods that were
    about to be created or deleted are visible by then."""

    drain_poll_interval_seconds: float = 2.0
    """The number of seconds between two checks of the drains in progress."""

    max_watch_age_seconds: float = 120.0
    """The number of seconds after which the data of a watch is too old to act on. A watch without changes hears from
    the API server every minute."""

    lease_duration_seconds: int = 60
    """How many seconds the Lease of a leader that died remains valid. Because plans are made only once a minute, a
    faster takeover is not needed."""

    renew_deadline_seconds: float = 30.0
    """How many seconds after its last renewal a leader stops writing. A leader renews twice as often."""

    drain_timeout_seconds: int = _DRAIN.drain
    """The longest time in seconds from a cordon until the last successor is ready. The longest grace period of the
    node's pods is added."""

    pod_termination_timeout_seconds: int = _DRAIN.end
    """The number of seconds for which a pod may still exist after its grace period before the compactor gives up the
    drain."""

    ready_timeout_seconds: int = _DRAIN.ready
    """The longest time in seconds that a successor may need to become ready."""

    pending_timeout_seconds: int = _DRAIN.pending
    """The number of seconds for which a pod may wait for a node before the compactor uncordons nodes on which it would
    fit."""

    node_removal_timeout_seconds: int | None = _DRAIN.taken
    """The number of seconds for which an empty node waits to be removed. None: the time that follows from the
    autoscaler's own settings, plus five minutes."""

    move_cooldown_seconds: int = _DRAIN.rest
    """The number of seconds for which the successor of a moved pod is not moved again, also if
    an autoscaler or another tool moved it."""

    pool_backoff_seconds: int = _DRAIN.closed
    """The number of seconds for which the compactor starts no drain in a pool after two failed drains in a row.
    Failures that pods of one namespace caused count as one."""

    max_concurrent_drains: int = _DRAIN.drains
    """The largest number of nodes that are drained at the same time in all pools together. The default is the
    autoscaler's own limit."""

    soft_taint: bool = True
    """True: targets that the first wave of the plan does not need get the taint `trimtab.dev/reserved-target`, and
    nodes that the plan drains get this taint and `trimtab.dev/drain-candidate`. Both have the effect PreferNoSchedule,
    so that successors run on other nodes."""

    forecast_slot_seconds: int = 600
    """How many seconds a slot of a pool's history lasts, of which the largest requests are remembered. Forecasts know
    days of 144 slots: use another length only where the clock is faster, as in a benchmark."""

    resize_answer_timeout_seconds: int = 120
    """The number of seconds for which a kubelet may leave a resize without an answer before the resize is reverted."""

    resize_deferred_timeout_seconds: int = 300
    """The number of seconds for which a kubelet may defer or apply a resize before the resize is reverted."""

    resize_unready_timeout_seconds: int = 60
    """The number of seconds for which a resized pod may be unready before the resize is reverted."""

    resize_min_pod_age_seconds: int = 300
    """The number of seconds that a pod must have run before it is resized."""

    resize_backoff_seconds: int = 3600
    """The number of seconds for which a workload is left alone after a resize did harm or failed; each further failure
    doubles the time. A pool in which a revert found no room is left alone for the same time."""

    resize_pressure: bool = False
    """True: the pressure (PSI) and the throttling of resized pods are read from their kubelets, and the resize of a pod
    that waits much more than before is reverted. This needs `get` on `nodes/proxy`, which no role of Trimtab has,
    because that permission allows much more than reading."""

    scale_namespaces: tuple[str, ...] = ()
    """The namespaces, separated by `:`, in which the compactor's role lets it scale Deployments (`trimtab install
    --scale-namespace`). In any other namespace, the only replica of a workload is not moved, whatever the settings of
    its pool are, because the workload would need a second replica first."""

    policies: tuple[Path, ...] = ()
    """The files or folders with policies, separated by `:`. Set it if the webhook reads its policies from files too.
    Empty: the cluster's PodPolicies are used. A successor must fit on another node with the requests that these
    policies would set."""

    overhead: OverheadWriter = "server"
    """The component that sets the overhead of pods. Use the same value as for the webhook."""

    require_autoscaler_status: bool = True
    """True: without a status ConfigMap of the cluster autoscaler, no drain starts, because nothing would remove the
    drained node. False: the autoscaler writes no status, and is assumed to be healthy."""

    autoscaler_namespace: str = STATUS_NAMESPACE
    """The namespace in which the cluster autoscaler runs and writes its status: the value of its flag `--namespace`."""

    autoscaler_status_configmap: str = STATUS_NAME
    """The ConfigMap with the cluster autoscaler's status: the value of its flag `--status-config-map-name`. If several
    autoscalers run in the namespace, the names of all their statuses, separated by commas. The compactor's role lets it
    read only these names: if you change them, give the same names to `trimtab install` or to the chart."""

    autoscaler_flags: str | None = None
    """The flags of the cluster autoscaler, as on its command line. If several autoscalers run, the flags of each,
    separated by semicolons; an autoscaler with a status of its own names it with `--status-config-map-name`. Flags that
    name no status hold for all autoscalers if there are no others. None: the defaults of the autoscaler."""

    notification_url_file: Path | None = None
    """The path of a file with the URL to which notifications of what the compactor did and wants are sent. The URL is a
    secret: it is read again for each message, and is in no log line. None: nothing is sent."""

    notification_format: NotificationFormat = "slack"
    """`slack`: a text for Slack, Mattermost and Rocket.Chat. `json`: a list of decisions. `cloudevents`: a
    CloudEvent for each decision."""

    notification_source: str = "cluster"
    """The name of the cluster in notifications."""

    notification_max_per_hour: int = 30
    """The largest number of messages within an hour. Further decisions wait, and are in the first message after it; of
    more than 20 in one message, the rest is a number."""

    @property
    def notification_terms(self) -> NotificationTerms | None:
        """Where notifications go and in which form, or None if none are to be sent."""
        if self.notification_url_file is None:
            return None
        return NotificationTerms(
            url_file=self.notification_url_file,
            form=self.notification_format,
            source=self.notification_source,
            max_per_hour=self.notification_max_per_hour,
        )

    @property
    def drain_timeouts(self) -> DrainTimeouts:
        """The time limits of a drain."""
        return DrainTimeouts(
            drain=self.drain_timeout_seconds,
            end=self.pod_termination_timeout_seconds,
            ready=self.ready_timeout_seconds,
            pending=self.pending_timeout_seconds,
            taken=self.node_removal_timeout_seconds,
            rest=self.move_cooldown_seconds,
            closed=self.pool_backoff_seconds,
            drains=self.max_concurrent_drains,
        )

    def resize_settings(self, pool: Pool) -> ResizeSettings:
        """Returns the limits for resizes in this pool."""
        return ResizeSettings(
            canary_percent=pool.resize_canary,
            verify_seconds=pool.resize_verify,
            changes_per_hour=pool.resizes_per_hour,
            answer_seconds=self.resize_answer_timeout_seconds,
            deferred_seconds=self.resize_deferred_timeout_seconds,
            unready_seconds=self.resize_unready_timeout_seconds,
            min_pod_seconds=self.resize_min_pod_age_seconds,
            first_backoff_seconds=self.resize_backoff_seconds,
        )

    @property
    def admission_settings(self) -> AdmissionTerms:
        """The settings for admission, the same as in the webhook."""
        return AdmissionTerms(overhead=self.overhead, own_namespace=self.namespace)

    @property
    def autoscaler_statuses(self) -> tuple[str, ...]:
        """The names of the status ConfigMaps, one for each cluster autoscaler."""
        return split_status_names(self.autoscaler_status_configmap)

    def autoscaler_arguments(self, status: str) -> tuple[str, ...]:
        """Returns the flags of the autoscaler that writes this status ConfigMap."""
        processes = split_processes(self.autoscaler_flags or "")
        return arguments_of_status(processes, (self.autoscaler_namespace, status)) or ()
