"""Kinds that a plan can do without and the user may not list: they are named, and only what hangs on them stays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import kubeconfig
from tests.cli.snapshots import half_empty, told, trimtab
from tests.cluster.test_dynamic_resources import CLASS, claim, devices, user
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, serving
from trimtab.cluster.snapshot import DISPENSABLE_KINDS
from trimtab.kube.resources import LIST_SOURCES

PLURALS = {LIST_SOURCES[kind].plural: kind for kind in DISPENSABLE_KINDS}


def api(*items: Item, forbidden: tuple[str, ...] = tuple(DISPENSABLE_KINDS)) -> Callable[[Asked], Answer]:
    """Lists of these items; 403 for the forbidden kinds."""

    def answer(request: Asked) -> Answer:
        plural = request[0].rpartition("/")[2]
        if PLURALS.get(plural) in forbidden:
            return 403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": f"{plural} is forbidden"}
        actual = [item for item in items if LIST_SOURCES[item["kind"]].plural == plural]
        return 200, {"metadata": {"resourceVersion": "1"}, "items": [] if request[1].get("labelSelector") else actual}

    return answer


def live(
    folder: Path, *items: Item, forbidden: tuple[str, ...] = tuple(DISPENSABLE_KINDS), options: tuple[str, ...] = ()
) -> dict[str, Any]:
    with serving(api(*items, forbidden=forbidden)) as server:
        login = ("--kubeconfig", kubeconfig(folder, server.url))
        return told("plan", "--cluster", "live", *login, "--preset", "all=keen", *options)


def notes(report: dict[str, Any]) -> list[str]:
    return [note for note in report["notes"] if "you may not list" in note]


def test_a_live_plan_names_what_may_not_be_listed_and_plans_the_rest(tmp_path: Path) -> None:
    report = live(tmp_path, *half_empty())
    assert report["nodesAfter"] < report["nodesBefore"]
    buffers, claims = notes(report)
    assert has_facts(buffers, "may not list", "CapacityBuffers", "PodTemplates", "capacity buffers")
    assert has_facts(claims, "may not list", "DeviceClasses, ResourceClaims", "ResourceSlices", "not moved")


def test_a_capture_says_so_and_is_planned_as_the_cluster_is(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    with serving(api(*half_empty())) as server:
        result = trimtab("capture", "-O", path, "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert result.exit_code == 0, result.output
    assert has_facts(result.stderr, "may not list", "CSIDriver", "CapacityBuffer", "DeviceClass", "PodTemplate")
    report, other = told("plan", "--cluster", path, "--preset", "all=keen"), live(tmp_path, *half_empty())
    assert notes(report) == notes(other)
    assert report["waves"] == other["waves"]


def test_hashed_names_leave_the_kinds_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "capture.json"
    with serving(api(*half_empty())) as server:
        trimtab("capture", "--hash-names", "-O", path, "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert len(notes(told("plan", "--cluster", path, "--preset", "all=keen"))) == 2


DEVICES = [
    node("a"),
    node("b"),
    user("x-0", "a"),
    pod("y-0", "b"),
    node("c"),
    pod("z-0", "c", "2"),
    CLASS,
    devices("a"),
    devices("b"),
    claim("x-0", "a", 0),
]


@pytest.mark.parametrize("kind", ["DeviceClass", "ResourceClaim", "ResourceSlice"])
def test_a_pod_with_claims_keeps_its_node_and_the_reason_names_the_kind(tmp_path: Path, kind: str) -> None:
    assert _leaving(live(tmp_path, *DEVICES, forbidden=())) >= {"a"}
    report = live(tmp_path, *DEVICES, forbidden=(kind,), options=("--explain", "pod", "default/x-0"))
    assert _leaving(report) == {"b", "c"}
    kinds = f"{kind}{'es' if kind.endswith('s') else 's'}"
    assert has_facts(json.dumps(report), "claim x-0-gpu", "may not list", kinds)
    [note] = notes(report)
    assert note.startswith(f"you may not list {kinds}")


def _leaving(report: dict[str, Any]) -> set[str]:
    return {step["node"] for wave in report["waves"] for step in wave["nodes"]}


@pytest.mark.parametrize(("plural", "status"), [("pods", 403), ("poddisruptionbudgets", 403), ("capacitybuffers", 401)])
def test_what_a_plan_cannot_do_without_still_fails(tmp_path: Path, plural: str, status: int) -> None:
    def answer(request: Asked) -> Answer:
        is_refused = request[0].endswith(f"/{plural}")
        return (status, {"kind": "Status", "code": status}) if is_refused else api(*half_empty(), forbidden=())(request)

    with serving(answer) as server:
        result = trimtab("plan", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url))
    assert result.exit_code != 0
    assert f"list {plural}" in result.output
