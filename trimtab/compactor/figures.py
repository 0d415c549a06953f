"""Each pool in numbers: counted when somebody scrapes, since a round has better things to do."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trimtab.compaction.drain.view import View
from trimtab.compaction.holdings import Holding, holdings
from trimtab.runtime.metrics import Bounded

_BY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "capacity": ("What the pool's ready nodes have, in cores, bytes or pods by resource.", ("pool", "resource")),
    "allocatable": (
        "What the pool's ready nodes have for pods, in cores, bytes or pods by resource.", ("pool", "resource"),
    ),
    "requested": (
        "What pods bound to the pool's ready nodes ask for, in cores, bytes or pods by resource, DaemonSets included.",
        ("pool", "resource"),
    ),
    "full_nodes": ("Ready nodes that are at least 99 percent full, by what fills them.", ("pool", "resource")),
    "cost_dollars_per_hour": ("What the pool's nodes cost now; absent where no price is known.", ("pool",)),
    "unpriced_nodes": ("Nodes whose price nobody says: they are missing in the cost.", ("pool",)),
    "unread": ("Nodes and pods whose amounts make no sense: they are missing in the sums.", ("pool", "what")),
    "node_info": ("1 for each node of the pool: joins others' metrics with pools.", ("pool", "node")),
}  # fmt: skip
_FULL = ("cpu", "memory", "pods", "volumes")


class Figures(Collector):
    """Tells of `view`, while this replica leads."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool]) -> None:
        self._leading, self._pool = leading, Bounded()
        self.view: View | None = None
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield from _families().values()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        view = self.view
        if view is None or not self._leading():
            return
        families = _families()
        for pool, holding in holdings(view).items():
            _tell(families, self._pool(pool), holding)
        yield from families.values()


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        name: GaugeMetricFamily(f"trimtab_compactor_pool_{name}", says, labels=labels)
        for name, (says, labels) in _BY.items()
    }


def _tell(families: Mapping[str, GaugeMetricFamily], pool: str, holding: Holding) -> None:
    for name in ("capacity", "allocatable", "requested"):
        for resource, amount in getattr(holding, name).items():
            families[name].add_metric([pool, resource], amount / 1000 if resource == "cpu" else amount)
    for resource in _FULL:
        families["full_nodes"].add_metric([pool, resource], holding.full[resource])
    if holding.unpriced < len(holding.nodes) or not holding.nodes:
        families["cost_dollars_per_hour"].add_metric([pool], holding.cost / 1_000_000)
    families["unpriced_nodes"].add_metric([pool], holding.unpriced)
    for what in ("nodes", "pods"):
        families["unread"].add_metric([pool, what], holding.unread[what])
    for node in holding.nodes:
        families["node_info"].add_metric([pool, node], 1)
