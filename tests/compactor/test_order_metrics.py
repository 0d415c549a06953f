"""What the metrics say of DrainOrders."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from tests.compactor.test_drain_orders import world
from trimtab.compactor.metrics import Metrics


def test_orders_are_counted_by_phase_and_the_oldest_that_has_not_ended_has_an_age() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, lambda: True, lambda: 0.0)
    orders = world()
    orders.order("a", uid="u-1")
    loop = orders.run(60, until="Done")
    orders.order("a", uid="u-2")
    created = orders.played.now
    orders.run(3, loop)
    metrics.update_from(loop, 1.0)
    text = generate_latest(registry).decode()
    assert 'trimtab_compactor_drain_orders{phase="Done"} 1.0' in text
    assert 'trimtab_compactor_drain_orders{phase="Waiting"} 1.0' in text
    assert loop.view is not None
    assert f"trimtab_compactor_oldest_drain_order_seconds {float(loop.view.now - created)}" in text
    orders.objects.clear()
    orders.run(6, loop)
    metrics.update_from(loop, 1.0)
    text = generate_latest(registry).decode()
    assert "trimtab_compactor_oldest_drain_order_seconds 0.0" in text
    assert "drain_orders{" not in text
