"""Two watchdogs: one works, and when it goes the other does, on what it reads itself."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.test_watchdog import Watchdog, configuration, event, put, ready, touched, watchdog  # noqa: F401


def leading(twins: list[Watchdog]) -> list[Watchdog]:
    return [one for one in twins if one.value("trimtab_watchdog_leading") == 1]


@pytest.mark.usefixtures("ready")
def test_one_works_and_when_it_goes_its_twin_takes_over(cluster: Cluster, tmp_path: Path) -> None:
    auditor, name = cluster.auditor, f"twins-{cluster.namespace[-5:]}"
    cluster.apply(configuration(f"{cluster.namespace}-trimtab"))
    put(cluster, name, "{labels: {add: {team: a}}}")
    time.sleep(1.1)  # times in Kubernetes are whole seconds
    cluster.deployment("web", replicas=2)
    cluster.eventually(lambda: len(cluster.running("app=web")) == 2)

    def told_by(one: Watchdog) -> bool:
        return one.value("trimtab_unpatched_pods", policy=name, reason="missed-by-webhook") == 2

    with ExitStack() as first, ExitStack() as second:
        twins = [first.enter_context(watchdog(cluster, tmp_path)), second.enter_context(watchdog(cluster, tmp_path))]
        [works] = cluster.eventually(lambda: leading(twins), within=30, what="one of two leads")
        [waits] = [one for one in twins if one is not works]
        cluster.eventually(lambda: told_by(works), within=30, what="the pods in its metrics")
        cluster.eventually(lambda: event(cluster, "MissedByWebhook"), within=20)
        assert leading(twins) == [works]
        assert waits.value("trimtab_running_pods") == 0
        (first if works is twins[0] else second).close()
        cluster.eventually(lambda: leading([waits]), within=30, what="its twin leads")
        cluster.eventually(lambda: told_by(waits), within=30, what="the same pods in its metrics")
    assert touched(auditor) == []
