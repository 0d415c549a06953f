"""A node is not drained if the scheduler could place one of its pods where it does not run or does not belong."""

from tests.cluster_of import ALL, Item, cluster, node, pod
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.simulate import simulate_rounds
from trimtab.scheduling.cluster_model import build_cluster_model

ARCH = "kubernetes.io/arch"
ARM = {ARCH: "arm64"}
X86 = {ARCH: "amd64"}
VIRTUAL = {"type": "virtual-kubelet"}
BURST = {"tolerations": [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}]}
TAINT = [{"key": "virtual-kubelet.io/provider", "value": "azure", "effect": "NoSchedule"}]


def planned(*items: Item) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [ALL])


def codes(*items: Item) -> dict[str, str]:
    return {name: reason.code.name for name, reason in planned(*items).refusals.items()}


def drained(*items: Item) -> list[str]:
    return [step.node for step in planned(*items).all_steps]


def test_room_on_another_architecture_keeps_the_node() -> None:
    world = (
        node("x", labels=X86),
        node("y", labels=X86),
        node("g", labels=ARM),
        pod("web-0", "x"),
        pod("db-0", "y"),
        pod("arm-0", "g"),
    )
    assert codes(*world) == dict.fromkeys("xyg", "scheduler-may-choose-unfit-node")


def test_another_architecture_without_room_keeps_nothing() -> None:
    full = (node("g", labels=ARM), pod("arm-0", "g", "3800m"))
    assert drained(node("x", labels=X86), node("y", labels=X86), pod("web-0", "x"), pod("db-0", "y"), *full) == ["x"]


def test_another_architecture_with_a_taint_keeps_nothing() -> None:
    taint = [{"key": ARCH, "value": "arm64", "effect": "NoSchedule"}]
    apart = (node("g", labels=ARM, taints=taint), pod("arm-0", "g", spec={"tolerations": [{"operator": "Exists"}]}))
    goes = drained(node("x", labels=X86), node("y", labels=X86), pod("web-0", "x"), pod("db-0", "y"), *apart)
    assert set(goes) < {"x", "y"}


def test_pods_that_select_their_architecture_move_freely() -> None:
    chosen = {"nodeSelector": X86}
    world = (
        node("x", labels=X86),
        node("y", labels=X86),
        node("g", labels=ARM),
        pod("web-0", "x", spec=chosen),
        pod("db-0", "y", spec=chosen),
        pod("arm-0", "g", spec={"nodeSelector": ARM}),
    )
    assert len(drained(*world)) == 1


def test_a_virtual_node_is_drained_by_no_plan_and_counts_in_no_sum() -> None:
    world = (node("v", "10k", labels=VIRTUAL, taints=TAINT), node("a"), node("b"), pod("web-0", "a"), pod("db-0", "b"))
    plan = planned(*world)
    assert (plan.refusals["v"].code.name, len(plan.all_steps), plan.total_savings) == ("node-is-no-machine", 1, 4000)


def test_pods_that_tolerate_a_virtual_node_stay_because_the_scheduler_could_choose_it() -> None:
    nodes = (node("v", labels=VIRTUAL, taints=TAINT), node("a"), node("b"))
    world = (*nodes, pod("web-0", "a", spec=BURST), pod("db-0", "b", spec=BURST))
    assert codes(*world) == {
        "v": "node-is-no-machine",
        "a": "scheduler-may-choose-unfit-node",
        "b": "scheduler-may-choose-unfit-node",
    }


def test_pods_of_a_workload_that_runs_on_virtual_nodes_move_to_machines() -> None:
    nodes = (node("v", labels=VIRTUAL, taints=TAINT), node("a"), node("b"))
    world = (*nodes, pod("web-0", "a", spec=BURST), pod("web-1", "v", spec=BURST), pod("db-0", "b"))
    assert [(move.pod, move.target) for move in planned(*world).all_moves] in (
        [("default/web-0", "b")],
        [("default/db-0", "a")],
    )


def test_an_edge_node_stays() -> None:
    edge = node("e", labels={"openyurt.io/is-edge-worker": "true"}, taints=[{"key": "edge", "effect": "NoSchedule"}])
    assert codes(edge, node("a"), pod("web-0", "a"))["e"] == "edge-node"


def test_a_simulation_counts_machines() -> None:
    world = (node("v", "10k", labels=VIRTUAL, taints=TAINT), node("a"), node("b"), pod("web-0", "a"), pod("db-0", "b"))
    done = simulate_rounds(cluster(*world), [ALL])
    assert (done.nodes_before, done.nodes_after) == (2, 1)
