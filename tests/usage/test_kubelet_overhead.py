"""What kubelets say about themselves: both parts, the fallback, and what is not known."""

import json

import pytest

from tests.usage.fake_prometheus import Answer, Asked, serving
from tests.usage.summaries import body, node_summary
from tests.usage.test_kubelet import AT, client
from trimtab.kube.errors import InvalidResponse, KubeFault
from trimtab.usage.kubelet_overhead import (
    KubeletSettings,
    NodeOverhead,
    OverheadSource,
    overhead_of_summary,
    read_kubelet_settings,
    read_overheads,
    settings_of_configz,
    with_counted_cpu,
)

MIB = 1 << 20


def test_kubelet_and_runtime_are_added() -> None:
    overhead = overhead_of_summary(body(node_summary("a", 30)))
    assert (overhead.node, overhead.second, overhead.pods) == ("a", AT, 30)
    assert (overhead.millicores, overhead.memory_bytes) == (50, 500 * MIB)
    assert overhead.cpu_source is overhead.memory_source is OverheadSource.SYSTEM_CONTAINERS


def test_a_node_without_pods_is_read() -> None:
    empty = json.loads(body(node_summary("a")))
    assert overhead_of_summary(body({**empty, "pods": None})).pods == 0


def test_without_the_runtime_it_is_the_node_less_its_pods() -> None:
    overhead = overhead_of_summary(body(node_summary("a", runtime=None)))
    assert (overhead.millicores, overhead.memory_bytes) == (200, 1000 * MIB)
    assert overhead.memory_source is OverheadSource.NODE_LESS_PODS


def test_what_neither_tells_is_unknown_and_no_zero() -> None:
    overhead = overhead_of_summary(body(node_summary("a", runtime=None, of_pods=None)))
    assert (overhead.millicores, overhead.memory_bytes, overhead.cpu_source) == (None, None, None)


def test_a_missing_memory_leaves_the_cpu() -> None:
    summary = node_summary("a")
    for part in summary["node"]["systemContainers"]:
        del part["memory"]["workingSetBytes"]
    overhead = overhead_of_summary(body(summary))
    assert (overhead.millicores, overhead.memory_bytes) == (50, None)


@pytest.mark.parametrize("text", [b"{", b"{}", b'{"node": {"nodeName": "a"}}'])
def test_a_summary_without_a_node_or_a_time_is_told(text: bytes) -> None:
    with pytest.raises(InvalidResponse):
        overhead_of_summary(text)


def reading(at: int, seconds: tuple[float, float]) -> NodeOverhead:
    return overhead_of_summary(body(node_summary("a", at=at, seconds=seconds)))


def test_counted_seconds_tell_what_was_used_in_between() -> None:
    before, after = reading(0, (100, 200)), reading(60, (103, 209))
    assert with_counted_cpu(before, after).millicores == 200
    assert with_counted_cpu(None, after).millicores == 50


@pytest.mark.parametrize(("at", "seconds"), [(60, (1, 209)), (3600, (103, 209))], ids=["a restarted kubelet", "a gap"])
def test_a_restart_and_a_gap_leave_the_value_of_the_moment(at: int, seconds: tuple[float, float]) -> None:
    assert with_counted_cpu(reading(0, (100, 200)), reading(at, seconds)).millicores == 50


def test_each_node_is_asked_once_and_a_silent_one_is_a_fault() -> None:
    def answer(request: Asked) -> Answer:
        if "/nodes/b/" in request[0]:
            return 503, {"kind": "Status", "reason": "ServiceUnavailable", "message": "no route to host"}
        return 200, node_summary("a")

    with serving(answer) as server:
        first, second = read_overheads(client(server.url), ["a", "b"])
    assert isinstance(first, NodeOverhead)
    assert isinstance(second, KubeFault)
    assert [request[1] for request in server.asked] == [{"only_cpu_and_memory": "true"}] * 2


CONFIGZ = {
    "kubeletconfig": {
        "kubeReserved": {"cpu": "80m", "memory": "1Gi"},
        "systemReserved": {"memory": "512Mi"},
        "evictionHard": {"memory.available": "5%"},
        "maxPods": 110,
        "cgroupDriver": "systemd",
    }
}


def test_the_configuration_tells_what_is_reserved() -> None:
    settings = settings_of_configz(json.dumps(CONFIGZ).encode())
    assert settings == KubeletSettings(
        reserved_millicores=80, reserved_memory_bytes=1536 * MIB, eviction_memory="5%", max_pods=110
    )


def test_a_configuration_that_makes_no_sense_is_a_fault() -> None:
    with serving(lambda _: (200, {"kubeletconfig": {"kubeReserved": {"cpu": "much"}}})) as server:
        assert isinstance(read_kubelet_settings(client(server.url), "a"), KubeFault)
