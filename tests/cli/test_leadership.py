"""A compactor that does not run is said to be so, with the time since when and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from rich.console import Console

from tests.cli.test_compactor import NOW, found, note
from tests.cluster_of import node
from tests.reasons import has_facts
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.reports import compactor_status as report
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.timestamps import format_age, format_timestamp
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.inputs.leadership import read_leadership
from trimtab.inputs.reasons import NO_COMPACTOR
from trimtab.kube.client import Client
from trimtab.kube.errors import ApiStatus, NotAllowed, NotFound

OURS = "trimtab-system"


class Server:
    """Answers with the Lease and the Deployment; what is None does not exist."""

    def __init__(self, lease: Any, deployment: Any = None, *, may_read: bool = True) -> None:
        self.objects = {"leases": lease, "deployments": deployment}
        self.may_read = may_read

    def get(self, path: str, query: Any = None, *, doing: str = "", accept: str = "") -> bytes:
        kind = path.split("/")[-2]
        if kind == "deployments" and not self.may_read:
            raise NotAllowed(doing, 403, ApiStatus(reason="Forbidden", message="you cannot"))
        if self.objects[kind] is None:
            raise NotFound(doing, 404, ApiStatus(reason="NotFound"))
        return msgspec.json.encode(self.objects[kind])


def lease(age: int, holder: str = "compactor-1") -> Any:
    return {"spec": {"holderIdentity": holder, "renewTime": format_timestamp(NOW - age), "leaseDurationSeconds": 30}}


def deployment(replicas: int, ready: int) -> Any:
    return {"spec": {"replicas": replicas}, "status": {"readyReplicas": ready} if ready else {}}


def problem(lease: Any, deployment: Any = None, **more: Any) -> str:
    server: Any = Server(lease, deployment, **more)
    client: Client = server
    leadership = read_leadership(client, OURS, NOW)
    assert (leadership.leader == "") == (leadership.problem is not None)
    return str(leadership.problem or "")


@pytest.mark.parametrize("age", [-30, 0, 29, 80])
def test_a_lease_that_may_still_be_held_has_a_leader_whatever_our_clock_says(age: int) -> None:
    assert problem(lease(age)) == ""


def test_a_lease_that_nobody_renews_is_named_with_its_age_and_the_state_of_the_pods() -> None:
    actual_problem = problem(lease(1500), deployment(1, 0))
    since = format_timestamp(NOW - 1500)
    assert has_facts(actual_problem, "compactor-1", "Lease", since, "25 min", "30 s")
    assert has_facts(
        actual_problem,
        "0 of 1 replicas",
        "Deployment trimtab-compactor are ready",
        "kubectl -n trimtab-system describe",
    )


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ((None, None), "no compactor has run in this namespace; there is no Deployment"),
        ((lease(10, holder=""), deployment(0, 0)), "no replica of the compactor holds the Lease"),
        (
            (lease(9000), deployment(0, 0)),
            "scaled to 0 replicas (to start one: `kubectl -n trimtab-system scale deployment",
        ),
        ((lease(9000), deployment(1, 1)), "(for the cause: `kubectl -n trimtab-system logs deploy/trimtab-compactor`)"),
    ],
)
def test_what_is_known_of_a_compactor_that_does_not_lead_is_said(server: Any, text: str) -> None:
    assert text in problem(*server)


def test_a_deployment_that_may_not_be_read_hides_no_dead_compactor() -> None:
    assert "2 h ago" in problem(lease(8000), may_read=False)
    assert "cannot be read" in problem(lease(8000), may_read=False)


def test_the_status_says_it_first_with_what_to_do() -> None:
    state = replace(found(PoolState(plan=("n1",)), leader=""), no_leader=NO_COMPACTOR("compactor-1 is silent"))
    console = Console(record=True, width=300)
    draw_report(console, report.build_status_report(state), report.VIEW)
    text = console.export_text()
    assert has_facts(text, "no compactor leads", "compactor-1 is silent")
    assert "compactor release --yes NODE" in text


def test_the_status_names_the_nodes_that_others_cordoned() -> None:
    nodes = [node("n1", cordoned=True, annotations={CORDONED_BY_US: note(OURS)}), node("n2", cordoned=True), node("n3")]
    reading = build_snapshot([Document(file="x", index=number, value=item) for number, item in enumerate(nodes)])
    state = replace(found(PoolState(drains={"n1": "d"})), snapshot=reading.snapshot)
    status = report.build_status_report(state)
    assert [drain.node for drain in status.drains] == ["n1"]
    assert status.cordoned_by_others == ["n2"]
    console = Console(record=True, width=300)
    draw_report(console, status, report.VIEW)
    assert has_facts(console.export_text(), "other clients cordoned", "n2", "trimtab why node NODE")


def test_an_age_is_in_its_largest_whole_unit() -> None:
    assert [format_age(seconds) for seconds in (-1, 119, 120, 7199, 7200, 172_800)] == [
        "0 s",
        "119 s",
        "2 min",
        "119 min",
        "2 h",
        "2 d",
    ]
