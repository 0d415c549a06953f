"""An order that is carried out on a cluster that is played (`played`), round by round."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.compactor.played import Played
from trimtab.compaction.drain.actions import Evict, SetReplicas
from trimtab.compaction.drain.annotation import DrainAnnotations
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.order.next_round import drains_of, next_round
from trimtab.compaction.order.node_history import OrderNodeHistory, extend_history
from trimtab.compaction.order.order_plan import OrderPlan, plan_order
from trimtab.compaction.order.order_round import CordonForOrder, DrainOrder, OrderRound, WriteRecord
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.record import ORDER_ANNOTATION, OrderRecord, encode_record, read_record
from trimtab.compactor.actuator import EvictionResult
from trimtab.scheduling.cluster_model import build_cluster_model

TIMES = DrainTimeouts(ready=60, pending=60, end=60)


@dataclass
class OrderedDrain:
    """One order and its cluster. What a round needs stands in the cluster, so each round could be another process."""

    played: Played
    order: DrainOrder
    times: DrainTimeouts = TIMES
    moved_twice: list[str] = field(default_factory=list)
    """Pods that came to be on a node that the order empties."""
    writes: int = 0
    history: dict[str, OrderNodeHistory] = field(default_factory=dict)
    """What the process has seen; gone with it."""
    dies_after: int | None = None
    """The number of a write after which the process is gone."""

    @classmethod
    def of(cls, played: Played, *nodes: str, **more: object) -> "OrderedDrain":
        """The order of these nodes; `more`: fields of the order, or of its rules."""
        fields = {name: more.pop(name) for name in ("until", "deadline") if name in more}
        rules = OrderRules(**more)  # type: ignore[arg-type]
        return cls(played, DrainOrder(name="o1", nodes=nodes, since=played.now, rules=rules, **fields))  # type: ignore[arg-type]

    def records(self) -> dict[str, OrderRecord]:
        found = {}
        for name, item in self.played.nodes.items():
            record = read_record(item["metadata"]["annotations"], name)
            if isinstance(record, OrderRecord) and record.order == self.order.name:
                found[name] = record
        return found

    def look(self) -> ClusterView:
        return replace(
            self.played.look(), pools=(), autoscaler=None, annotations=DrainAnnotations(ours=drains_of(self.records()))
        )

    def decide(self, *, stop: object = None) -> OrderRound:
        view = self.look()

        def plan(names: Sequence[str]) -> OrderPlan:
            model = build_cluster_model(view.inventory)
            return plan_order(model, names, self.order.rules, view.now, self.order.nodes, self.order.name)

        self.history = extend_history(self.history, self.order.nodes, view.inventory.nodes, self.records())
        return next_round(
            self.order,
            view,
            self.records(),
            plan,
            self.times,
            stop,  # type: ignore[arg-type]
            self.history,
        )

    def run(self, rounds: int = 200, *, stop: object = None) -> OrderRound:
        """Rounds until the order is over, time passing between them."""
        for _ in range(rounds):
            result = self.decide(stop=stop)
            if result.is_over:
                return result
            if not self._write(result):
                return result
            self._pass_time()
        raise AssertionError(f"no end: {result}")

    def _pass_time(self) -> None:
        before = set(self.played.pods)
        self.played.tick()
        for uid, pod in self.played.pods.items():
            if uid not in before and pod["spec"]["nodeName"] in self.records():
                self.moved_twice.append(pod["metadata"]["name"])

    def _write(self, result: OrderRound) -> bool:
        """Makes the writes; False if the process is gone."""
        for name, write in result.writes:
            item = self.played.nodes.get(name, {})
            if isinstance(write, Evict):
                answer = self.played.evict_pod(write.move)
                assert answer.became in (EvictionResult.EVICTED, EvictionResult.REFUSED)
            elif isinstance(write, (CordonForOrder, WriteRecord)):
                item["metadata"]["annotations"][ORDER_ANNOTATION] = encode_record(write.record)
                if isinstance(write, CordonForOrder):
                    item["spec"]["unschedulable"] = True
            elif isinstance(write, SetReplicas) and write.autoscaler:
                self.played.set_min_replicas(write.autoscaler, write.before, write.replicas)
            elif isinstance(write, SetReplicas):
                self.played.scale_deployment(write.deployment, write.before, write.replicas)
            else:
                item["spec"]["taints"].append(
                    {"key": "trimtab.dev/drain-order-pending", "value": "o1", "effect": "PreferNoSchedule"}
                )
            self.writes += 1
            if self.writes == self.dies_after:
                self.history = {}
                return False
        return True
