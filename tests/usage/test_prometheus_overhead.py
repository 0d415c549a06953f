"""What kubelets use by Prometheus: the use at single moments, and the most of the time between them."""

import pytest

from tests.usage.fake_prometheus import Answer, Asked, matrix, serving
from trimtab.usage.http_client import HttpApi
from trimtab.usage.kubelet_overhead import NodeOverhead, OverheadSource
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.prometheus_overhead import read_overhead_series

END = 20_000 * 86400
STEP = 3600
PODS, KUBELET, RUNTIME, NODE, KUBEPODS, PEAK = 30, 60.0, 500.0, 9000.0, 8400.0, 700.0


def answer(asked: Asked, *, runtime: bool) -> Answer:
    """One node at one moment."""
    query = asked[1]["query"]
    if "kubelet_running_pods" in query:
        value: float = PODS
    elif "kubelet[.]service" in query:
        value = KUBELET + 5 * ("max_over_time" in query)
    elif "containerd|crio" in query:
        if not runtime:
            return 200, matrix()
        value = RUNTIME + 20 * ("max_over_time" in query)
    elif "max_over_time" in query:
        assert "node_memory" in query
        assert "kubepods" in query
        value = PEAK
    else:
        value = KUBEPODS if "kubepods" in query else NODE
    return 200, matrix(({"pod": "n1"}, [(END, value)]))


def read(*, runtime: bool) -> tuple[NodeOverhead, list[str]]:
    with serving(lambda request: answer(request, runtime=runtime)) as server:
        plan = QueryPlan(step_seconds=STEP)
        (overhead,) = read_overhead_series(Prometheus(HttpApi(server.url), plan), END - STEP, END)
    return overhead, [query["query"] for _, query, _ in server.asked]


def test_the_line_gets_the_memory_of_a_moment_and_the_maximum_its_own_query() -> None:
    overhead, queries = read(runtime=True)
    assert (overhead.memory_bytes, overhead.max_memory_bytes) == (KUBELET + RUNTIME, KUBELET + RUNTIME + 25)
    assert overhead.memory_source is OverheadSource.SYSTEM_CONTAINERS
    assert sum("max_over_time" in query for query in queries) == 3


def test_node_less_pods_takes_the_most_of_the_difference() -> None:
    overhead, queries = read(runtime=False)
    assert (overhead.memory_bytes, overhead.max_memory_bytes) == (NODE - KUBEPODS, PEAK)
    (query,) = [query for query in queries if "max_over_time" in query and "node_memory" in query]
    assert f"[{STEP}s:60s]" in query


@pytest.mark.parametrize("runtime", [True, False])
def test_cpu_has_no_maximum_of_its_own(runtime: bool) -> None:
    overhead, _ = read(runtime=runtime)
    expected = 1000 * (KUBELET + RUNTIME if runtime else NODE - KUBEPODS)
    assert overhead.millicores == expected
