"""Pools in numbers, as they are scraped."""

from prometheus_client import CollectorRegistry

from tests.cluster_of import ALL, NOW, Item, cluster
from tests.compaction.test_pool_usage import machine, pod
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compactor.metrics import PoolCollector
from trimtab.runtime.metrics import render_metrics


def page(*items: Item, leading: bool = True) -> str:
    registry = CollectorRegistry()
    figures = PoolCollector(registry, lambda: leading)
    figures.view = ClusterView(now=NOW, inventory=cluster(*items), pools=(ALL,))
    return render_metrics(registry).decode()


def test_cpu_is_told_in_cores_and_cost_in_dollars() -> None:
    actual_page = page(machine("n1", labels={"trimtab.dev/price": "250000"}), pod("a-1", "n1", "500m"))
    for line in (
        'pool_requested{pool="all",resource="cpu"} 0.5',
        'pool_capacity{pool="all",resource="cpu"} 4.5',
        'pool_cost_dollars_per_hour{pool="all"} 0.25',
        'pool_full_nodes{pool="all",resource="volumes"} 0.0',
        'pool_node_info{instance_type="",node="n1",pool="all",zone=""} 1.0',
        'pool_node_cost_dollars_per_hour{node="n1",pool="all"} 0.25',
    ):
        assert f"trimtab_compactor_{line}\n" in actual_page


def test_where_no_price_is_known_no_cost_is_told() -> None:
    actual_page = page(machine("n1"))
    assert "dollars_per_hour{" not in actual_page
    assert 'trimtab_compactor_pool_unpriced_nodes{pool="all"} 1.0' in actual_page


def test_a_node_has_the_performance_of_its_type() -> None:
    actual_page = page(machine("n1", labels={"node.kubernetes.io/instance-type": "m5.large"}), machine("n2"))
    assert 'trimtab_compactor_pool_node_performance_ratio{node="n1",pool="all"} 1.0\n' in actual_page
    assert 'performance_ratio{node="n2"' not in actual_page


def test_only_who_leads_tells_of_pools() -> None:
    assert page(machine("n1"), leading=False) == ""
