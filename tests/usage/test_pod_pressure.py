"""How much do the processes of pods wait?"""

import json

import pytest

from trimtab.kube.errors import InvalidResponse, Unreachable
from trimtab.usage.pod_pressure import PodPressures, periods_of_metrics, pressures_of_summary


def summary(cpu: float | None, memory: float | None = None) -> bytes:
    def part(share: float | None) -> dict[str, object]:
        return {} if share is None else {"psi": {"full": {"avg60": 0}, "some": {"avg10": 90.0, "avg60": share}}}

    pod = {"podRef": {"namespace": "shop", "name": "web"}, "cpu": part(cpu), "memory": part(memory)}
    return json.dumps({"pods": [pod]}).encode()


def test_the_larger_of_cpu_and_memory_counts() -> None:
    assert list(pressures_of_summary(summary(12.3, 40.1))) == [(("shop", "web"), 41)]


def test_a_kubelet_without_psi_says_nothing() -> None:
    assert list(pressures_of_summary(summary(None))) == []
    assert list(pressures_of_summary(b'{"pods": null}')) == []


def test_what_is_no_summary_is_an_error() -> None:
    with pytest.raises(InvalidResponse):
        list(pressures_of_summary(b"<html>"))


def metrics(throttled: int, periods: int) -> bytes:
    labels = 'container="app",namespace="shop",pod="web"'
    return (
        f"# TYPE container_cpu_cfs_periods_total counter\ncontainer_cpu_cfs_periods_total{{{labels}}} {periods} 17\n"
        f"container_cpu_cfs_throttled_periods_total{{{labels}}} {throttled} 17\nother{{{labels}}} 1\n"
    ).encode()


def test_periods_are_summed_by_pod() -> None:
    assert periods_of_metrics(metrics(3, 10) + metrics(1, 10)) == {("shop", "web"): (4.0, 20.0)}


class Kubelets:
    def __init__(self) -> None:
        self.metrics = metrics(0, 100)
        self.down = False

    def get(self, path: str, *, doing: str) -> bytes:
        if self.down:
            raise Unreachable(doing)
        return summary(5.0) if path.endswith("summary") else self.metrics


def test_throttling_is_what_came_since_the_last_reading() -> None:
    kubelets = Kubelets()
    reader = PodPressures(kubelets)  # type: ignore[arg-type]
    assert reader.read(["a"]) == ({("shop", "web"): 5}, {})
    kubelets.metrics = metrics(30, 200)
    assert reader.read(["a"])[1] == {("shop", "web"): 30}
    kubelets.metrics = metrics(0, 10)
    assert reader.read(["a"])[1] == {}, "the counters began anew"


def test_a_kubelet_that_does_not_answer_says_nothing() -> None:
    kubelets = Kubelets()
    kubelets.down = True
    assert PodPressures(kubelets).read(["a"]) == ({}, {})  # type: ignore[arg-type]
