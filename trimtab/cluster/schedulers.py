"""How each scheduler of a cluster places pods, by the scheduler's name (`spec.schedulerName`).

A plan needs to know whether a pod fits on another node. Every kube-scheduler with the stock filter plugins decides this
alike, whatever its name; only the scores differ, and so the choice among the nodes that fit. A scheduler that Trimtab
does not know may have other filters (gang scheduling, queues), so its pods block their nodes.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from trimtab.cluster.yaml_documents import read_documents

DEFAULT_SCHEDULER = "default-scheduler"


class SchedulerPlacement(StrEnum):
    """Which node a scheduler prefers among the nodes on which a pod fits."""

    SPREAD = "spread"
    """The scheduler prefers the emptiest node (NodeResourcesFit with LeastAllocated, kube-scheduler's default)."""
    PACK = "pack"
    """The scheduler prefers the fullest node (MostAllocated, or RequestedToCapacityRatio with a score that rises with
    usage)."""
    UNKNOWN = "unknown"
    """Trimtab does not know how the scheduler decides, so its pods keep their nodes."""


KNOWN_SCHEDULERS: Mapping[str, SchedulerPlacement] = {
    DEFAULT_SCHEDULER: SchedulerPlacement.SPREAD,
    # GKE's autoscaling profile `optimize-utilization` names it on every pod (agones#484).
    "gke.io/optimize-utilization-scheduler": SchedulerPlacement.PACK,
    # Gardener's scheduling profile `bin-packing` (gardener, pkg/component/kubernetes/scheduler).
    "bin-packing-scheduler": SchedulerPlacement.PACK,
}
"""Schedulers that are a stock kube-scheduler with another name."""

_STOCK_FILTERS = frozenset(
    {
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "*",
    }
)
"""The filter plugins of a stock kube-scheduler (pkg/scheduler/apis/config/v1/default_plugins.go, 1.36)."""


def find_schedulers(config_maps: Iterable[Mapping[str, str]]) -> dict[str, SchedulerPlacement]:
    """Returns scheduler name → how it places pods, read from the KubeSchedulerConfigurations that these ConfigMaps
    contain.

    A profile that disables a stock filter or enables a plugin that is not stock is UNKNOWN. So is a scheduler with two
    different definitions.
    """
    schedulers: dict[str, SchedulerPlacement] = {}
    for data in config_maps:
        for text in data.values():
            for profile in _profiles(text):
                name = profile.get("schedulerName")
                if isinstance(name, str) and name and name != DEFAULT_SCHEDULER:
                    placement = _placement(profile)
                    same = schedulers.setdefault(name, placement) is placement
                    schedulers[name] = placement if same else SchedulerPlacement.UNKNOWN
    return schedulers


def _profiles(text: str) -> Iterable[Mapping[str, Any]]:
    # Most ConfigMaps hold something else; a text that does not name the kind is not parsed.
    if "KubeSchedulerConfiguration" not in text:
        return
    for document in read_documents("scheduler configuration", text.encode()).documents:
        value = document.value
        profiles = value.get("profiles") if isinstance(value, dict) else None
        if isinstance(value, dict) and value.get("kind") == "KubeSchedulerConfiguration" and isinstance(profiles, list):
            yield from (profile for profile in profiles if isinstance(profile, dict))


def _placement(profile: Mapping[str, Any]) -> SchedulerPlacement:
    if not _has_stock_filters(profile.get("plugins")):
        return SchedulerPlacement.UNKNOWN
    for plugin in _as_list(profile.get("pluginConfig")):
        arguments = (
            plugin.get("args") if isinstance(plugin, dict) and plugin.get("name") == "NodeResourcesFit" else None
        )
        strategy = arguments.get("scoringStrategy") if isinstance(arguments, dict) else None
        if isinstance(strategy, dict):
            return _placement_of_strategy(strategy)
    return SchedulerPlacement.SPREAD


def _placement_of_strategy(strategy: Mapping[str, Any]) -> SchedulerPlacement:
    if strategy.get("type") == "MostAllocated":
        return SchedulerPlacement.PACK
    if strategy.get("type") != "RequestedToCapacityRatio":
        return SchedulerPlacement.SPREAD
    ratio = strategy.get("requestedToCapacityRatio")
    shape = _as_list(ratio.get("shape")) if isinstance(ratio, dict) else []
    scores = [point.get("score") for point in shape if isinstance(point, dict)]
    rising = len(scores) > 1 and isinstance(scores[0], int) and isinstance(scores[-1], int) and scores[-1] > scores[0]
    return SchedulerPlacement.PACK if rising else SchedulerPlacement.SPREAD


def _has_stock_filters(plugins: Any) -> bool:
    """Returns whether a profile's plugins leave the stock filters as they are."""
    if plugins is None:
        return True
    if not isinstance(plugins, dict):
        return False
    for point in ("preFilter", "filter", "multiPoint"):
        section = plugins.get(point) or {}
        if not isinstance(section, dict):
            return False
        names = {
            change: {plugin.get("name") for plugin in _as_list(section.get(change)) if isinstance(plugin, dict)}
            for change in ("enabled", "disabled")
        }
        # `multiPoint` enables a plugin at all its extension points: a profile may disable scores there, but no filter.
        if names["disabled"] & _STOCK_FILTERS or (point != "multiPoint" and names["enabled"] - _STOCK_FILTERS):
            return False
        if point == "multiPoint" and names["enabled"] - _STOCK_FILTERS - _STOCK_SCORES:
            return False
    return True


# Plugins of kube-scheduler that filter nothing: a profile may name them at multiPoint.
_STOCK_SCORES = frozenset(
    {
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "DefaultPreemption",
        "DefaultBinder",
        "PrioritySort",
        "SchedulingGates",
    }
)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
