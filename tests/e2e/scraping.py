"""The real Prometheus, scraping the processes as the chart's PodMonitors say, with the rules we ship."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.observe import dashboards, rules
from deploy.observe.exported import everything
from deploy.observe.grafana import without_choices
from tests.e2e.real_prometheus import running
from trimtab.cluster.processes import METRICS_API

_KUBELET = "no kubelet is scraped here"
_NOTHING_YET = "nothing of it has happened"
QUIET = {
    "pool_resource:trimtab_used:ratio": _KUBELET,
    "pool_resource:trimtab_used:amount": _KUBELET,
    "pool_resource:trimtab_used_requested:ratio": _KUBELET,
    "container_memory_working_set_bytes": _KUBELET,
    **dict.fromkeys(
        (
            "pool:trimtab_unused_capacity:dollars_per_hour",
            "pool:trimtab_used_memory_per_core:bytes",
            "pool:trimtab_used_memory_per_normalized_core:bytes",
            "pool_part:trimtab_cost:dollars_per_hour",
            "kube_pod_info",
        ),
        _KUBELET,
    ),
    **dict.fromkeys(
        ("pool_week:trimtab_cost:dollars_per_hour_max", "pool_week:trimtab_cost:dollars_per_hour_min"),
        "a week has not passed",
    ),
    "trimtab_recommender_vpas": "no VPA names trimtab",
    "trimtab_compactor_drain_orders": "no DrainOrder was made",
    "trimtab_compactor_forecast_room": "the history is too young",
    "trimtab_compactor_forecast_sufficient_ratio": "the history is too young",
    "trimtab_compactor_drains_total": _NOTHING_YET,
    "trimtab_compactor_evictions_total": _NOTHING_YET,
    "trimtab_compactor_savings": _NOTHING_YET,
    "trimtab_compactor_resizes_total": _NOTHING_YET,
    "trimtab_compactor_open_resizes": _NOTHING_YET,
    "trimtab_compactor_unresized_pods": _NOTHING_YET,
    "trimtab_compactor_resize_backoffs": _NOTHING_YET,
    "trimtab_compactor_resize_freed": _NOTHING_YET,
    "trimtab_errors_total": _NOTHING_YET,
    "trimtab_recommender_containers_without_recommendation": "no usage was read",
    "trimtab_unpatched_pods": _NOTHING_YET,
    "trimtab_skipped_pods": _NOTHING_YET,
    "trimtab_wrong_overhead_pods": _NOTHING_YET,
    **dict.fromkeys(
        (
            "pool_resource:trimtab_overhead_reserved:ratio",
            "pool:trimtab_unused_reserved:dollars_per_hour",
            "pool:trimtab_reserved_overdraft:dollars_per_hour",
            "trimtab_recommender_reserved_dollars_per_hour",
            "trimtab_recommender_node_overhead",
            "trimtab_recommender_node_overhead_base",
            "trimtab_recommender_node_overhead_per_pod",
            "trimtab_recommender_node_reserved",
            "trimtab_recommender_node_reserved_recommended",
            "trimtab_recommender_overhead_coverage_ratio",
            "trimtab_recommender_reservation_change",
        ),
        _KUBELET,
    ),
    **dict.fromkeys(
        (
            "trimtab_runtime_class_pods",
            "trimtab_overhead_cpu_cores",
            "trimtab_overhead_memory_bytes",
            "trimtab_runtime_class_node_types",
            "trimtab_runtime_class_without_nodes",
            "trimtab_runtime_class_evictions_total",
            "trimtab_overhead_dollars_per_hour",
        ),
        "no pod has a RuntimeClass here",
    ),
}
"""Series that are there only when there is something to tell → why not in a healthy young installation."""

NOT_INSTALLED = {name for metric in everything() if metric.process == METRICS_API.name for name in metric.series}
"""Series of the process that is installed on request."""


@dataclass(frozen=True)
class Prometheus:
    url: str

    def get(self, path: str, **query: str) -> Any:
        """The answer's data; a query that is none raises."""
        text = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(text, timeout=10) as answer:
            return json.loads(answer.read())["data"]

    def query(self, expression: str) -> list[Any]:
        """Series, now."""
        return list(self.get("query", query=expression)["result"])

    def families(self) -> set[str]:
        """Everything that any target says it exports, with samples or without."""
        return set(self.get("metadata"))

    def scraped(self, targets: Mapping[str, Sequence[str]]) -> bool:
        """Were all of them, so often that a rate can be told, and the rules evaluated?"""
        result = self.query("count_over_time(up[1m]) > 5 and up == 1")
        return len(result) == sum(map(len, targets.values())) and bool(self.query('{__name__=~"pool.*:.*"}'))


def asked() -> Iterator[tuple[str, str]]:
    """(dashboard: panel, query) with the variables filled in."""
    for board in dashboards.ALL:
        for panel in board.panels:
            for query in panel.queries:
                text = without_choices(query.asks, "1m")
                yield f"{board.title}: {panel.title}", text


@contextmanager
def scraping(folder: Path, targets: Mapping[str, Sequence[str]]) -> Iterator[Prometheus]:
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules.FOLDER / name) for name in rules.FILES],
        "scrape_configs": [_job(process, addresses) for process, addresses in targets.items()],
    }
    with running(folder, config) as url:
        yield Prometheus(url)


def _job(process: str, addresses: Sequence[str]) -> dict[str, Any]:
    """As the chart's PodMonitor of this process."""
    result: dict[str, Any] = {"job_name": f"trimtab-{process}", "static_configs": [{"targets": list(addresses)}]}
    if process == "webhook":
        result |= {"scheme": "https", "tls_config": {"insecure_skip_verify": True}}
    return result
