"""Writes the status of the VPAs that name Trimtab as their recommender.

It is off by default (`write_vpa_status`). `trimtab install --vpa-recommender` grants the permission, and a policy of
the API server lets this account change nothing but the status, and only of VPAs that name Trimtab alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Gauge

from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.timestamps import Seconds
from trimtab.histogram.live_history import LiveHistory
from trimtab.kube import objects
from trimtab.kube.errors import InvalidResponse, RequestRefused, TooManyRequests
from trimtab.kube.objects import Writer
from trimtab.policy.cluster_facts import vpa_target
from trimtab.recommender.pod_watcher import PodWatchState
from trimtab.recommender.vpa_watcher import KIND, Key, VpaWatchState
from trimtab.runtime.log import Logger
from trimtab.sizing.vpa.settings import annotations_of
from trimtab.sizing.vpa.status import (
    NO_PODS,
    PROVIDED,
    LeftAlone,
    WantedStatus,
    build_status,
    names_trimtab,
    needs_write,
    read_used_until,
    status_document,
    why_left_alone,
)
from trimtab.sizing.vpa.target_usage import TargetPods, TargetUsage, group_by_owner

Version = tuple[int, tuple[str | None, ...]]
"""What a VPA's author has written, for comparison: the generation of its spec, and its annotations."""


class VpaStatusMetrics:
    """The metrics of the VPAs that name Trimtab."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.vpas = Gauge(
            "trimtab_recommender_vpas",
            "The number of VPAs that name Trimtab as a recommender, by the reason code of their recommendation.",
            ("reason",),
            registry=registry,
        )
        self.age = Gauge(
            "trimtab_recommender_vpa_status_age_seconds",
            "The age in seconds of the usage from which the oldest status was computed, of the VPAs that name Trimtab "
            "and have pods; 0 if there are none.",
            registry=registry,
        )


@dataclass(slots=True)
class VpaStatusWriter:
    """The statuses that this replica has decided. Not thread-safe."""

    writer: Writer
    history: LiveHistory
    read_vpas: Callable[[], VpaWatchState | None]
    """Returns the VPAs that name Trimtab, or None if they are not read yet."""
    pods: PodWatchState
    metrics: VpaStatusMetrics
    log: Logger
    tolerance: float
    interval_seconds: float
    """The number of seconds after which the recommendation of a VPA is computed again, if the VPA is the same."""
    elapsed: Callable[[], float]
    read_pause: Callable[[], str] = lambda: ""
    """Returns why Trimtab is paused, or an empty text if it is not. Raises KubeFault."""
    refused: Mapping[Key, str] = field(default_factory=dict)
    """VPA → why the API server refused the last write of its status."""
    _reason_codes: dict[Key, str] = field(default_factory=dict)
    _pause: str = ""
    """Why nothing was written in the last round; empty if that was not paused."""
    _computed: dict[Key, tuple[Version, float]] = field(default_factory=dict)
    """VPA → its version that was last computed, and when."""

    def write_changes(self, now: Seconds) -> int:
        """Writes the statuses that have changed, unless Trimtab is paused. Returns how many were written.

        If the API server refuses one, because the VPA has changed or was deleted in the meantime, the reason is in
        `refused`, and the others are written nevertheless. Raises TooManyRequests and every other KubeFault; the next
        call continues.
        """
        state = self.read_vpas()
        if state is None:
            return 0
        reason, before = self.read_pause(), self._pause
        self._pause = reason
        if reason:
            if reason != before:
                self.log.info("vpa-status.paused", reason=reason)
            return 0
        self._forget_others(state)
        due = [(key, vpa) for key, vpa in state if self._is_due(key, vpa)]
        targets = {vpa_target(vpa): self.pods.topmost_of(vpa_target(vpa)) for _, vpa in due}
        usages = group_by_owner(self.history, targets.values()) if due else {}
        pods = self.pods.summarize_targets(targets) if due else {}
        written, refused = 0, dict[Key, str]()
        for key, vpa in due:
            target = vpa_target(vpa)
            try:
                written += self._write_status(key, vpa, pods[target], usages.get(targets[target]), now)
            except TooManyRequests:
                # It concerns no VPA: thousands more of the same requests would only add to it.
                raise
            except (RequestRefused, InvalidResponse) as error:
                refused[key] = str(error)
                if key not in self.refused:
                    self.log.warning("vpa-status.refused", vpa="/".join(key), error=str(error))
                continue
            self._computed[key] = (_version_of(vpa), self.elapsed())
        self.refused = refused
        self._count_reasons()
        return written

    def report_age(self, now: Seconds) -> None:
        """Sets the metric of the age of the statuses. Apart from the writes: the statuses become older even while no
        usage can be read or nothing can be written."""
        state = self.read_vpas()
        if state is not None:
            self.metrics.age.set(max(_ages(state, now), default=0))

    def _forget_others(self, state: VpaWatchState) -> None:
        """Forgets what is known of VPAs that no longer exist or no longer name Trimtab."""
        for memory in (self._computed, self._reason_codes):
            for key in memory.keys() - state.vpas.keys():
                del memory[key]

    def _is_due(self, key: Key, vpa: VerticalPodAutoscaler) -> bool:
        """Returns whether the status must be computed: for the first time, because the spec or an annotation has
        changed, because another client wrote the status, or because the interval is over."""
        version, computed_at = self._computed.get(key, (None, 0.0))
        if version != _version_of(vpa) or self.elapsed() - computed_at >= self.interval_seconds:
            return True
        return names_trimtab(vpa) and not any(one.type == PROVIDED for one in vpa.status.conditions)

    def _write_status(
        self, key: Key, vpa: VerticalPodAutoscaler, pods: TargetPods, usage: TargetUsage | None, now: Seconds
    ) -> bool:
        """Writes the status of one VPA. Returns False if it need not be written, or is not Trimtab's."""
        wanted = build_status(vpa, pods, usage, max_days=self.history.days, now=now)
        self._report(key, wanted)
        if isinstance(wanted, LeftAlone) or not needs_write(vpa, wanted, self.tolerance):
            return False
        namespace, name = key
        metadata = {"resourceVersion": vpa.metadata.resource_version}
        body = {"metadata": metadata, "status": status_document(vpa, wanted, now)}
        objects.merge_status(self.writer, KIND, name, namespace, body)
        return True

    def _report(self, key: Key, wanted: WantedStatus | LeftAlone) -> None:
        reason = wanted.reason if isinstance(wanted, LeftAlone) else wanted.conditions[PROVIDED]
        if self._reason_codes.get(key) != reason.code.name:
            self.log.info("vpa-status.decided", vpa="/".join(key), reason=reason.code.name, text=str(reason))
        self._reason_codes[key] = reason.code.name

    def _count_reasons(self) -> None:
        self.metrics.vpas.clear()
        for code, count in Counter(self._reason_codes.values()).items():
            self.metrics.vpas.labels(code).set(count)


def _version_of(vpa: VerticalPodAutoscaler) -> Version:
    return vpa.metadata.generation, annotations_of(vpa)


def _ages(state: VpaWatchState, now: Seconds) -> Iterator[int]:
    """Yields the age of each status, in seconds, that was computed from usage and whose target has pods."""
    for _, vpa in state:
        until = read_used_until(vpa)
        has_pods = not any(one.type == NO_PODS and one.status == "True" for one in vpa.status.conditions)
        if until is not None and has_pods and why_left_alone(vpa) is None:
            yield max(0, now - until)
