"""The laws of outcomes on the real API server, controllers and scheduler: what ran without us runs with us.

Each world has policies and a Deployment of its own, with LimitRanges, quotas, VPAs and known peaks around it. The
Deployment is made twice, in a namespace without us and in one with us.

`LAW_FIRST` and `LAW_WORLDS` say which worlds: a run that was cut off goes on where it ended. Each world is the same
whichever others are run with it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.controlplane import autoscaler
from tests.controlplane.cluster import Cluster
from tests.e2e import laws, vpa
from tests.e2e.law_worlds import World
from tests.e2e.laws import SLOTS
from tests.e2e.ours import Ours, following, install_crd

FIRST = int(os.environ.get("LAW_FIRST", "0"))
WORLDS = int(os.environ.get("LAW_WORLDS", "600"))


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation, vpa.webhook() as hook:
        install_crd(installation.cluster, vpa.definition())
        laws.surroundings(installation.cluster)
        with_us = {"namespaceSelector": {"matchLabels": {"law": "ours"}}}
        vpa.registered(installation.cluster, "z-vpa", hook, **with_us)
        installation.serves(installation.cluster, "b-ours", **with_us)
        installation.cluster.apply(autoscaler.status({"law": 3}))  # no group may get its first node
        yield installation


@pytest.mark.slow
def test_what_ran_without_us_runs_with_us(ours: Ours, capfd: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()
    findings: list[str] = []

    def run_slot(slot: int) -> None:
        """The worlds on the nodes of a slot, one after the other."""
        for number in range(FIRST, FIRST + WORLDS):
            if number % SLOTS != slot:
                continue
            result = _judge(ours, number, counts)
            findings.extend(result)
            with capfd.disabled():
                print(f"world {number}: {result or 'held'}; {dict(counts)}", flush=True)

    with ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(run_slot, range(SLOTS)))
    assert findings == []
    assert counts["worlds"] == WORLDS
    assert counts["ran without us"] > WORLDS // 10
    assert counts["changed"] > WORLDS // 10


def _judge(ours: Ours, number: int, counts: Counter[str]) -> list[str]:
    """What does not hold. A finding counts if it is there again in the same world made anew: a watch of ours may be
    behind on a busy machine, which is no law's business."""
    results: list[str] = []
    for attempt in range(2):
        world = World(ours, number, attempt)
        try:
            world.begin()
            results = world.broken()
        except AssertionError as error:
            results = [f"world {number}: {error}"]
        finally:
            world.end()
        if not results:
            break
        counts["looked at again"] += 1
    counts["worlds"] += 1
    counts["made"] += world.is_made
    counts["ran without us"] += world.ran_without_us
    counts["changed"] += world.was_changed
    return results
