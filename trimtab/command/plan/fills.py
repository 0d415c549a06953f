"""How full is each node, before and after?"""

from collections.abc import Iterable, Mapping

from trimtab.cluster.api.meta import change
from trimtab.cluster.inventory import Inventory
from trimtab.cluster.pod import Pod
from trimtab.cluster.reason import Unreadable
from trimtab.command.plan.report import Fill, NodeReport
from trimtab.compaction.simulate import successor
from trimtab.packing.world import Again


def nodes(
    inventory: Inventory, gone: Iterable[str], places: Mapping[str, str], again: Again | None = None
) -> list[NodeReport]:
    """Every node of before; `places`: where moved pods (namespace/name) run after; `again`: what they ask for then."""
    lost = set(gone)
    before = _fills((pod, pod.node) for pod in inventory.pods)
    moved = (change(pod, ask=successor(pod, again)) if pod.key in places else pod for pod in inventory.pods)
    after = _fills((pod, places.get(pod.key, pod.node)) for pod in moved if _stays(pod, lost, places))
    return [_node(inventory, number, before, after, lost) for number in range(len(inventory.nodes))]


def _stays(pod: Pod, lost: set[str], places: Mapping[str, str]) -> bool:
    """What is bound to a node (a DaemonSet's pod) goes with it."""
    return pod.key in places or pod.node not in lost


def _fills(pods: Iterable[tuple[Pod, str]]) -> dict[str, Fill]:
    sums: dict[str, tuple[int, int, int]] = {}
    for pod, node in pods:
        if node and not pod.finished:
            asks = pod.ask.requests
            cpu, memory = (0, 0) if isinstance(asks, Unreadable) else (asks.get("cpu", 0), asks.get("memory", 0))
            have = sums.get(node, (0, 0, 0))
            sums[node] = (have[0] + cpu, have[1] + memory, have[2] + 1)
    return {node: Fill(cpu=cpu, memory=memory, pods=count) for node, (cpu, memory, count) in sums.items()}


_EMPTY = Fill(cpu=0, memory=0, pods=0)


def _node(
    inventory: Inventory, number: int, before: Mapping[str, Fill], after: Mapping[str, Fill], lost: set[str]
) -> NodeReport:
    node = inventory.nodes[number]
    have = {} if isinstance(node.allocatable, Unreadable) else node.allocatable
    return NodeReport(
        name=node.name, cpu=have.get("cpu", 0), memory=have.get("memory", 0), before=before.get(node.name, _EMPTY),
        after=None if node.name in lost else after.get(node.name, _EMPTY),
    )  # fmt: skip
