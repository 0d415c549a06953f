"""Is what the watch holds equal to a fresh list, key by key, after everything that can happen to an API server?

And did readiness and age tell the truth meanwhile?
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.controlplane.cluster import Cluster
from trimtab.kube import decode, listing
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.resources import list_sources
from trimtab.kube.watch_state import WatchSettings

KINDS = ("Pod", "Node", "Namespace", "ConfigMap", "VerticalPodAutoscaler", "PriorityClass")
OURS = {"trimtab.dev/pool": "a"}


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    cluster.needs_own("a control plane whose other users keep still")
    client = connect_to_cluster(str(cluster.kubeconfig))
    yield client
    client.close()


@pytest.fixture(params=["paged", "streamed"])
def watch(client: Client, request: pytest.FixtureRequest) -> Iterator[ClusterInformers]:
    terms = WatchSettings(page_size=50, idle_seconds=120, stream_initial_list=request.param == "streamed")
    with ClusterInformers(client, KINDS, terms=terms) as cluster_informers:
        assert cluster_informers.wait_until_synced(60)
        yield cluster_informers


def fresh(client: Client) -> dict[str, dict[decode.Key, str]]:
    """Kind → key → version, by listing now."""
    results: dict[str, dict[decode.Key, str]] = {}
    for source in list_sources(KINDS):
        if source.optional:
            continue
        for page in listing.iter_pages(client, source):
            for raw in page.items:
                meta = decode.decode_metadata(raw)
                results.setdefault(source.kind, {})[decode.object_key(meta)] = meta.resource_version
    return results


def held(watch: ClusterInformers) -> dict[str, dict[decode.Key, str]]:
    results: dict[str, dict[decode.Key, str]] = {}
    for reflector in watch.reflectors:
        if versions := reflector.store.versions_by_key():
            results.setdefault(reflector.source.kind, {}).update(versions)
    return results


def is_equal(cluster: Cluster, client: Client, watch: ClusterInformers, within: float = 40) -> None:
    """Nobody changes a test's cluster for long: soon both are the same, key by key and version by version."""
    cluster.eventually(lambda: held(watch) == fresh(client), within=within, what="watch equal to a fresh list")
    assert watch.unreadable_objects() == ()


def changes(cluster: Cluster, count: int) -> None:
    """A third created, a third of those changed, some deleted: of pods and of our ConfigMaps."""
    third = count // 3

    def one(number: int) -> None:
        name = f"w-{time.monotonic_ns()}-{number}"
        if number % 2:
            cluster.create(config_map(name))
        else:
            cluster.pod(name=name)
        kind = "ConfigMap" if number % 2 else "Pod"
        cluster.patch(kind, name, {"metadata": {"annotations": {"trimtab.dev/x": str(number)}}})
        if number % 3:
            cluster.delete(kind, name, grace=0)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(third)))


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": OURS}}


def streams(watch: ClusterInformers, how: bool) -> bool:
    """Are all (or none) of the streams open, but for kinds that are not served?"""
    return all(state.connected is how for state in watch.health_by_list().values() if not state.absent)


def test_300_changes_while_watching(cluster: Cluster, client: Client, watch: ClusterInformers) -> None:
    cluster.some_nodes()
    lists = sum(state.lists for state in watch.health_by_list().values())
    changes(cluster, 300)
    is_equal(cluster, client, watch)
    assert (
        sum(state.lists for state in watch.health_by_list().values()) - lists <= 1
    )  # an absent kind is looked for again
    assert watch.errors_by_list() == {}
    age = watch.oldest_age()
    assert age is not None
    assert age < 70, "a bookmark comes every minute"


def test_kill_9_and_changes_after_the_restart(cluster: Cluster, client: Client, watch: ClusterInformers) -> None:
    cluster.take_down("kube-apiserver", signal.SIGKILL)
    try:
        cluster.eventually(lambda: streams(watch, False), what="every stream known to be gone")
        assert watch.is_synced, "what was read stays readable"
        before = watch.oldest_age()
        time.sleep(1)
        assert watch.oldest_age() > before, "and its age is told"  # type: ignore[operator]
        assert any("refused" in trouble for trouble in watch.errors_by_list().values())
    finally:
        cluster.bring_back("kube-apiserver")
    changes(cluster, 90)
    is_equal(cluster, client, watch)
    cluster.eventually(lambda: streams(watch, True) and not watch.errors_by_list(), within=40)


def test_etcd_compacted_under_it(cluster: Cluster, client: Client, watch: ClusterInformers) -> None:
    """While we are cut off, the versions we know are compacted away."""
    cluster.take_down("kube-apiserver", signal.SIGKILL)
    cluster.bring_back("kube-apiserver")
    changes(cluster, 60)
    compact(cluster)
    for reflector in watch.reflectors:
        reflector.restart_from("1")
    changes(cluster, 30)
    is_equal(cluster, client, watch)


def compact(cluster: Cluster) -> None:
    """As the API server does every five minutes: up to the newest revision."""
    url = cluster.plane.layout.url("etcd")
    here = cluster.api.request("POST", f"{url}/v3/kv/range", {"key": "AA=="})
    cluster.api.request("POST", f"{url}/v3/kv/compaction", {"revision": here["header"]["revision"], "physical": True})


def test_a_forced_old_version(cluster: Cluster, client: Client, watch: ClusterInformers) -> None:
    cluster.eventually(lambda: streams(watch, True))
    before = {name: state.lists for name, state in watch.health_by_list().items() if not state.absent}
    for reflector in watch.reflectors:
        reflector.restart_from("1")
    changes(cluster, 30)
    cluster.eventually(
        lambda: all(watch.health_by_list()[name].lists > lists for name, lists in before.items()), within=30
    )
    is_equal(cluster, client, watch)


def test_a_frozen_server(cluster: Cluster, client: Client) -> None:
    with ClusterInformers(client, KINDS, terms=WatchSettings(idle_seconds=3)) as watch:
        assert watch.wait_until_synced(60)
        cluster.freeze("kube-apiserver")
        try:
            cluster.eventually(lambda: streams(watch, False), within=10, what="the silence is noticed")
            time.sleep(1)
            assert watch.is_synced
            assert watch.oldest_age() > 3  # type: ignore[operator]
        finally:
            cluster.thaw("kube-apiserver")
        changes(cluster, 60)
        is_equal(cluster, client, watch)


def test_it_stops_within_milliseconds(client: Client) -> None:
    watch = ClusterInformers(client, KINDS).start()
    assert watch.wait_until_synced(60)
    assert watch.stop(within=3), "a quiet stream would be waited for a minute and a half"


def test_it_is_one_snapshot(cluster: Cluster, client: Client, watch: ClusterInformers) -> None:
    cluster.pod(name="seen")
    cluster.eventually(lambda: any(p.metadata.name == "seen" for p in watch.values_of("Pod")))
    snapshot = watch.take_snapshot()
    assert {"Namespace", "Pod", "PriorityClass"} <= set(snapshot.objects)
    assert "VerticalPodAutoscaler" not in snapshot.objects
    assert watch.health_by_list()["verticalpodautoscalers"].absent
