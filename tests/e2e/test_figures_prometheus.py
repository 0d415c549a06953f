"""The figures of pools in money, by the real Prometheus with the rules that ship and series as kubelets have them.

What is expected is added up here, pod by pod, and shares nothing with the rules.
"""

from __future__ import annotations

import json
import random
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.observe import rules
from deploy.observe.dashboards import POOLS
from deploy.observe.grafana import without_choices
from tests.e2e.real_prometheus import missing, serving_file

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

GIB = 2**30
CORE_IN_BYTES = 7.5 * GIB
"""The memory that costs as much as a core."""
SCRAPE, HISTORY = 30, 1200
"""Seconds. Prometheus records nothing that is older than its blocks: the series end now, and are fresh for minutes."""
ROWS = ("Where the money goes", "Zones, types and work", "Reserved for kubelet and runtime")


@dataclass(frozen=True)
class Pod:
    name: str
    requested: tuple[float, float]
    """Cores, bytes."""
    used: tuple[float, float] | None
    """None: cAdvisor does not tell."""


@dataclass(frozen=True)
class Machine:
    name: str
    pool: str
    zone: str
    kind: str
    performance: float | None
    size: tuple[float, float]
    allocatable: tuple[float, float]
    price: float
    overhead: tuple[float, float]
    pods: tuple[Pod, ...]


def generated(seed: int = 5) -> list[Machine]:
    draw = random.Random(seed)
    machines = []
    for number in range(16):
        pool = ("web", "db")[number % 2]
        kind, cores, gib, price, speed = draw.choice(
            [("m5.large", 2, 8, 0.096, 1.0), ("m7i.xlarge", 4, 16, 0.2016, 1.5), ("mystery", 8, 32, 0.5, None)]
        )
        allocatable = (cores - 0.1, gib * GIB - 1.5 * GIB)
        pods = []
        for index in range(4):
            requested = (allocatable[0] * draw.uniform(0.05, 0.22), allocatable[1] * draw.uniform(0.05, 0.22))
            used = (requested[0] * draw.uniform(0.1, 1.8), requested[1] * draw.uniform(0.3, 1.3))
            pods.append(Pod(f"p{number}-{index}", requested, None if index == 3 and number % 5 == 0 else used))
        overhead = (0.02 + 0.03 * draw.random(), draw.uniform(0.3, 1.2) * GIB)
        machines.append(
            Machine(
                f"n{number}",
                pool,
                "ab"[number // 2 % 2],
                kind,
                speed,
                (cores, gib * GIB),
                allocatable,
                price,
                overhead,
                tuple(pods),
            )
        )
    return machines


MACHINES = generated()


def series() -> dict[str, dict[str, tuple[float, float]]]:
    """Metric → labels → (value now, growth in a second)."""
    results: dict[str, dict[str, tuple[float, float]]] = {}

    def add(metric: str, value: float, growth: float = 0.0, **labels: str) -> None:
        text = ",".join(f'{name}="{label}"' for name, label in labels.items())
        results.setdefault(metric, {})[text] = (value, growth)

    scrape = {"instance": "c", "job": "c"}
    for pool in ("web", "db"):
        own = [machine for machine in MACHINES if machine.pool == pool]
        add("trimtab_compactor_pool_cost_dollars_per_hour", sum(m.price for m in own), pool=pool, **scrape)
        for index, resource in enumerate(("cpu", "memory")):
            for name, value in (
                ("capacity", sum(m.size[index] for m in own)),
                ("allocatable", sum(m.allocatable[index] for m in own)),
                ("requested", sum(p.requested[index] for m in own for p in m.pods)),
            ):
                add(f"trimtab_compactor_pool_{name}", value, pool=pool, resource=resource, **scrape)
        for resource in ("cpu", "memory"):
            of_pool = {"pool": pool, "runtime": "containerd", "resource": resource}
            for name in ("node_overhead_base", "node_overhead_per_pod", "node_reserved", "node_reserved_recommended"):
                add(f"trimtab_recommender_{name}", 1, **of_pool, **scrape)
            add("trimtab_recommender_node_overhead", 1, **of_pool, statistic="p95", **scrape)
        change = {"pool": pool, "runtime": "containerd"}
        add("trimtab_recommender_reservation_change", 1, **change, change="keep", **scrape)
        add("trimtab_recommender_overhead_coverage_ratio", 1, **change, **scrape)
        add("trimtab_recommender_reserved_dollars_per_hour", 1, **change, kind="unused", **scrape)
    add("trimtab_recommender_leading", 1, **scrape)
    for machine in MACHINES:
        node = {"node": machine.name}
        place = {"zone": machine.zone, "instance_type": machine.kind}
        add("trimtab_compactor_pool_node_info", 1, pool=machine.pool, **node, **place, **scrape)
        of_node = {"pool": machine.pool, **node, **scrape}
        add("trimtab_compactor_pool_node_cost_dollars_per_hour", machine.price, **of_node)
        if machine.performance is not None:
            add("trimtab_compactor_pool_node_performance_ratio", machine.performance, **of_node)
        for part, share in (("kubelet", 0.4), ("containerd", 0.6)):
            cgroup = {**node, "id": f"/system.slice/{part}.service"}
            add("container_cpu_usage_seconds_total", 0, machine.overhead[0] * share, **cgroup)
            add("container_memory_working_set_bytes", machine.overhead[1] * share, **cgroup)
        for pod in machine.pods:
            of_pod = {"namespace": f"team-{pod.name[1:].partition('-')[0]}", "pod": pod.name}
            add("kube_pod_info", 1, **of_pod, **node)
            add("kube_pod_status_phase", 1, **of_pod, phase="Running")
            container = {**of_pod, "container": "main", **node}
            for index, (resource, unit) in enumerate((("cpu", "core"), ("memory", "byte"))):
                add(
                    "kube_pod_container_resource_requests",
                    pod.requested[index],
                    **container,
                    resource=resource,
                    unit=unit,
                )
            if pod.used is not None:
                add("container_cpu_usage_seconds_total", 0, pod.used[0], **container, image="i")
                add("container_memory_working_set_bytes", pod.used[1], **container, image="i")
    return results


def write(path: Path, now: int) -> None:
    with path.open("w", encoding="ascii") as out:
        for metric, by_labels in series().items():
            kind = "counter" if metric.endswith("_total") else "gauge"
            out.write(f"# TYPE {metric.removesuffix('_total')} {kind}\n")
            for labels, (value, growth) in by_labels.items():
                for at in range(now - HISTORY, now + 1, SCRAPE):
                    out.write(f"{metric}{{{labels}}} {value + growth * (at - now + HISTORY):.6f} {at}\n")
        hourly = "pool:trimtab_cost:dollars_per_hour_1h"
        out.write(f"# TYPE {hourly} gauge\n")
        for pool in ("web", "db"):
            for at in range(now - 30 * 86400, now - 3 * 86400, 1800):
                out.write(f'{hourly}{{pool="{pool}"}} 1 {at}\n')
        out.write("# EOF\n")


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    folder = tmp_path_factory.mktemp("figures")
    now = int(time.time())
    write(folder / "metrics.txt", now - now % SCRAPE)
    shipped = [rules.FOLDER / name for name in rules.FILES]
    with serving_file(folder, folder / "metrics.txt", rules=shipped) as url:

        def values(query: str) -> dict[tuple[tuple[str, str], ...], float]:
            printed_text = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
            with urllib.request.urlopen(printed_text, timeout=30) as answer:
                result = json.loads(answer.read())["data"]["result"]
            return {
                tuple(sorted((name, text) for name, text in one["metric"].items() if name != "__name__")): float(
                    one["value"][1]
                )
                for one in result
            }

        until = time.monotonic() + 60
        # Groups are evaluated beside each other: a rule that needs another group's has it a second later.
        last = (
            "pool:trimtab_unused_capacity:dollars_per_hour",
            "pool:trimtab_used_memory_per_core:bytes",
            "pool:trimtab_unused_reserved:dollars_per_hour",
            "pool_week:trimtab_cost:dollars_per_hour_min",
        )
        while not all(values(f"count_over_time({rule}[1m]) > 2") for rule in last):
            assert time.monotonic() < until, "the rules were not evaluated"
            time.sleep(0.5)
        yield values


def of_pool(pool: str) -> list[Machine]:
    return [machine for machine in MACHINES if machine.pool == pool]


def unit_price(pool: str) -> float:
    """Of a core, an hour."""
    own = of_pool(pool)
    return sum(m.price for m in own) / sum(m.size[0] + m.size[1] / CORE_IN_BYTES for m in own)


def priced(pool: str, amounts: list[tuple[float, float]]) -> float:
    return unit_price(pool) * sum(cores + count / CORE_IN_BYTES for cores, count in amounts)


def less(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return first[0] - second[0], first[1] - second[1]


@pytest.mark.parametrize("pool", ["web", "db"])
def test_the_parts_are_those_of_the_pods_and_add_up_to_the_bill(ask: object, pool: str) -> None:
    assert callable(ask)
    own = of_pool(pool)
    pods = [pod for machine in own for pod in machine.pods]
    expected = {
        "reserved": priced(pool, [less(m.size, m.allocatable) for m in own]),
        "unrequested": priced(pool, [m.allocatable for m in own]) - priced(pool, [p.requested for p in pods]),
        "idle": priced(
            pool,
            [
                (max(0, p.requested[0] - p.used[0]), max(0, p.requested[1] - p.used[1]))
                for p in pods
                if p.used is not None
            ],
        ),
        "used": priced(
            pool, [(min(p.requested[0], p.used[0]), min(p.requested[1], p.used[1])) for p in pods if p.used is not None]
        ),
        "unmeasured": priced(pool, [p.requested for p in pods if p.used is None]),
    }
    parts = {
        dict(labels)["part"]: value
        for labels, value in ask(f'pool_part:trimtab_cost:dollars_per_hour{{pool="{pool}"}}').items()
    }
    assert parts == pytest.approx(expected, rel=0.001)
    bill = sum(machine.price for machine in own)
    assert sum(parts.values()) == pytest.approx(bill, rel=0.001)
    [message] = ask(f'pool:trimtab_cost:dollars_per_hour{{pool="{pool}"}}').values()
    assert message == pytest.approx(bill)


@pytest.mark.parametrize("pool", ["web", "db"])
def test_what_is_unused_of_the_capacity_counts_kubelets_too(ask: object, pool: str) -> None:
    assert callable(ask)
    own = of_pool(pool)
    used = [pod.used for machine in own for pod in machine.pods if pod.used is not None]
    expected = priced(pool, [m.size for m in own]) - priced(pool, [*used, *(m.overhead for m in own)])
    [message] = ask(f'pool:trimtab_unused_capacity:dollars_per_hour{{pool="{pool}"}}').values()
    assert message == pytest.approx(expected, rel=0.001)


@pytest.mark.parametrize("pool", ["web", "db"])
def test_memory_per_core_is_normalized_by_the_speed_of_the_type(ask: object, pool: str) -> None:
    assert callable(ask)
    used = [(m.performance, p.used) for m in of_pool(pool) for p in m.pods if p.used is not None]
    for metric, expected in (
        ("memory_per_core", sum(use[1] for _, use in used) / sum(use[0] for _, use in used)),
        (
            "memory_per_normalized_core",
            sum(use[1] for speed, use in used if speed) / sum(use[0] * speed for speed, use in used if speed),
        ),
    ):
        [message] = ask(f'pool:trimtab_used_{metric}:bytes{{pool="{pool}"}}').values()
        assert message == pytest.approx(expected, rel=0.001)


def test_nodes_money_and_work_are_told_by_zone_type_and_label(ask: object) -> None:
    assert callable(ask)
    panels = {panel.title: panel for row in POOLS.rows for panel in row.panels}

    def shown(title: str) -> dict[tuple[tuple[str, str], ...], float]:
        return dict(ask(without_choices(panels[title].queries[0].asks)))

    places = {(m.kind, m.zone) for m in MACHINES}
    nodes = {
        (dict(labels)["instance_type"], dict(labels)["zone"]): value
        for labels, value in shown("Nodes by zone and type").items()
    }
    assert nodes == {place: sum((m.kind, m.zone) == place for m in MACHINES) for place in places}
    assert sum(shown("Cost by zone and type").values()) == pytest.approx(sum(m.price for m in MACHINES))
    assert shown("Work units") == {(("pool", "db"),): 8, (("pool", "web"),): 8}
    bill = {(("pool", pool),): sum(m.price for m in of_pool(pool)) / 8 for pool in ("db", "web")}
    assert shown("Cost of a work unit") == pytest.approx(bill)


def test_every_panel_about_money_and_reservations_finds_series(ask: object) -> None:
    assert callable(ask)
    rows = [
        (panel.title, without_choices(query.asks))
        for row in POOLS.rows
        if row.title in ROWS
        for panel in row.panels
        for query in panel.queries
    ]
    assert len(rows) > 20
    assert [(title, text) for title, text in rows if not ask(text)] == []
