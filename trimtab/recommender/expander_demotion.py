"""Demotes node groups for which the cloud has no nodes: for an hour, they come last in the priority map of the cluster
autoscaler's priority expander.

It is off by default (`demote_groups`). The recommender may read and change this one ConfigMap, and read the
autoscaler's status; `trimtab install --demote-groups` grants that. If anything is wrong with the map, it is logged once
and the map is not changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from trimtab.cluster.cluster_autoscaler import UPDATED_ANNOTATION, Autoscaler, parse_status, split_status_names
from trimtab.cluster.several_autoscalers import join_autoscalers
from trimtab.kube import objects
from trimtab.kube.objects import Writer
from trimtab.machines.expander_map import MAP_NAME
from trimtab.runtime.log import Logger
from trimtab.sizing.ranking.demotion import DemotedMap, MapLeftAlone, update_demotions


class DemotionMetrics:
    """The metric for the number of demoted groups."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.groups = Gauge(
            "trimtab_recommender_demoted_node_groups",
            "The number of node groups with the lowest priority in the autoscaler's priority map, because the "
            "cloud had no nodes for them.",
            registry=registry,
        )


@dataclass(slots=True)
class GroupDemoter:
    """Demotes node groups in the priority map, so that they come last, and restores them. Not thread-safe."""

    writer: Writer
    namespace: str
    """The namespace of the cluster autoscaler."""
    status_name: str
    metrics: DemotionMetrics
    log: Logger
    _last_problem: str = ""

    def update_map(self, now: int) -> None:
        """Demotes the node groups that the cluster autoscaler's status shows in Backoff, and restores those whose hour
        is over. Raises KubeFault; in particular Conflict if another client changes the map at the same time."""
        document = objects.get_plain(self.writer.client, "ConfigMap", MAP_NAME, self.namespace)
        decision = self._decide(document, now)
        if isinstance(decision, MapLeftAlone):
            self.metrics.groups.set(0)
            if decision.problem != self._last_problem:
                report = self.log.info if decision.is_expected else self.log.warning
                report("demotions.map-left-alone", map=f"{self.namespace}/{MAP_NAME}", problem=decision.problem)
            self._last_problem = decision.problem
            return
        self._last_problem = ""
        self.metrics.groups.set(len(decision.demotions))
        if decision.is_changed and document is not None:
            annotations = {**document["metadata"]["annotations"], **decision.annotations}
            data = {**document["data"], "priorities": decision.text}
            metadata = {**document["metadata"], "annotations": annotations}
            objects.replace_plain(self.writer, {**document, "data": data, "metadata": metadata})
            self.log.info("demotions.written", groups=sorted(decision.demotions))

    def _decide(self, document: dict[str, Any] | None, now: int) -> DemotedMap | MapLeftAlone:
        if document is None:
            return MapLeftAlone("the cluster autoscaler has no priority map", is_expected=True)
        annotations = document["metadata"].get("annotations") or {}
        return update_demotions(document.get("data") or {}, annotations, self._read_autoscaler(), now)

    def _read_autoscaler(self) -> Autoscaler:
        """Returns the autoscaler's state; one without groups if no status can be read."""
        members = []
        for name in split_status_names(self.status_name):
            status = objects.get_plain(self.writer.client, "ConfigMap", name, self.namespace)
            if status is None:
                continue
            updated = (status["metadata"].get("annotations") or {}).get(UPDATED_ANNOTATION, "")
            parsed = parse_status((status.get("data") or {}).get("status", ""), updated)
            members += [parsed] if isinstance(parsed, Autoscaler) else []
        return join_autoscalers(members) or Autoscaler()
