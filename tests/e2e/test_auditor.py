"""Does the auditor see who did what?"""

from __future__ import annotations

import signal

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster


def test_a_write_is_seen_with_its_user_and_what_it_asked(cluster: Cluster) -> None:
    auditor = cluster.auditor
    cluster.pod({"priority": 0}, name="seen")
    [write] = auditor.writes(user="admin", verb="create", resource="pods", namespace=cluster.namespace)
    assert (write.name, write.status, write.asked["spec"]["priority"]) == ("seen", 201, 0)


def test_reads_and_what_came_before_are_not_there(cluster: Cluster) -> None:
    cluster.pod(name="before")
    auditor = cluster.auditor
    cluster.list("Pod")
    assert auditor.writes(user="admin") == []


def test_a_refused_write_is_seen_too(cluster: Cluster) -> None:
    auditor = cluster.auditor
    stranger = Cluster(cluster.plane.kubeconfig_for("stranger"), cluster.namespace)
    with pytest.raises(ApiError, match="403"):
        stranger.delete("Pod", "any")
    [write] = auditor.writes(user="stranger")
    assert (write.verb, write.status, write.allowed) == ("delete", 403, False)


def test_an_eviction_is_told_from_a_deletion(cluster: Cluster) -> None:
    auditor = cluster.auditor
    cluster.pod(name="one")
    cluster.pod(name="two")
    cluster.evict("one")
    cluster.delete("Pod", "two")
    assert [write.name for write in auditor.writes(resource="pods/eviction")] == ["one"]
    mine = auditor.writes(user="admin", verb="delete", resource="pods", namespace=cluster.namespace)
    assert [write.name for write in mine] == ["two"]


def test_controllers_act_under_their_own_names(cluster: Cluster) -> None:
    auditor = cluster.auditor
    cluster.deployment("web", replicas=2)
    cluster.eventually(lambda: len(cluster.list("Pod")) == 2)
    item = auditor.writes(verb="create", resource="pods", namespace=cluster.namespace)
    assert {write.user for write in item} == {"system:serviceaccount:kube-system:replicaset-controller"}


def test_nothing_is_lost_when_the_api_server_is_killed(cluster: Cluster) -> None:
    auditor = cluster.auditor
    cluster.pod(name="before")
    cluster.restart("kube-apiserver", signal.SIGKILL)
    cluster.pod(name="after")
    item = auditor.writes(user="admin", verb="create", resource="pods", namespace=cluster.namespace)
    assert [write.name for write in item] == ["before", "after"]
