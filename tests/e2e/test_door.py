"""Do our writes do to a real API server what they say?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.controlplane.cluster import Cluster
from trimtab.cluster.api.core import Node
from trimtab.kube import evict, nodes, objects
from trimtab.kube.client import Client, Deadlines, connect_to_cluster
from trimtab.kube.errors import Conflict, NotAllowed, NotFound, NotLeading
from trimtab.kube.events import About, Recorder
from trimtab.kube.evict import EvictionStatus
from trimtab.kube.leader_election import LeaderElector, LeaseTimings
from trimtab.kube.objects import Writer


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    client = connect_to_cluster(str(cluster.kubeconfig), deadlines=Deadlines(write=2))
    yield client
    client.close()


@pytest.fixture
def writer(client: Client) -> Writer:
    return Writer(client=client)


# ── evictions ────────────────────────────────────────────────────────────────────────────────────────


def budget(name: str, **spec: object) -> dict[str, object]:
    spec = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def three_pods(cluster: Cluster) -> list[dict[str, str]]:
    """Name and uid of the pods of one Deployment, all running."""
    cluster.some_nodes()
    cluster.deployment("web", replicas=3, annotations={"testbed.trimtab.dev/ready-after": "1s"})
    cluster.eventually(lambda: len(cluster.running("app=web")) == 3, within=60)
    return [pod["metadata"] for pod in cluster.running("app=web")]


def allowed(cluster: Cluster, name: str, count: int) -> None:
    cluster.eventually(
        lambda: cluster.get("PodDisruptionBudget", name)["status"].get("disruptionsAllowed", -1) == count
    )


def test_a_pod_is_evicted_and_a_spent_budget_has_no_room(cluster: Cluster, writer: Writer) -> None:
    first, second, _ = three_pods(cluster)
    cluster.apply(budget("one", maxUnavailable=1))
    allowed(cluster, "one", 1)
    rehearsed = evict.evict(replace(writer, dry_run=True), cluster.namespace, first["name"], first["uid"])
    assert rehearsed.eviction_status is EvictionStatus.EVICTED
    assert "deletionTimestamp" not in cluster.get("Pod", first["name"])["metadata"]
    assert evict.evict(writer, cluster.namespace, first["name"], first["uid"]).is_done
    refused = evict.evict(writer, cluster.namespace, second["name"], second["uid"])
    assert (refused.eviction_status, refused.retry_after) == (EvictionStatus.NO_ROOM, None)
    assert "needs 2 healthy pods" in refused.message


def test_a_budget_nobody_has_looked_at_says_when_to_ask_again(cluster: Cluster, writer: Writer) -> None:
    first, *_ = three_pods(cluster)
    cluster.freeze("kube-controller-manager")
    try:
        cluster.apply(budget("new", maxUnavailable=1))
        result = evict.evict(writer, cluster.namespace, first["name"], first["uid"])
    finally:
        cluster.thaw("kube-controller-manager")
    assert (result.eviction_status, result.retry_after) == (EvictionStatus.WAIT, 10)
    assert "still being processed" in result.message


def test_two_budgets_over_one_pod_are_named(cluster: Cluster, writer: Writer) -> None:
    first, *_ = three_pods(cluster)
    cluster.apply([budget("a", maxUnavailable=1), budget("b", maxUnavailable=1)])
    allowed(cluster, "b", 1)
    assert (
        evict.evict(writer, cluster.namespace, first["name"], first["uid"]).eviction_status
        is EvictionStatus.TWO_BUDGETS
    )


def test_another_pod_of_that_name_is_left_alone(cluster: Cluster, writer: Writer) -> None:
    cluster.pod(name="same")
    assert evict.evict(writer, cluster.namespace, "same", "another-uid").eviction_status is EvictionStatus.ANOTHER
    assert evict.evict(writer, cluster.namespace, "never", "uid").eviction_status is EvictionStatus.GONE
    assert cluster.get("Pod", "same")["metadata"]["name"] == "same"


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cordon_and_its_note_come_and_go_in_one_patch(cluster: Cluster, client: Client, writer: Writer) -> None:
    [name] = cluster.pool("p")
    node = objects.read_object(client, "Node", name)
    assert isinstance(node, Node)
    stored = nodes.cordon(writer, name, node.metadata.resource_version, {"trimtab.dev/cordoned": "why"})
    described_node = cluster.get("Node", name)
    assert described_node["spec"]["unschedulable"] is True
    assert described_node["metadata"]["annotations"]["trimtab.dev/cordoned"] == "why"
    with pytest.raises(Conflict, match=f"uncordon Node {name}: 409"):
        nodes.uncordon(writer, name, node.metadata.resource_version, ("trimtab.dev/cordoned",))
    cluster.eventually(lambda: _open_again(cluster, writer, name))
    assert stored.resource_version != node.metadata.resource_version


def _open_again(cluster: Cluster, writer: Writer, name: str) -> bool:
    version = cluster.get("Node", name)["metadata"]["resourceVersion"]
    try:
        nodes.uncordon(writer, name, version, ("trimtab.dev/cordoned",))
    except Conflict:
        return False  # the controller has just written its taint
    node = cluster.get("Node", name)
    return "unschedulable" not in node["spec"] and "trimtab.dev/cordoned" not in node["metadata"]["annotations"]


def test_a_rehearsed_cordon_changes_nothing(cluster: Cluster, client: Client, writer: Writer) -> None:
    [name] = cluster.pool("p")
    version = objects.read_object(client, "Node", name).metadata.resource_version  # type: ignore[attr-defined]
    nodes.cordon(replace(writer, dry_run=True), name, version, {"trimtab.dev/cordoned": "why"})
    assert "unschedulable" not in cluster.get("Node", name)["spec"]


# ── what we own ──────────────────────────────────────────────────────────────────────────────────────


def test_what_we_apply_is_ours_and_the_rest_is_not(cluster: Cluster, client: Client, writer: Writer) -> None:
    ours = {"kind": "ConfigMap", "metadata": {"name": "state", "namespace": cluster.namespace}, "data": {"a": "1"}}
    first = objects.apply(writer, ours)
    assert objects.apply(writer, ours).resource_version == first.resource_version, "the same again writes nothing"
    cluster.patch("ConfigMap", "state", {"data": {"a": "theirs", "b": "theirs"}})
    objects.apply(writer, ours)
    assert cluster.get("ConfigMap", "state")["data"] == {"a": "1", "b": "theirs"}
    assert objects.delete(writer, "ConfigMap", "state", cluster.namespace)
    assert not objects.delete(writer, "ConfigMap", "state", cluster.namespace)
    with pytest.raises(NotFound, match=f"read ConfigMap {cluster.namespace}/state: 404"):
        objects.read_object(client, "ConfigMap", "state", cluster.namespace)


def test_what_may_not_be_done_says_what_it_was(cluster: Cluster) -> None:
    stranger = connect_to_cluster(str(cluster.plane.kubeconfig_for("stranger")))
    with pytest.raises(NotAllowed, match=r"evict Pod ns/web: 403 Forbidden: .*cannot get resource"):
        evict.evict(Writer(client=stranger), "ns", "web", "uid")
    stranger.close()


# ── events ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_happens_again_is_one_event_that_counts(cluster: Cluster, writer: Writer) -> None:
    pod = cluster.pod(name="seen")
    about = About(kind="Pod", name="seen", namespace=cluster.namespace, uid=pod["metadata"]["uid"])

    def recorder(quiet: float) -> Recorder:
        return Recorder(writer=writer, controller="trimtab.dev/compactor", instance="one", quiet_seconds=quiet)

    first = recorder(quiet=300)
    record_events = [first.record_event(about, "Kept", "It keeps its node.", action="Plan") for _ in range(10)]
    assert record_events == [True, True] + [False] * 8
    assert first.lost_events == 0
    recorder(quiet=0).record_event(about, "Kept", "It keeps its node.", action="Plan")
    ours = "trimtab.dev/compactor"
    events = [event for event in cluster.list("Event") if event["reportingComponent"] == ours]
    assert [(event["reason"], event["series"]["count"]) for event in events] == [("Kept", 3)]
    assert "It keeps its node." in cluster.kubectl("get", "events")


# ── one leader ───────────────────────────────────────────────────────────────────────────────────────

QUICK = LeaseTimings(lease_duration_seconds=4, renew_deadline_seconds=1.5, retry_period_seconds=0.2)


def election(cluster: Cluster, client: Client, who: str) -> LeaderElector:
    return LeaderElector(client, cluster.namespace, "trimtab", who, timings=QUICK)


def test_one_leads_and_waits_one_write_deadline_before_it_writes(cluster: Cluster, client: Client) -> None:
    one, two = election(cluster, client, "one"), election(cluster, client, "two")
    assert one.try_once()
    assert not two.try_once()
    with pytest.raises(NotLeading, match="cordon Node n1: one does not hold the Lease"):
        Writer(client=client, fence=one.check_leading).fence("cordon Node n1")
    cluster.eventually(lambda: one.try_once() and one.is_leading)
    with pytest.raises(NotLeading):
        two.check_leading("write")


def test_a_lease_given_back_is_taken_at_once_and_a_dead_ones_after_its_end(cluster: Cluster, client: Client) -> None:
    one, two, three = (election(cluster, client, who) for who in ("one", "two", "three"))
    assert one.try_once()
    one.release()
    assert two.try_once()
    assert not three.try_once()
    # two says nothing any more, and stops believing in itself before three can begin.
    cluster.eventually(lambda: not two.is_leading and not three.try_once(), within=1)
    cluster.eventually(three.try_once, within=10)
    assert not two.is_leading
    assert not two.try_once()
    assert cluster.get("Lease", "trimtab")["spec"]["leaseTransitions"] == 2


def test_never_do_two_lead_at_the_same_moment(cluster: Cluster, client: Client) -> None:
    cluster.needs_own("an API server to take away")
    both = [election(cluster, client, who) for who in ("one", "two")]
    stop = threading.Event()
    threads = [threading.Thread(target=one.run, args=(stop,), daemon=True) for one in both]
    for thread in threads:
        thread.start()
    leaders: set[int] = set()

    def look() -> bool:
        now = [one.is_leading for one in both]
        assert sum(now) <= 1
        leaders.add(now.index(True) if any(now) else -1)
        return any(now)

    try:
        cluster.eventually(look, within=20, every=0.01)
        cluster.freeze("kube-apiserver")
        cluster.eventually(lambda: not look(), within=10, every=0.01, what="a leader that cannot renew stops leading")
        cluster.thaw("kube-apiserver")
        cluster.eventually(look, within=30, every=0.01)
    finally:
        cluster.thaw("kube-apiserver")
        stop.set()
        for thread in threads:
            thread.join(10)
