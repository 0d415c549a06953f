"""Outages of ours and of the API server: every pod is created, and the watchdog tells which came through without us."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import certs
from tests.e2e.installed import Installed, Replica, Worker, changed, pod
from tests.e2e.stand_in import standing_in
from trimtab.installation.names import WEBHOOK_NAME
from trimtab.kube.certificate_rotation import certificate_names

pytestmark = pytest.mark.usefixtures("two_replicas")


@dataclass(frozen=True)
class Watchdog:
    """As it is installed; it looks every second."""

    worker: Worker
    told: set[str] = field(default_factory=set)
    """Names of the pods that earlier tests had it tell."""


@pytest.fixture(scope="module")
def watchdog(here: Installed) -> Iterator[Watchdog]:
    with here.working("watchdog") as worker:
        yield Watchdog(worker)


@contextmanager
def told(here: Installed, watchdog: Watchdog) -> Iterator[list[dict[str, Any]]]:
    """For pods as they were created. Afterwards those we did not change are told: they and no other."""
    item = list[dict[str, Any]]()
    yield item
    watchdog.told.update(one["metadata"]["name"] for one in item if not changed(one))
    assert here.missed == watchdog.told

    def counted() -> bool:
        metric = watchdog.worker.metric("trimtab_unpatched_pods", policy="e2e-sizes", reason="missed-by-webhook")
        return metric == len(watchdog.told)

    here.cluster.eventually(counted, within=30, what="as many in the watchdog's metric")


def test_one_of_two_replicas_stopped_under_load_loses_no_review(here: Installed) -> None:
    lost = here.lost
    leaving = here.replicas[0]
    routing = threading.Event()

    def endpoints() -> None:
        while not routing.wait(0.2):
            here.balancer.backends = [r.port for r in here.replicas if r.process.poll() is None and r.ready()]

    following = threading.Thread(target=endpoints)
    following.start()
    try:
        item = here.create(100)
        leaving.process.send_signal(signal.SIGTERM)
        while leaving.process.poll() is None:
            item += here.create(50)
        item += here.create(100)
    finally:
        routing.set()
        following.join()
    assert leaving.process.returncode == 0
    assert [changed(result) for result in item].count(False) == 0
    assert here.lost == lost


def test_killed_every_pod_is_created_and_exactly_those_are_told(here: Installed, watchdog: Watchdog) -> None:
    lost = here.lost
    with told(here, watchdog) as report:
        report += here.create(5)
        here.stop(signal.SIGKILL)
        away = here.create(20)
        report += away
    assert [changed(result) for result in away] == [False] * 20
    assert here.lost == lost + 20


def test_hung_every_pod_is_created_when_the_server_gives_up(here: Installed, watchdog: Watchdog) -> None:
    with told(here, watchdog) as report:
        for replica in here.replicas:
            replica.send(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            report.append(here.cluster.create(pod()))
            assert not changed(report[0])
            assert time.monotonic() - begun < here.values.timeout + 2
        finally:
            for replica in here.replicas:
                replica.send(signal.SIGCONT)
        here.cluster.eventually(here.calls, what="called again")
        report += here.create(5)


GARBAGE = (b"", b"garbage", b'{"response":{}}', b'{"kind":"AdmissionReview"}', b"[" * 9999)


def test_a_stand_in_that_answers_garbage_blocks_no_pod(here: Installed, watchdog: Watchdog) -> None:
    with told(here, watchdog) as report, standing_in(here, here.store) as other:
        for other.answer in GARBAGE:
            other.asked.clear()
            # A connection that was kept to those before ends without a question: that pod is created, too.
            report += [here.cluster.create(pod()) for _ in range(10)]
            assert other.asked
        assert not any(map(changed, report))


def test_a_stand_in_whose_certificate_expired_blocks_no_pod(here: Installed, watchdog: Watchdog) -> None:
    then, names = datetime.now(UTC) - timedelta(days=30), certificate_names(WEBHOOK_NAME, here.values.namespace)
    over = certs.reissued_pair(here.store, names, now=then, life=timedelta(days=1))
    with told(here, watchdog) as report, standing_in(here, over) as other:
        report += [here.cluster.create(pod()) for _ in range(10)]
        assert not any(map(changed, report))
        assert not other.asked


def test_while_the_api_server_hangs_reviews_are_answered_with_what_is_known(here: Installed) -> None:
    replica = here.replicas[0]
    here.cluster.freeze("kube-apiserver")
    try:
        before, begun = replica.metric("trimtab_facts_age_seconds"), time.monotonic()
        while replica.metric("trimtab_facts_age_seconds") < before + 3:
            assert time.monotonic() - begun < 30, "the age of facts does not grow"
            assert patched(replica)
            assert replica.ready()
            time.sleep(0.2)
    finally:
        here.cluster.thaw("kube-apiserver")
    here.cluster.eventually(here.calls, within=60, what="called again")


def patched(replica: Replica) -> bool:
    """Would a pod of the team be changed, if somebody asked now?"""
    answer = replica.asked(pod("asked"))
    assert answer["allowed"]
    return "patch" in answer


def test_the_api_server_restarted_is_answered_again_and_no_pod_is_refused(here: Installed) -> None:
    here.cluster.restart("kube-apiserver")
    here.cluster.eventually(here.calls, within=30, what="called again")
    item = here.create(50)
    assert [changed(result) for result in item].count(False) == here.lost == 0, failed_open(here)


def failed_open(here: Installed) -> list[str]:
    """Why, in the API server's own words."""
    tail = here.cluster.plane.processes.log_tail("kube-apiserver", 400).splitlines()
    return [line for line in tail if "failing open" in line]
