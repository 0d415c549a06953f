"""Watches the VPAs that name Trimtab as a recommender."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.recommendation import VPA_RECOMMENDER_NAME
from trimtab.kube.client import Client
from trimtab.kube.informers import ChangeQueue
from trimtab.kube.resources import LIST_SOURCES
from trimtab.kube.watch_state import ChangeType, WatchEvent

KIND = "VerticalPodAutoscaler"
Key = tuple[str, str]


def retain_own(vpa: VerticalPodAutoscaler) -> VerticalPodAutoscaler | None:
    """Returns the VPA if Trimtab is among its recommenders, else None: nothing is kept of the others."""
    return vpa if any(selector.name == VPA_RECOMMENDER_NAME for selector in vpa.spec.recommenders) else None


@dataclass(slots=True)
class VpaWatchState:
    """The VPAs that name Trimtab, as far as the watch has delivered them. Not thread-safe."""

    vpas: dict[Key, VerticalPodAutoscaler] = field(default_factory=dict)
    """(namespace, name) → the VPA."""

    def apply_change(self, change: WatchEvent[Any]) -> None:
        """Applies one change that the watch has delivered."""
        if change.change_type is ChangeType.DELETED or change.after is None:
            self.vpas.pop(change.key, None)
        else:
            self.vpas[change.key] = change.after

    def __iter__(self) -> Iterator[tuple[Key, VerticalPodAutoscaler]]:
        return iter(sorted(self.vpas.items(), key=lambda item: item[0]))


class VpaWatcher:
    """Runs the watch from `__enter__` to `__exit__`. It is apart from the watches of pods: usage is collected even if
    VPAs cannot be read."""

    def __init__(self, client: Client) -> None:
        self.state = VpaWatchState()
        transforms: dict[str, Any] = {KIND: retain_own}
        self._queue = ChangeQueue(client, (LIST_SOURCES[KIND],), transforms)

    def __enter__(self) -> VpaWatcher:
        self._queue.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.stop()

    def read_changes(self) -> VpaWatchState | None:
        """Returns the VPAs after the changes that were delivered since the last call; None until all VPAs were read
        once."""
        # In this order: what is queued when the list is complete belongs to it.
        is_synced = self._queue.is_synced
        for change in self._queue.take_changes():
            self.state.apply_change(change)
        return self.state if is_synced else None
