"""Metrics of others that our dashboards and rules ask for, with the labels they have there."""

FOREIGN = {
    # Prometheus itself, of every alert of its rules.
    "ALERTS": {"alertname", "alertstate", "severity"},
    # cAdvisor, by the kubelet's /metrics/cadvisor; `node` is put on by the scrape's own configuration.
    "container_cpu_usage_seconds_total": {"container", "image", "pod", "namespace", "id", "name", "cpu", "node"},
    "container_memory_working_set_bytes": {"container", "image", "pod", "namespace", "id", "name", "node"},
    # The kubelet's /metrics/resource.
    "node_cpu_usage_seconds_total": {"node"},
    "node_memory_working_set_bytes": {"node"},
    # The API server's own.
    "aggregator_unavailable_apiservice": {"name"},
    # kube-state-metrics.
    "kube_node_status_allocatable": {"node", "resource", "unit"},
    "kube_pod_container_resource_requests": {"namespace", "pod", "container", "node", "resource", "unit"},
    "kube_pod_info": {"namespace", "pod", "node"},
    # Only with kube-state-metrics' --metric-labels-allowlist.
    "kube_pod_labels": {"namespace", "pod"},
    "kube_pod_overhead_memory_bytes": {"namespace", "pod"},
    "kube_pod_status_phase": {"namespace", "pod", "phase"},
}
