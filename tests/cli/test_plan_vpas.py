"""A plan offline, where VerticalPodAutoscalers would make evicted pods larger than they are now."""

from pathlib import Path

import pytest

from tests.cli.snapshots import snapshot, told
from tests.cli.test_plan_policies import KEEN, evictions, four_pods, replica_set
from tests.cluster_of import AT, Item, node, pod
from tests.reasons import has_facts


def vpa(mode: str = "Initial", target: str = "1500m", created: str = AT) -> Item:
    recommended = [{"containerName": "c", "target": {"cpu": target}}] if target else []
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "team", "creationTimestamp": created},
        "spec": {"targetRef": {"kind": "ReplicaSet", "name": "web"}, "updatePolicy": {"updateMode": mode}},
        "status": {"recommendation": {"containerRecommendations": recommended}},
    }


@pytest.mark.parametrize("mode", ["Initial", "Recreate", "Auto", "InPlaceOrRecreate", "InPlace"])
@pytest.mark.parametrize("template", [True, False])
def test_the_target_of_a_vpa_that_acts_counts_with_and_without_templates(
    mode: str, template: bool, tmp_path: Path
) -> None:
    assert evictions(snapshot(tmp_path, *four_pods(replica_set(template), vpa(mode)))) == 0


def test_the_target_of_a_vpa_that_is_off_does_not_count(tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *four_pods(replica_set(), vpa("Off")))) == 2


def test_a_target_that_is_less_than_what_the_pods_ask_for_frees_nothing(tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *four_pods(replica_set(), vpa(target="100m")))) == 2


@pytest.mark.parametrize(("now", "count"), [("2026-01-02T23:59:00Z", 0), ("2026-01-03T00:01:00Z", 2)])
def test_a_vpa_that_recommends_nothing_keeps_its_pods_for_a_day(now: str, count: int, tmp_path: Path) -> None:
    path = snapshot(tmp_path, *four_pods(replica_set(), vpa(target="")))
    assert evictions(path, "--now", now) == count


def test_a_node_that_stays_for_a_vpa_names_it(tmp_path: Path) -> None:
    report = told("plan", "--cluster", snapshot(tmp_path, *four_pods(replica_set(), vpa(target=""))), *KEEN)
    assert has_facts(str(report), "VerticalPodAutoscaler team/web", "no recommendation")
    assert any(has_facts(note, 1, "VerticalPodAutoscalers recommend nothing") for note in report["notes"])


@pytest.mark.parametrize(("mode", "count"), [("Recreate", 2), ("InPlaceOrRecreate", 0), ("InPlace", 0)])
def test_pods_that_stay_keep_room_to_grow_where_their_vpa_resizes_them(mode: str, count: int, tmp_path: Path) -> None:
    """Two of four pods would move to a node of three cores, where two more of them are."""
    pods = [pod(f"web-{number}", on=f"n{number % 2}", namespace="team") for number in range(4)]
    items = [node("n0", cpu="3"), node("n1", cpu="3"), *pods, replica_set(), vpa(mode, target="900m")]
    assert evictions(snapshot(tmp_path, *items)) == count


@pytest.mark.parametrize(("target", "count"), [("1500m", 0), ("200m", 2), ("", 2)])
def test_pods_that_ask_for_nothing_count_with_what_a_vpa_that_only_recommends_knows(
    target: str, count: int, tmp_path: Path
) -> None:
    silent = [pod(f"web-{number}", on=f"n{number % 2}", cpu="", namespace="team") for number in range(4)]
    items = [node("n0", cpu="2"), node("n1", cpu="2"), *silent, vpa("Off", target)]
    assert evictions(snapshot(tmp_path, *items, replica_set(template=False))) == count
