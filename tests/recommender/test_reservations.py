"""The recommender measures kubelets, publishes reservations, and loses nothing with a restart."""

import io
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.cluster_of import cluster, node
from tests.reservations.loads import AT
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Unreadable
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.reservations import PublishedReservations, ReservationMeasurer
from trimtab.recommender.sharded_configmaps import StoreUnavailable
from trimtab.reservations.encode_history import decode_history, encode_history
from trimtab.reservations.overhead_history import OverheadHistory, OverheadSample
from trimtab.runtime import log
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.kubelet_overhead import NodeOverhead, OverheadSource

MIB = 1 << 20
HOUR = 3600


@dataclass
class Store:
    """ConfigMaps that are played."""

    published: str = ""
    histories: dict[str, str] = field(default_factory=dict)
    writes: int = 0
    down: bool = False

    def load_published(self) -> str:
        return self.published

    def store_published(self, text: str) -> None:
        if self.down:
            raise StoreUnavailable("nobody answers")
        self.published, self.writes = text, self.writes + 1

    def load_histories(self) -> Mapping[str, str]:
        return dict(self.histories)

    def store_history(self, name: str, text: str) -> None:
        self.histories[name] = text

    def delete_history(self, name: str) -> None:
        del self.histories[name]

    def pools(self) -> dict[str, Any]:
        return {pool["pool"]: pool for pool in json.loads(self.published)["pools"]}


def machines(count: int = 20, pool: str = "web") -> list[NodeInfo]:
    items = []
    for number in range(count):
        item = node(
            f"n{number:02}", cpu="7920m", memory="30Gi", labels={"nodepool": pool, "trimtab.dev/price": "400000"}
        )
        item["status"]["capacity"] = {"cpu": "8", "memory": "32Gi"}
        item["status"]["nodeInfo"] = {"containerRuntimeVersion": "containerd://2.1"}
        items.append(item)
    return list(cluster(*items).nodes)


@dataclass
class World:
    """Kubelets that use 20m + 1m a pod, and 400 MiB + 12 MiB a pod."""

    nodes: list[NodeInfo] = field(default_factory=machines)
    noise: float = 0.0
    times: float = 1.0
    silent: bool = False
    draw: random.Random = field(default_factory=lambda: random.Random(3))

    def read(self, names: Sequence[str], _start: int, now: int) -> Iterable[NodeOverhead]:
        if self.silent:
            raise UnreachableSource("nobody answers")
        for number, name in enumerate(names):
            pods, factor = 20 + 4 * number, self.times * self.draw.uniform(1 - self.noise, 1 + self.noise)
            yield NodeOverhead(
                node=name,
                second=now,
                pods=pods,
                millicores=(20 + pods) * factor,
                memory_bytes=(400 + 12 * pods) * MIB * factor,
                cpu_source=OverheadSource.SYSTEM_CONTAINERS,
                memory_source=OverheadSource.SYSTEM_CONTAINERS,
            )


def measurer(world: World, store: Store, registry: CollectorRegistry | None = None) -> ReservationMeasurer:
    return ReservationMeasurer(
        read_nodes=lambda: world.nodes,
        read_overheads=world.read,
        store=store,
        log=log.build_logger(stream=io.StringIO()),
        interval_seconds=300,
        metrics=Metrics(registry or CollectorRegistry(), lambda: True).reservations,
    )


def test_the_first_measurement_is_published() -> None:
    store = Store()
    measurer(World(), store).measure_if_due(AT)
    web = store.pools()["web"]
    assert (web["millicores"], web["memoryBytes"] // MIB, web["runtime"]) == (120, 1600, "containerd")
    assert web["millicoresPerPod"] == pytest.approx(1, rel=0.02)
    assert web["bytesPerPod"] == pytest.approx(12 * MIB, rel=0.02)
    assert (web["nodes"], web["since"]) == (20, AT)


def test_between_two_intervals_nothing_is_read() -> None:
    world, store = World(), Store()
    it = measurer(world, store)
    it.measure_if_due(AT)
    world.silent = True
    it.measure_if_due(AT + 60)
    with pytest.raises(UnreachableSource):
        it.measure_if_due(AT + 300)


def test_noise_of_five_percent_over_thirty_days_writes_once() -> None:
    world, store = World(noise=0.05), Store()
    it = measurer(world, store)
    for hour in range(0, 30 * 24, 6):
        it.measure_if_due(AT + hour * HOUR)
    assert store.writes == 1


def test_a_larger_need_is_published_at_once_and_a_smaller_one_after_a_week() -> None:
    world, store = World(), Store()
    it = measurer(world, store)
    it.measure_if_due(AT)
    world.times = 2
    it.measure_if_due(AT + HOUR)
    assert store.pools()["web"]["memoryBytes"] // MIB == 3136
    world.times = 1
    for hour in range(2, 24 * 7, 6):
        it.measure_if_due(AT + hour * HOUR)
    assert store.pools()["web"]["memoryBytes"] // MIB == 3136
    for hour in range(24 * 7, 24 * 16, 6):
        it.measure_if_due(AT + hour * HOUR)
    assert store.pools()["web"]["memoryBytes"] // MIB == 1600


def test_a_restart_goes_on_where_the_last_life_ended() -> None:
    world, store = World(), Store()
    first = measurer(world, store)
    for hour in range(0, 48, 6):
        first.measure_if_due(AT + hour * HOUR)
    first.store_histories(AT + 48 * HOUR)
    second = measurer(world, store)
    second.measure_if_due(AT + 48 * HOUR)
    (pool,) = second.pools
    assert pool.use.span_seconds == 48 * HOUR  # type: ignore[union-attr]
    assert store.writes == 1


def test_damaged_texts_are_left_out() -> None:
    store = Store(published="{", histories={"trimtab-overhead-x": "{", "trimtab-overhead-y": '{"pool":"a"}'})
    registry = CollectorRegistry()
    measurer(World(), store, registry).measure_if_due(AT)
    assert "web" in store.pools()
    unreadable = [
        registry.get_sample_value("trimtab_recommender_unreadable_shards", {"what": what})
        for what in ("overhead", "reservations")
    ]
    assert unreadable == [2, 1]


def test_the_history_of_a_pool_that_is_gone_goes_too() -> None:
    world, store = World(), Store()
    it = measurer(world, store)
    it.measure_if_due(AT)
    it.store_histories(AT)
    world.nodes = machines(pool="db")
    for day in range(1, 10):
        it.measure_if_due(AT + day * 86400)
    it.store_histories(AT)
    assert set(store.pools()) == {"db"}
    assert len(store.histories) == 1


def test_what_could_not_be_written_is_written_next_time() -> None:
    store = Store(down=True)
    it = measurer(World(), store)
    with pytest.raises(StoreUnavailable):
        it.measure_if_due(AT)
    store.down = False
    it.measure_if_due(AT + 300)
    assert store.writes == 1


def test_every_figure_is_a_metric() -> None:
    registry = CollectorRegistry()
    measurer(World(), Store(), registry).measure_if_due(AT)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(
            f"trimtab_recommender_{name}", {"pool": "web", "runtime": "containerd", **labels}
        )

    assert value("node_overhead", resource="memory", statistic="max") == (400 + 12 * 96) * MIB
    assert value("node_overhead_base", resource="cpu") == pytest.approx(0.020, rel=0.1)
    assert value("node_overhead_per_pod", resource="cpu") == pytest.approx(0.001, rel=0.02)
    assert value("node_reserved", resource="cpu") == 0.08
    assert value("node_reserved_recommended", resource="cpu") == 0.12
    assert value("overhead_coverage_ratio") == 1
    assert value("reservation_change", change="raise") == 1
    unused, overdraft = (value("reserved_dollars_per_hour", kind=kind) for kind in ("unused", "overdraft"))
    assert unused is not None
    assert overdraft is not None
    assert unused > overdraft >= 0


def test_a_history_survives_its_text() -> None:
    history = OverheadHistory(max_days=7)
    sample = OverheadSample(node="a", second=AT, pods=30, millicores=51.04, memory_bytes=5.0 * MIB)
    for second in range(0, 86400, 600):
        history.add_sample(replace(sample, second=AT + second))
    text = encode_history(history)
    second_history = decode_history("here", text, 7)
    assert isinstance(second_history, OverheadHistory)
    assert encode_history(second_history) == text
    assert second_history.list_points("cpu")[0].amount == pytest.approx(51, abs=0.1)
    assert isinstance(decode_history("here", text[:-9], 7), Unreadable)
    assert isinstance(decode_history("here", "", 7), Unreadable)


def test_what_is_published_has_a_kind() -> None:
    assert (PublishedReservations().kind, PublishedReservations().api_version) == (
        "NodeReservations",
        "trimtab.dev/v1alpha1",
    )
