"""From `helm install` to `helm uninstall`: the chart's own pods run as processes; at the end nothing of us is left."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.observe.expressions import series
from deploy.observe.foreign import FOREIGN
from tests.controlplane.cluster import Cluster
from tests.controlplane.rights import used
from tests.e2e.accounts import granted, unused
from tests.e2e.charts import NAMESPACE, Helm
from tests.e2e.compactors import is_cordoned, nodes, noted
from tests.e2e.installed import changed, pod
from tests.e2e.kubelet import Kubelet
from tests.e2e.lives import POOL, Life, inventory
from tests.e2e.real_prometheus import missing
from tests.e2e.replicas import total
from tests.e2e.scraping import NOT_INSTALLED, QUIET, asked, scraping
from trimtab.cli.main import VERBS
from trimtab.cluster.processes import METRICS_API
from trimtab.installation.installed_processes import CONDITIONAL_PERMISSIONS
from trimtab.installation.names import PROCESSES
from trimtab.installation.processes.captures import CAPTURE

KEPT = {
    ("Namespace", "", NAMESPACE),
    ("ServiceAccount", NAMESPACE, "default"),
    ("ConfigMap", NAMESPACE, "kube-root-ca.crt"),
    ("CustomResourceDefinition", "", "podpolicies.trimtab.dev"),
    ("APIService", "", "v1alpha1.trimtab.dev"),
    ("CustomResourceDefinition", "", "poolstatuses.trimtab.dev"),
    ("CustomResourceDefinition", "", "drainorders.trimtab.dev"),
}
"""What Helm leaves, as documented: the namespace that it did not make, and the CRDs."""


@pytest.fixture(scope="module")
def life(whole_cluster: Cluster, helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """Installed, two pods of every process ready; a team's Deployment on a pool that has nodes to spare."""
    whole_cluster.needs_own("pods that are processes of this machine")
    team = whole_cluster.in_namespace(f"team-{uuid.uuid4().hex[:5]}")
    team.pool(POOL, nodes=3, labels={"trimtab.dev/price": "100000"})
    with Kubelet(team, tmp_path_factory.mktemp("pods")) as kubelet:
        life = Life(team, helm, kubelet)
        life.install()
        yield life
        crds = ("podpolicies.trimtab.dev", "poolstatuses.trimtab.dev", "drainorders.trimtab.dev")
        for kind, name in (("namespace", NAMESPACE), *(("crd", crd) for crd in crds)):
            team.kubectl("delete", kind, name, "--ignore-not-found", "--wait")
    team.clean_up()


def test_every_process_runs_as_it_is_rendered(life: Life) -> None:
    lines = [
        line for _, log in life.kubelet.logs for line in log.splitlines() if "orbidden" in line or "Traceback" in line
    ]
    assert lines == []
    assert life.kubelet.troubles == []
    assert {box.container["args"][0] for process in PROCESSES for box in life.ready(process)} == set(PROCESSES)


def test_no_process_holds_more_than_its_pod_asks_for(life: Life) -> None:
    for process in PROCESSES:
        for box in life.ready(process):
            request = int(box.container["resources"]["requests"]["memory"].removesuffix("Mi")) * 2**20
            assert box.memory < request, f"{process}: {box.memory / 2**20:.0f} MiB"


def test_a_deployment_is_mutated(life: Life) -> None:
    life.cluster.eventually(lambda: changed(life.cluster.create(pod(), dryRun="All")), what="pods changed")
    life.cluster.deployment("web", replicas=6, spec={"nodeSelector": {"pool": POOL}})
    life.cluster.eventually(lambda: len(life.cluster.running("app=web")) == 6, what="the Deployment's pods run")
    assert all(map(changed, life.cluster.running("app=web")))


def test_the_compactor_rehearses(life: Life) -> None:
    def planned() -> list[Any]:
        [pool] = life.command("compactor", "status", "-o", "json")["pools"]
        assert pool["mode"] == "rehearse"
        return list(pool["next"])

    life.cluster.eventually(planned, within=30, what="a plan")
    assert not any(is_cordoned(node) or noted(node) for node in nodes(life.cluster, POOL))


@pytest.mark.skipif("doctor" not in VERBS, reason="there is no such verb yet")
def test_the_doctor_finds_nothing(life: Life) -> None:
    life.command("doctor", "--system-namespace", NAMESPACE)


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_every_query_of_the_dashboards_finds_what_the_processes_export(life: Life, tmp_path: Path) -> None:
    with scraping(tmp_path, life.targets) as prometheus:
        life.cluster.eventually(lambda: prometheus.scraped(life.targets), within=30, what="some scrapes of everybody")
        exported = prometheus.families()
        names = {name for _, asks in asked() for name in series(asks) if ":" not in name} - NOT_INSTALLED
        assert [name for name in names - FOREIGN.keys() if not {name, name.rpartition("_")[0]} & exported] == []
        empty = [(where, asks) for where, asks in asked() if not prometheus.query(asks)]
    assert [(where, asks) for where, asks in empty if not series(asks).keys() & (QUIET.keys() | NOT_INSTALLED)] == []


def test_an_upgrade_under_load_loses_no_review(life: Life) -> None:
    lost, over, item = failed_open(life), threading.Event(), list[dict[str, Any]]()

    def load() -> None:
        while not over.is_set():
            item.append(life.cluster.create(pod(), dryRun="All"))

    clients = [threading.Thread(target=load) for _ in range(4)]
    before = {box.uid for box in life.ready("webhook")}
    for client in clients:
        client.start()
    life.upgrade(life.rolled())
    life.cluster.eventually(life.stands, within=60, what="the new pods alone")
    over.set()
    for client in clients:
        client.join()
    assert before.isdisjoint(box.uid for box in life.ready("webhook"))
    assert len(item) > 100
    assert [changed(result) for result in item].count(False) == 0
    assert failed_open(life) == lost
    assert life.kubelet.troubles == []


def test_an_uninstall_gives_everything_back_and_leaves_nothing(life: Life) -> None:
    life.upgrade(life.rolled(mode="act"))
    life.cluster.eventually(lambda: any(map(noted, nodes(life.cluster, POOL))), within=40, what="a node that goes")
    life.cluster.eventually(lambda: any(map(emptied, nodes(life.cluster, POOL))), within=60, what="an empty node")
    auditor = life.cluster.auditor
    life.removed = life.log.stat().st_size
    life.uninstall()
    deleted = [write for write in auditor.writes(verb="delete") if write.allowed and "trimtab" in str(write.name)]
    first = next(write for write in deleted if write.resource != "pods")
    assert (first.resource, first.user.rpartition(":")[2]) == ("mutatingwebhookconfigurations", "trimtab-uninstall")

    def left() -> set[Any]:
        now = inventory(life.cluster)
        fresh = {key for key in now if key not in life.before and key[1] != life.cluster.namespace}
        differs = {key for key in now.keys() & life.before.keys() if now[key] != life.before[key]}
        return (fresh | differs) - KEPT

    life.cluster.eventually(lambda: not left(), within=30, what=f"nothing left: {left()}")
    assert life.kubelet.troubles == []


def emptied(node: dict[str, Any]) -> bool:
    note = noted(node)
    return bool(note and note.get("emptied"))


def failed_open(life: Life) -> float:
    text = life.cluster.api.request("GET", "/metrics")
    return total(text, "apiserver_admission_webhook_fail_open_count", {"name": "pods.trimtab.dev"})


def test_nobody_was_refused_anything_and_what_nobody_used_is_for_a_fault(life: Life) -> None:
    # While Helm takes the roles away, processes that end may miss them.
    lived = used(life.log, NAMESPACE, life.begun, life.removed)
    assert [one for one in lived if one.status == 403] == []
    rights = {(right.process, right.verb, right.resource) for right in granted()}
    idle = {
        (right.process, right.verb, right.resource)
        for right in unused(used(life.log, NAMESPACE), NAMESPACE)
        if right.process not in (METRICS_API.name, CAPTURE)  # installed on request
    }
    assert idle - CONDITIONAL_PERMISSIONS.keys() == set()
    assert CONDITIONAL_PERMISSIONS.keys() - rights == set()
