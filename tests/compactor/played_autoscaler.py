"""A played cluster in which a HorizontalPodAutoscaler writes the count of one app."""

from __future__ import annotations

from typing import Any

from tests.cluster_of import Item
from tests.compactor.played import Played
from trimtab.compactor.actuator import ActuatorForbidden


def autoscaler(app: str = "web", least: int = 2, most: int = 9, count: int = 3, **more: Any) -> Item:
    """As the API server has it, written by a user with kubectl."""
    managed = {"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": app, "namespace": "default", "managedFields": [managed], **more.get("metadata", {})},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": app},
            "minReplicas": least,
            "maxReplicas": most,
        },
        "status": {"currentReplicas": count, "desiredReplicas": count, **more.get("status", {})},
    }


class PlayedAutoscaler(Played):
    """`load` is the count that the metrics ask for; what is above it goes after `stabilization` seconds."""

    def __init__(self, *, least: int = 2, most: int = 9, load: int = 3, every: int = 4, **more: Any) -> None:
        super().__init__(**more)
        self.least, self.most, self.load, self.every, self.stabilization = least, most, load, every, 30
        self.lowest: list[int] = []
        """Every `minReplicas` that was written, in order."""
        self.marks: Item = {}
        """What more the object's metadata has."""
        self.window = 300
        """How long its controller waits before it follows a lower recommendation, as the object says."""
        self.set_back_at = 0
        self.counted = load
        self._above_since: int | None = None

    def items(self) -> list[Item]:
        metadata = self.marks
        shown = autoscaler("web", self.least, self.most, self.counted, metadata=metadata)
        shown["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": self.window}}
        return [*super().items(), shown]

    def set_min_replicas(self, name: str, before: int, minimum: int) -> bool:
        fault = self._write(f"min {name} {minimum}")
        done = self.least == before and minimum <= self.most
        if done:
            self.set_back_at = self.now if minimum < self.least else self.set_back_at
            self.least = minimum
            self.lowest.append(minimum)
        self._after(fault, name)
        return done

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        if deployment == "default/web":
            raise ActuatorForbidden("the autoscaler writes this count")
        return super().scale_deployment(deployment, before, replicas)

    def tick(self, seconds: int = 2) -> None:
        if self.now % self.every < seconds:
            self._autoscale()
        super().tick(seconds)

    def _autoscale(self) -> None:
        """As the HPA controller: below minReplicas at once, above what the load asks for only after a while."""
        present, asked = self.wanted["web"], min(self.most, max(self.least, self.load))
        if asked >= present:
            self._above_since = None
        elif self._above_since is None:
            self._above_since = self.now
        if asked > present or (self._above_since is not None and self.now - self._above_since >= self.stabilization):
            self.wanted["web"] = asked
        self.counted = self.wanted["web"]
