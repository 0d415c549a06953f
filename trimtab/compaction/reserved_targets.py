"""Chooses the targets of a plan that must not receive pods yet.

A plan fills its targets exactly, but kube-scheduler places a successor where it likes, and by default on the emptiest
node. The successors of the first wave then take a little of the capacity of every target, and what remains is in pieces
that are too small for the large pods of later waves. So the first wave gets as many targets as its pods need, beginning
with those that it fills by the plan, and the others are reserved.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from trimtab.compaction.plan_types import Plan, Wave
from trimtab.compaction.search.reserved_capacity import pods_left_to_move
from trimtab.scheduling.cluster_model import ClusterModel, FreeCapacity
from trimtab.scheduling.filters import fits_on_node


def reserved_targets(
    plan: Plan, model: ClusterModel, draining: Iterable[str] = (), reserved: Collection[str] = ()
) -> frozenset[str]:
    """Returns the targets that the pods of the first wave do not need. The model is the one of the plan.

    `draining`: nodes that are being drained now; the pods that are left on them count like those of the first wave.
    `reserved`: nodes that are reserved already and stay so, except for those that the pods need now.
    """
    arrivals = _ArrivalsByTarget(plan.waves, model)
    capacity = FreeCapacity(model)
    capacity.reserve_growth()
    for step in plan.all_steps:
        capacity.cordon_node(model.node_numbers[step.node])
    left = [
        pod
        for name in draining
        if (node := model.node_numbers.get(name)) is not None
        for pod in pods_left_to_move(model, node)
    ]
    before = {node for name in reserved if (node := model.node_numbers.get(name)) is not None}
    targets = sorted(
        arrivals.first.keys() | arrivals.later.keys() | before,
        key=lambda node: (node in before, -arrivals.first_share(node), capacity.major[node], node),
    )
    needed = _needed_targets(capacity, (*arrivals.first_pods, *left), targets)
    return frozenset(model.nodes[node].name for node in targets if node not in needed)


class _ArrivalsByTarget:
    """What the plan places on each target, in amounts of the scarcer of cpu and memory."""

    def __init__(self, waves: Sequence[Wave], model: ClusterModel) -> None:
        self.first: Counter[int] = Counter()
        """Target → what arrives in the first wave."""
        self.later: Counter[int] = Counter()
        """Target → what arrives in later waves."""
        self.first_pods: list[int] = []
        """The pods of the first wave."""
        number_of = {pod.key: number for number, pod in enumerate(model.pods)}
        for position, wave in enumerate(waves):
            amounts = self.later if position else self.first
            for move in (move for step in wave.steps for move in step.moves):
                pod = number_of[move.pod]
                # A pod that requests nothing arrives, too.
                amounts[model.node_numbers[move.target]] += max(1, model.successor_class_of[pod].major)
                if not position:
                    self.first_pods.append(pod)

    def first_share(self, target: int) -> float:
        """Returns which share of all that arrives on the target arrives in the first wave."""
        first = self.first[target]
        return first / ((first + self.later[target]) or 1)


def _needed_targets(capacity: FreeCapacity, pods: Sequence[int], targets: Sequence[int]) -> set[int]:
    """Returns the targets that these pods need: each takes the next target only where it fits on none before."""
    model, needed = capacity.world, dict[int, None]()
    for pod in sorted(pods, key=lambda pod: (model.successor_class_of[pod].sort_key, pod)):
        pod_class = model.successor_class_of[pod]
        capacity.uncount_pod(model.class_of[pod].member_groups, model.node_of[pod])
        fitting = [node for node in needed if fits_on_node(capacity, pod_class, node)]
        node = min(fitting, key=lambda node: (capacity.major[node], node), default=None)
        if node is None:
            node = next((n for n in targets if n not in needed and fits_on_node(capacity, pod_class, n)), None)
        if node is not None:
            needed[node] = None
            capacity.add_pod(pod_class, node)
    return set(needed)
