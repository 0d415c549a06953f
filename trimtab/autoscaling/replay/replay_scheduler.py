"""The scheduler of a replay: like that of the churn, for pods with all their requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.autoscaling.churn.churn_scheduler import ChurnScheduler
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.pod_class import PodClass


@dataclass(slots=True)
class ReplayScheduler(ChurnScheduler):
    """Knows a pod for each set of requirements that a present pod has. The pods of a workload share one object."""

    base: Inventory = field(default_factory=lambda: Inventory(nodes=(), pods=()))
    """What else of the cluster decides about nodes: claims and namespaces."""
    ignores_labels: bool = False
    """Whether labels of pods decide nothing (see `can_ignore_labels`): then pods that differ in nothing else share a
    class, and a new workload needs no new model."""
    _keys: dict[int, int] = field(default_factory=dict)
    """The id of requirements → their key."""
    _first_keys: dict[bytes, int] = field(default_factory=dict)
    """The text of requirements without labels → the key of the first requirements with it."""
    _known: dict[int, PodInfo] = field(default_factory=dict)
    _class_of: dict[int, PodClass] = field(default_factory=dict)

    def know(self, pod: PodInfo) -> None:
        """Notes whether the requirements of this new pod are known."""
        if self._key_of(pod) not in self._known:
            self.is_outdated = True

    def refresh(self, nodes: Mapping[str, NodeInfo], pods: Iterable[PodInfo]) -> FreeCapacity:
        """Counts the free capacity anew if a node has changed, and returns it."""
        if self.is_outdated:
            pods = tuple(pods)
            first_pods: dict[int, PodInfo] = {}
            for pod in pods:
                key = self._key_of(pod)
                if key not in first_pods:
                    first_pods[key] = self._known.get(key) or _make_sample(pod)
            self._known = first_pods
            inventory = Inventory(
                nodes=tuple(nodes[name] for name in sorted(nodes)),
                pods=tuple(first_pods.values()),
                claims=self.base.claims,
                namespaces=self.base.namespaces,
                schedulers=self.base.schedulers,
                runtime_handlers=self.base.runtime_handlers,
                preventing_drivers=self.base.preventing_drivers,
            )
            model = build_cluster_model(inventory)
            self._class_of = {self._key_of(pod): pod_class for pod, pod_class in model.pending_pods}
            self._count_capacity(model, pods)
            self.follows_taints = any(
                spread.node_taints_policy == "Honor"
                for pod in first_pods.values()
                for spread in pod.requirements.hard_spreads
            )
        return self.capacity

    def class_of(self, pod: PodInfo) -> PodClass:
        """Returns the class of a pod whose requirements are known."""
        return self._class_of[self._key_of(pod)]

    def _key_of(self, pod: PodInfo) -> int:
        # The samples of the stretch keep all requirements alive, so that no other object gets this number.
        requirements = pod.requirements
        number = id(requirements)
        if not self.ignores_labels:
            return number
        key = self._keys.get(number)
        if key is None:
            text = _ENCODER.encode(change(requirements, labels={}, namespace=""))
            key = self._keys[number] = self._first_keys.setdefault(text, number)
        return key


_ENCODER = msgspec.json.Encoder(enc_hook=repr)


def can_ignore_labels(pods: Iterable[PodInfo]) -> bool:
    """Returns whether labels of pods decide nothing about nodes: no pod has affinity to pods, anti-affinity, a topology
    spread or a group."""
    return not any(
        needs.required_affinity
        or needs.required_anti_affinity
        or needs.preferred_affinity
        or needs.hard_spreads
        or needs.soft_spreads
        or needs.labelled_group
        or pod.claims
        for pod in pods
        for needs in (pod.requirements,)
    )


def _make_sample(pod: PodInfo) -> PodInfo:
    """Returns the pod as one that waits, so that the model has its class."""
    return change(
        pod,
        node="",
        phase="Pending",
        priority=0,
        deletion_requested_at=None,
        is_gated=False,
        is_daemon=False,
        is_static=False,
    )
