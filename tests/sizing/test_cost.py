"""What a runtime costs per pod, by what pods use beside their containers."""

from trimtab.cluster.reason import NotYet
from trimtab.sizing.cost import SandboxCost, SandboxUse, larger_overhead, sandbox_cost


def test_a_pod_costs_p95_of_cpu_and_the_largest_memory_with_headroom():
    uses = [SandboxUse(0.1, 100 << 20)] * 18 + [SandboxUse(0.2, 120 << 20), SandboxUse(9.0, 100 << 20)]
    cost = sandbox_cost(uses)
    assert isinstance(cost, SandboxCost)
    assert (cost.millicores, cost.memory_bytes >> 20, cost.pods) == (230, 138, 20)
    assert cost.pod_fixed == {"cpu": "230m", "memory": "138Mi"}


def test_a_few_pods_are_not_enough():
    assert isinstance(sandbox_cost([SandboxUse(0.1, 1.0)] * 4), NotYet)


def test_containers_that_seem_to_use_more_than_their_pod_cost_nothing_and_never_less():
    cost = sandbox_cost([SandboxUse(-0.1, -5.0)] * 5)
    assert isinstance(cost, SandboxCost)
    assert (cost.millicores, cost.memory_bytes) == (1, 1 << 20)


def test_the_larger_of_two_overheads_is_taken_resource_by_resource():
    assert larger_overhead({"cpu": "100m", "memory": "1Gi"}, {"cpu": "0.2", "memory": "64Mi", "x": 1}) == {
        "cpu": "0.2",
        "memory": "1Gi",
        "x": 1,
    }
