"""What the values of a metric are follows from its name alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.usage.metric_names import Quantity, parse_stated_quantities, quantity_of_metric


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("container_cpu_usage_seconds_total", Quantity.CPU_SECONDS),
        ("container_memory_working_set_bytes", Quantity.BYTES),
        ("container_cpu_usage", Quantity.CORES),
        ("k8s_container_cpu_time_seconds_total", Quantity.CPU_SECONDS),
        ("node_namespace_pod_container:container_cpu_usage_seconds_total:sum_irate", Quantity.CORES),
        ("node_namespace_pod_container:container_cpu_usage_seconds_total:sum_rate5m", Quantity.CORES),
        ("container_cpu_usage_seconds:rate5m", Quantity.CORES),
        ("rate:container_cpu_usage_seconds_total", Quantity.CORES),
        ("pod:sum_rate5m:container_cpu_usage_seconds_total:sum", Quantity.CORES),
        ("node_namespace_pod_container:container_memory_working_set_bytes", Quantity.BYTES),
        ("pod:container_cpu_usage_seconds_total:sum", Quantity.CPU_SECONDS),
    ],
)
def test_the_name_of_a_metric_of_usage_says_its_quantity(name: str, quantity: Quantity) -> None:
    actual_quantity = quantity_of_metric(name)
    assert actual_quantity is not None
    assert actual_quantity[0] == quantity


@pytest.mark.parametrize(
    "name",
    [
        "container_cpu_cfs_throttled_seconds_total",
        "container_cpu_user_seconds_total",
        "container_cpu_load_average_10s",
        "container_spec_memory_limit_bytes",
        "container_network_receive_bytes_total",
        "container_fs_usage_bytes",
        "container_memory_cache",
        "container_memory_failcnt",
        "container_cpu_usage_percent",
        "container_start_time_seconds",
        "kube_pod_container_resource_requests",
        "kube_pod_container_resource_limits",
        "node_cpu_seconds_total",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "machine_memory_bytes",
        "http_requests_total",
        "up",
        "cluster:namespace:pod_memory:active:kube_pod_container_resource_requests",
        "namespace:container_cpu_usage_seconds_total:increase1h",
        "container_memory_working_set_bytes:rate5m",
        "namespace:container_memory_working_set_bytes:ratio",
        "container_cpu_usage_seconds_total:count",
        "increase:container_cpu_usage_seconds_total",
        "pod_rate:container_cpu_usage_seconds_total",
        "rate:container_memory_working_set_bytes",
    ],
)
def test_the_name_of_any_other_metric_says_none(name: str) -> None:
    assert quantity_of_metric(name) is None


@given(st.text("abcdefgh_:", max_size=30))
def test_a_name_without_cpu_and_memory_is_no_usage(name: str) -> None:
    assert quantity_of_metric(name) is None


def test_the_user_states_quantities_for_all_files_or_for_one() -> None:
    stated = parse_stated_quantities(["cores", "memory.json=bytes"])
    assert [stated.of_file(file) for file in ("cpu.json", "folder/memory.json")] == [Quantity.CORES, Quantity.BYTES]
    with pytest.raises(ValueError, match="cores, cpu-seconds, bytes"):
        parse_stated_quantities(["GiB"])
