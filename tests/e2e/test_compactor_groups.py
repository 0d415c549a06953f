"""Groups of pods on the real control plane: all of a group moves or none, whatever refuses, closes or dies."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.auditor import Auditor
from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Compactor, Eye, Object, compactor, pool, wait_for_death
from tests.e2e.pod_groups import MOVES, guarded, job_set, three_members, two_groups, uids
from tests.e2e.surges import EndpointWatch
from tests.e2e.test_compactor_surge import is_empty
from trimtab.cluster.disruption_terms import WINDOWS_ANNOTATION

AT_ONCE = 3
DYING = "tests.e2e.dying_compactor"
CELL = "example.com/cell"


def begin(cluster: Cluster, **settings: object) -> None:
    cluster.apply(pool(cluster, cluster.namespace, **{**MOVES, **settings}))


def evicted(auditor: Auditor) -> list[str]:
    """The pods that the compactor evicted, in order."""
    writes = auditor.writes(user="compactor", resource="pods/eviction")
    return [write.name or "" for write in writes if write.allowed and not write.dry_run]


@pytest.mark.parametrize("first", ["lead", "work"])
def test_of_a_group_with_a_leader_only_the_leader_is_evicted_and_the_other_group_serves(
    cluster: Cluster, tmp_path: Path, first: str
) -> None:
    with two_groups(cluster, first):
        before, others = uids(cluster, "group=lead-0"), uids(cluster, "group=lead-1")
        auditor = cluster.auditor
        eye, endpoints = Eye(cluster, watches_budgets=True), EndpointWatch(cluster)
        begin(cluster)
        with eye, endpoints, compactor(cluster, tmp_path):
            cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=60)
            cluster.eventually(lambda: len(cluster.running("app in (lead,work)")) == 4, within=20)
        assert not before & uids(cluster, "group=lead-0")
        assert others == uids(cluster, "group=lead-1")
        assert evicted(auditor) == ["lead-0"]
        assert (dict(endpoints.dark), eye.broken_budgets) == ({}, set())
        assert endpoints.fewest == {"lead": 1, "work": 1}


@pytest.mark.parametrize("refused", ["a dry run", "one of its pods"])
def test_what_the_api_server_would_refuse_keeps_all_pods_and_is_told(
    cluster: Cluster, tmp_path: Path, refused: str
) -> None:
    three_members(cluster)
    before = uids(cluster, "app=train")
    names = sorted(pod["metadata"]["name"] for pod in cluster.list("Pod", selector="app=train"))

    def refuses(request: Object) -> bool:
        return bool(request.get("dryRun")) if refused == "a dry run" else request["name"] == names[-1]

    auditor = cluster.auditor
    with guarded(cluster, refuses) as guard:
        begin(cluster)
        with compactor(cluster, tmp_path) as one:
            [line] = cluster.eventually(lambda: one.told("refused")[:1], within=30)
            assert line["code"] == "group-eviction-refused"
            time.sleep(3)
            assert (evicted(auditor), uids(cluster, "app=train")) == ([], before)
            guard.refuses = lambda request: False
            cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=60)
    assert not before & uids(cluster, "app=train")
    assert sorted(evicted(auditor)) == names


def refuses_all_but_one(request: Object, permitted: set[str]) -> bool:
    """Whether the eviction is refused: all dry runs are permitted, and the first eviction."""
    if request.get("dryRun") or (permitted and request["name"] in permitted):
        return False
    if not permitted:
        permitted.add(request["name"])
        return False
    return True


@pytest.mark.parametrize("closes", [False, True], ids=["no window", "a window closes"])
def test_what_is_refused_half_way_waits_and_follows_also_when_its_window_closes(
    cluster: Cluster, tmp_path: Path, closes: bool
) -> None:
    three_members(cluster)
    before, permitted = uids(cluster, "app=train"), set[str]()
    auditor = cluster.auditor
    with guarded(cluster, lambda request: refuses_all_but_one(request, permitted)) as guard:
        begin(cluster)
        with compactor(cluster, tmp_path) as one:
            cluster.eventually(lambda: "group-rest-waits" in {line["code"] for line in one.told("refused")}, within=30)
            assert len(before & uids(cluster, "app=train")) == 2
            if closes:
                close_windows(cluster)
                time.sleep(3)
            guard.refuses = lambda request: False
            cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=60)
            assert one.told("released") == []
    assert not before & uids(cluster, "app=train")
    assert len(evicted(auditor)) == 3


def close_windows(cluster: Cluster) -> None:
    """From now on no pod of the group states a window that is open: theirs is in three days."""
    day = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")[(time.gmtime().tm_wday + 3) % 7]
    for pod in cluster.list("Pod", selector="app=train"):
        change = {"metadata": {"annotations": {WINDOWS_ANNOTATION: f"{day} 12:00-13:00"}}}
        cluster.patch("Pod", pod["metadata"]["name"], change)


@pytest.mark.parametrize("groups", ["move", "stay"])
def test_a_label_that_the_pool_names_makes_a_group(cluster: Cluster, tmp_path: Path, groups: str) -> None:
    three_members(cluster, CELL)
    before = uids(cluster, "app=train")
    auditor = cluster.auditor
    begin(cluster, groups=groups, groupLabels=[CELL])
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("leads"), within=20)
        if groups == "stay":
            time.sleep(6)
            assert (evicted(auditor), uids(cluster, "app=train")) == ([], before)
            return
        cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=60)
    assert len(evicted(auditor)) == 3
    assert not before & uids(cluster, "app=train")


@pytest.mark.parametrize(("backoff_limit", "count"), [(0, 1), (6, 3)])
def test_of_a_job_set_one_pod_is_evicted_where_its_job_fails_by_it(
    cluster: Cluster, tmp_path: Path, backoff_limit: int, count: int
) -> None:
    with job_set(cluster, backoff_limit):
        before, auditor = uids(cluster, "app=train"), cluster.auditor
        begin(cluster, protect={"singleReplicas": False, "jobs": False})
        with compactor(cluster, tmp_path):
            cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=60)
            cluster.eventually(lambda: len(cluster.running("app=train")) == 3, within=20)
        assert not before & uids(cluster, "app=train")
        assert len(evicted(auditor)) == count


@contextmanager
def world(whole: Cluster, kind: str) -> Iterator[tuple[Cluster, str]]:
    """A namespace with a group that may move, and the selector of its pods."""
    cluster = whole.in_namespace(f"group-{uuid.uuid4().hex[:6]}")
    try:
        if kind == "members":
            three_members(cluster)
            yield cluster, "app=train"
        else:
            with two_groups(cluster, kind):
                yield cluster, "group=lead-0"
    finally:
        cluster.clean_up()


def died_at(whole: Cluster, folder: Path, write: int, kind: str) -> bool:
    """Killed after this write, followed by another; False where the drain has no such write."""
    with world(whole, kind) as (cluster, selector):
        before, others = uids(cluster, selector), uids(cluster, "group=lead-1")
        begin(cluster)
        with EndpointWatch(cluster) as endpoints:
            first = Compactor(cluster, folder, program=(DYING, str(write)))
            died = wait_for_death(first, lambda: first.told("emptied"))
            with compactor(cluster, folder):
                cluster.eventually(lambda: is_empty(cluster, cluster.namespace), within=30)
                whole_group = lambda: len(cluster.running(selector)) == len(before)  # noqa: E731
                cluster.eventually(whole_group, within=20)
        assert not before & uids(cluster, selector), "every pod of the group has moved"
        assert others == uids(cluster, "group=lead-1")
        assert dict(endpoints.dark) == {}
        return died


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["members", "lead", "work"])
def test_killed_after_every_single_write_the_whole_group_moves(
    whole_cluster: Cluster, tmp_path: Path, kind: str
) -> None:
    whole_cluster.needs_own("nodes made by the test (kwok)")
    number, goes_on, deaths = 1, True, 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while goes_on:
            tries = range(number, number + AT_ONCE)
            died = list(threads.map(lambda n: died_at(whole_cluster, tmp_path / str(n), n, kind), tries))
            number, goes_on, deaths = number + AT_ONCE, all(died), deaths + sum(died)
    print(f"RESULT a group's drain ({kind}) died after each of {deaths} writes")
    assert deaths >= 5, "state, cordon, dry runs and evictions, the end"
