"""Whose pod is it, and what was killed?"""

from typing import Any

import msgspec

from tests.build import owner_key
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.histogram.oom_kills import OomKill
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.recommender.pod_watcher import PodOwnership, PodWatchState, ownership_of
from trimtab.usage.owners import OwnerIndex

AT = "2026-01-05T00:00:00Z"


def pod(**status: Any) -> Pod:
    owner = {"kind": "ReplicaSet", "name": "web-5d4f", "controller": True}
    metadata = {"name": "web-5d4f-x2x4k", "namespace": "shop", "labels": {"pod-template-hash": "5d4f"}}
    app = {"name": "app", "resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}}
    manifest = {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": {"containers": [app, {"name": "bare"}]}}
    return msgspec.convert({**manifest, "status": status}, Pod)


def seen(*changes: WatchEvent[Any]) -> PodWatchState:
    watch_state = PodWatchState()
    for change in changes:
        watch_state.apply_change(change)
    return watch_state


def added(kind: str, name: str, after: Any, what: ChangeType = ChangeType.ADDED) -> WatchEvent[Any]:
    return WatchEvent(what, kind, ("shop", name), None, after)


POD = added("Pod", "web-5d4f-x2x4k", ownership_of(pod()))


def test_the_topmost_owner_counts() -> None:
    watch_state = seen(
        POD,
        added("ReplicaSet", "web-5d4f", owner_key("Deployment/web", namespace="shop")),
        added("Deployment", "web", owner_key("App/front", namespace="shop")),
    )
    assert watch_state.topmost_owner("shop", "web-5d4f-x2x4k") == owner_key("App/front", namespace="shop")


def test_a_replica_set_that_no_watch_has_told_of_is_known_by_the_hash() -> None:
    assert seen(POD).topmost_owner("shop", "web-5d4f-x2x4k") == owner_key("Deployment/web", namespace="shop")


def test_a_replica_set_that_nobody_owns_is_its_own() -> None:
    watch_state = seen(POD, added("ReplicaSet", "web-5d4f", None))
    assert watch_state.topmost_owner("shop", "web-5d4f-x2x4k") == owner_key("ReplicaSet/web-5d4f", namespace="shop")


def test_a_pod_that_nobody_made_is_its_own_workload_and_one_not_seen_is_nobodys() -> None:
    watch_state = seen(added("Pod", "alone", PodOwnership(())))
    assert watch_state.topmost_owner("shop", "alone") == owner_key("Pod/alone", namespace="shop")
    assert watch_state.topmost_owner("shop", "gone") is None


def test_a_pod_that_is_gone_belongs_to_the_workload_that_stands() -> None:
    owners = seen(
        added("Rollout", "web", None), POD, added("Pod", "web-5d4f-x2x4k", None, ChangeType.DELETED)
    ).owner_index()
    assert owners.topmost_owner("shop", "web-7d4b9c6f5d-x2x4k") == owner_key("Rollout/web", namespace="shop")
    assert isinstance(owners, OwnerIndex)
    gone = seen(added("Rollout", "web", None), added("Rollout", "web", None, ChangeType.DELETED))
    assert gone.owner_index().topmost_owner("shop", "web-7d4b9c6f5d-x2x4k") == owner_key(
        "Deployment/web", namespace="shop"
    )


def test_a_container_killed_for_want_of_memory_is_told_once_with_what_it_was_allowed() -> None:
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": AT}}
    statuses = [{"name": "app", "lastState": ended}, {"name": "bare", "state": ended}, {"name": "other", "state": {}}]
    watch_state = seen(added("Pod", "web-5d4f-x2x4k", ownership_of(pod(containerStatuses=statuses))))
    at = parse_timestamp(AT) or 0
    kills = (("app", OomKill(at=at, limit=float(2 << 30), request=float(1 << 30))), ("bare", OomKill(at=at)))
    assert watch_state.take_new_kills() == {("shop", "web-5d4f-x2x4k"): kills}
    assert watch_state.take_new_kills() == {}


def test_a_sidecar_that_was_killed_for_want_of_memory_is_told_too() -> None:
    proxy = {"name": "proxy", "restartPolicy": "Always", "resources": {"limits": {"memory": "1Gi"}}}
    ended = {"name": "proxy", "lastState": {"terminated": {"reason": "OOMKilled", "finishedAt": AT}}}
    result = msgspec.convert({"spec": {"initContainers": [proxy]}, "status": {"initContainerStatuses": [ended]}}, Pod)
    at = parse_timestamp(AT)
    assert at is not None
    assert ownership_of(result).kills == (("proxy", OomKill(at=at, limit=float(1 << 30))),)
