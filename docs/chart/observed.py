"""What watches us: PodMonitors, rules and dashboards as objects, for the chart and as components of the kustomize base.

Dashboards are those of deploy/dashboards, rules those of deploy/rules. Both are files of the chart: in a template their
own braces would be taken for its own.
"""

import json
from collections.abc import Iterator
from typing import Any

import yaml

from deploy.observe import dashboards, grafana, rules
from docs.chart.chosen import values_key
from docs.chart.holes import block, text
from trimtab.cluster.processes import METRICS_API, account_name
from trimtab.installation.names import PROCESSES, InstallValues, Manifest, build_manifest, component_labels
from trimtab.installation.processes.metrics_api import render_metrics_api

_OPERATOR = "monitoring.coreos.com/v1"
INTERVAL = "30s"
GRAFANA = {"grafana_dashboard": "1"}
"""What Grafana's sidecar looks for where nobody told it otherwise."""


def monitor(process: str, namespace: str, interval: str, more: str | None = None) -> Manifest:
    """`more`: the chart's value of labels; None: ours alone."""
    endpoint: dict[str, Any] = {"port": "http", "path": "/metrics", "interval": interval}
    if process in ("webhook", METRICS_API.name):
        # Its authority is its own, and pods are scraped by their address, which no certificate names.
        endpoint |= {"port": "https", "scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}
    spec = {"selector": {"matchLabels": component_labels(process)}, "podMetricsEndpoints": [endpoint]}
    return _made(_OPERATOR, "PodMonitor", account_name(process), namespace, component_labels(process), more, spec=spec)


def rule(namespace: str, groups: Any, more: str | None = None, name: str = "trimtab") -> Manifest:
    """Groups of recording and alerting rules as one object."""
    return _made(_OPERATOR, "PrometheusRule", name, namespace, component_labels(), more, spec={"groups": groups})


def board(uid: str, namespace: str, model: str, more: str | None = None) -> Manifest:
    """A dashboard as the ConfigMap that Grafana's sidecar finds by its label."""
    own = component_labels() if more else {**component_labels(), **GRAFANA}
    return _made("v1", "ConfigMap", uid, namespace, own, more, data={f"{uid}.json": model})


def _made(
    api_version: str, kind: str, name: str, namespace: str, own: dict[str, str], more: str | None, **body: Any
) -> Manifest:
    found = build_manifest(api_version, kind, name, **body)
    chosen = block(f"(merge (dict {_words(own)}) {more})") if more else own
    found["metadata"] |= {"namespace": namespace, "labels": chosen}
    return found


def files() -> dict[str, str]:
    """Path in the chart → text."""
    boards = {f"dashboards/{one.uid}.json": model(one) for one in dashboards.ALL}
    return {
        **boards,
        "rules.yaml": yaml.safe_dump({"groups": groups()}, sort_keys=False, allow_unicode=True, width=120),
    }


def model(one: grafana.Dashboard) -> str:
    """As Grafana reads it, on one line: it is looked at in deploy/dashboards."""
    return json.dumps(grafana.drawn(one), ensure_ascii=False, separators=(",", ":"))


def groups() -> list[dict[str, Any]]:
    return [
        group for name in rules.FILES for group in yaml.safe_load((rules.FOLDER / name).read_text("utf-8"))["groups"]
    ]


def is_of_metrics_api(group: dict[str, Any]) -> bool:
    """Whether a group of rules is about the process that is installed on request."""
    return group["name"].split(".")[1] == values_key(METRICS_API.name)


def components(namespace: str) -> dict[str, list[Manifest]]:
    """Component of the kustomize base → its objects, as the chart gives them with the defaults."""
    return {
        "monitors": [monitor(process, namespace, INTERVAL) for process in PROCESSES],
        "rules": [rule(namespace, [group for group in groups() if not is_of_metrics_api(group)])],
        "dashboards": [board(one.uid, namespace, model(one)) for one in dashboards.ALL],
        **metrics_api_components(namespace),
    }


def metrics_api_components(namespace: str) -> dict[str, list[Manifest]]:
    """The process that is installed on request, and what watches it."""
    alerts = [group for group in groups() if is_of_metrics_api(group)]
    return {
        METRICS_API.name: list(render_metrics_api(InstallValues(namespace=namespace, metrics_api=True))),
        f"{METRICS_API.name}-monitoring": [
            monitor(METRICS_API.name, namespace, INTERVAL),
            rule(namespace, alerts, name=account_name(METRICS_API.name)),
        ],
    }


def boards(namespace: str) -> Iterator[Manifest]:
    """With a hole for the chart's file."""
    for one in dashboards.ALL:
        yield board(one.uid, namespace, text(f'.Files.Get "dashboards/{one.uid}.json"'), ".Values.dashboards.labels")


def _words(found: dict[str, str]) -> str:
    return " ".join(f'"{word}"' for pair in found.items() for word in pair)
