"""Every kubelet's summary, through the API server."""

import json
from typing import Any

import pytest

from tests.usage.fake_prometheus import Answer, Asked, serving
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse, NotAllowed
from trimtab.usage.kubelet import Kubelets, readings_of_summary
from trimtab.usage.series import MAX_GAP_SECONDS

AT = 1767571200
"""2026-01-05T00:00:00Z."""


def client(url: str) -> Client:
    from kubernetes.client import ApiClient, Configuration

    return Client(ApiClient(Configuration(host=url, retries=False)))  # type: ignore[arg-type]


def summary(pod: str, seconds: float | None = None, at: int = 0) -> dict[str, Any]:
    """One container that uses a quarter of a core now, and used so many seconds since it began."""
    time = f"2026-01-05T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"
    counted = {} if seconds is None else {"usageCoreNanoSeconds": int(seconds * 1e9)}
    stats = {
        "name": "app",
        "cpu": {"time": time, "usageNanoCores": 250000000, **counted},
        "memory": {"time": time, "workingSetBytes": 4096, "rssBytes": 1},
    }
    ref = {"name": pod, "namespace": "shop", "uid": "u"}
    return {"node": {"nodeName": "a"}, "pods": [{"podRef": ref, "containers": [stats, {"name": "starting"}]}]}


class Played:
    """An API server with nodes a and b, whose kubelets say what they are told to."""

    def __init__(self, **text: Any) -> None:
        self.said = {"a": summary("web-0", 10), "b": summary("api-0"), **text}

    def __call__(self, request: Asked) -> Answer:
        path = request[0]
        if path == "/api/v1/nodes":
            items = [{"metadata": {"name": name}} for name in self.said]
            return 200, {"metadata": {"resourceVersion": "1"}, "items": items}
        text = self.said[path.removeprefix("/api/v1/nodes/").removesuffix("/proxy/stats/summary")]
        return text if isinstance(text, tuple) else (200, text)


def values(kubelets: Kubelets) -> dict[tuple[str, str], float]:
    return {(series.pod, series.resource): series.values[0] for series in kubelets.read_usage()}


def test_a_summary_is_read() -> None:
    series = [look.series for look in readings_of_summary(json.dumps(summary("web-0")).encode())]
    assert [(s.namespace, s.container, s.resource, s.times[0], s.values[0]) for s in series] == [
        ("shop", "app", "cpu", AT, 0.25),
        ("shop", "app", "memory", AT, 4096.0),
    ]


def test_lists_that_go_writes_as_null_are_empty() -> None:
    """A pod whose containers have not begun, and a node without pods."""
    actual_summary = summary("web-0")
    actual_summary["pods"].append(
        {"podRef": {"name": "web-1", "namespace": "shop"}, "containers": None, "volume": None}
    )
    assert [look.series.pod for look in readings_of_summary(json.dumps(actual_summary).encode())] == ["web-0", "web-0"]
    assert list(readings_of_summary(b'{"node": {"nodeName": "a"}, "pods": null}')) == []


def test_what_makes_no_sense_is_told() -> None:
    with pytest.raises(InvalidResponse):
        list(readings_of_summary(b"{"))


def test_every_node_is_asked_and_counted_seconds_tell_what_was_used_in_between() -> None:
    played = Played()
    with serving(played) as server:
        kubelets = Kubelets(client(server.url))
        assert values(kubelets) == {
            ("web-0", "cpu"): 0.25,
            ("web-0", "memory"): 4096.0,
            ("api-0", "cpu"): 0.25,
            ("api-0", "memory"): 4096.0,
        }
        played.said["a"] = summary("web-0", 10 + 30, at=60)
        assert values(kubelets)["web-0", "cpu"] == 0.5


@pytest.mark.parametrize(
    ("seconds", "at", "cores"),
    [(3.0, 60, 0.05), (40.0, MAX_GAP_SECONDS + 1, 0.25)],
    ids=["a counter that went down began at 0", "over a gap the last seconds count"],
)
def test_counters_begin_anew_and_gaps_say_nothing(seconds: float, at: int, cores: float) -> None:
    played = Played()
    with serving(played) as server:
        kubelets = Kubelets(client(server.url))
        list(kubelets.read_usage())
        played.said["a"] = summary("web-0", seconds, at=at)
        assert values(kubelets)["web-0", "cpu"] == cores


def test_a_node_that_does_not_answer_is_told_and_the_others_count() -> None:
    clients: list[str] = []
    gone = (503, {"kind": "Status", "reason": "ServiceUnavailable", "message": "no route to host"})
    with serving(Played(b=gone)) as server:
        result = values(Kubelets(client(server.url), clients.append))
    assert [pod for pod, _ in result] == ["web-0", "web-0"]
    assert "summary of node b" in clients[0]


def test_where_nobody_may_be_asked_that_is_raised() -> None:
    no = (403, {"kind": "Status", "reason": "Forbidden", "message": "nodes/proxy is forbidden"})
    with serving(Played(a=no, b=no)) as server, pytest.raises(NotAllowed, match="nodes/proxy is forbidden"):
        values(Kubelets(client(server.url)))
