"""Is every state legal on the way through drains and replacements? A walk over the raw JSON, as in `verify`.

It imports nothing of the planner. What a new node is like, it derives itself: labels that all nodes of the group in the
zone share, the least of each allocatable amount, every taint, and one pod of each of their DaemonSets.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

from tests.bench import verify as v

MAX_SET = 4
ZONE, ARCH, HOST = "topology.kubernetes.io/zone", "kubernetes.io/arch", "kubernetes.io/hostname"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
SAME = (ZONE, ARCH, CAPACITY_TYPE)


@dataclass(frozen=True)
class NewNode:
    """What is said of one replacement: its nodes, its new node, and what it saves."""

    name: str
    group: str
    zone: str
    replaced: tuple[str, ...]
    price: int
    saves: int


class Walk:
    """A cluster as it is after the steps so far. Each method raises on the first fault."""

    def __init__(self, items, group_label, price_label="trimtab.dev/price"):
        self.state = v.read([item for item in items if item["kind"] != "Pod" or item["spec"].get("nodeName")])
        self.group_label, self.price_label = group_label, price_label
        self.gone, self.present = set(), set(self.state.nodes)

    def add_node(self, new):
        """The node of a group arrives, with its daemons."""
        members = [
            node
            for name, node in self.state.nodes.items()
            if node["metadata"]["labels"].get(self.group_label) == new.group
            and node["metadata"]["labels"].get(ZONE, "") == new.zone
            and name in self.present
        ]
        assert members, f"group {new.group} has no node in {new.zone}"
        assert new.name not in self.state.nodes, f"{new.name} is there already"
        labels = dict(set.intersection(*(set(node["metadata"]["labels"].items()) for node in members)))
        labels |= {HOST: new.name, self.price_label: str(new.price)}
        amounts = {
            resource: min(v.number(resource, node["status"]["allocatable"].get(resource, 0)) for node in members)
            for resource in members[0]["status"]["allocatable"]
        }
        taints = {tuple(sorted(taint.items())) for node in members for taint in node["spec"].get("taints", ())}
        self.state.nodes[new.name] = {
            "metadata": {"name": new.name, "labels": labels},
            "spec": {"taints": [dict(taint) for taint in taints]},
            "status": {
                "allocatable": {
                    resource: f"{amount}m" if resource == "cpu" else str(amount) for resource, amount in amounts.items()
                }
            },
        }
        daemons = {}
        for node in members:
            for name in sorted(self.state.on[node["metadata"]["name"]]):
                pod = self.state.pods[name]
                if v.is_daemon(pod):
                    daemons.setdefault(pod["metadata"]["ownerReferences"][0]["name"], pod)
        for owner, pod in daemons.items():
            name = f"{pod['metadata']['namespace']}/{owner}-{new.name}"
            self.state.pods[name] = pod
            v.put(self.state, name, new.name)
        prices = [int(node["metadata"]["labels"][self.price_label]) for node in members]
        assert new.price == max(prices), f"{new.name} costs {max(prices)}, not {new.price}"
        self._check_set(new)

    def _check_set(self, new):
        nodes = [self.state.nodes[name] for name in new.replaced]
        assert 1 <= len(set(new.replaced)) == len(new.replaced) <= MAX_SET, f"{new.name} replaces {new.replaced}"
        arrived = self.state.nodes[new.name]["metadata"]["labels"]
        for node in nodes:
            labels = node["metadata"]["labels"]
            assert node["metadata"]["name"] not in self.gone, f"{new.name} replaces a node that is gone"
            assert all(labels.get(key) == arrived.get(key) for key in SAME), f"{new.name} is of another kind"
        paid = sum(int(node["metadata"]["labels"][self.price_label]) for node in nodes)
        assert paid - new.price == new.saves > 0, f"{new.name} saves {paid - new.price}, not {new.saves}"

    def drain(self, node, moves):
        """One node is emptied: each move is (pod, source, target, turn)."""
        assert node not in self.gone, f"{node} is gone"
        state, spent = self.state, defaultdict(Counter)
        for pod, source, target, turn in moves:
            assert source == node == state.where[pod], f"{pod} is on {state.where[pod]}, not on {source}"
            assert v.may_move(state.pods[pod]), f"{pod} may not move"
            if (budget := v.app(state.pods[pod])) in state.budgets:
                spent[budget][turn] += 1
            v.lift(state, pod)
            v.check_place(state, pod, target, {node} | self.gone)
            v.put(state, pod, target)
        for budget, turns in spent.items():
            assert max(turns.values()) <= state.budgets[budget], f"budget {budget} allows {state.budgets[budget]}"
        left = [pod for pod in state.on[node] if not v.is_daemon(state.pods[pod])]
        assert not left, f"{node} still has {left}"
        self.gone.add(node)

    def settle(self):
        """Empty nodes are removed, so that they are no domains any more, and show nothing of their group."""
        for name in self.gone:
            for pod in [*self.state.on[name]]:
                v.lift(self.state, pod)
            del self.state.nodes[name]
        self.gone, self.present = set(), set(self.state.nodes)

    def replace(self, new, moves):
        """The new node arrives, and takes every pod of the nodes that it replaces."""
        self.add_node(new)
        assert all(target == new.name for _, _, target, _ in moves), f"a pod does not go to {new.name}"
        for node in new.replaced:
            self.drain(node, [move for move in moves if move[1] == node])
