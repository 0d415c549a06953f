"""Which pods live and die together: by the marks of known groups, and by a pod that owns others."""

import pytest

from tests.build import NAMESPACE, owner_key
from trimtab.cluster.pod_groups import GROUP_MARKS, GroupMark, PodLeaders, group_by_marks


def marks(mark: GroupMark, value: str = "train") -> dict[str, dict[str, str]]:
    return {"labels": {}, "annotations": {}, mark.where: dict.fromkeys(mark.keys, value)}


@pytest.mark.parametrize("mark", GROUP_MARKS, ids=lambda mark: mark.keys[-1])
def test_pods_with_one_mark_are_of_one_group_and_pods_with_another_of_another(mark: GroupMark) -> None:
    one, other = group_by_marks(**marks(mark)), group_by_marks(**marks(mark, "serve"))
    assert one != other != ""


@pytest.mark.parametrize("mark", GROUP_MARKS, ids=lambda mark: mark.keys[-1])
def test_a_part_of_a_mark_names_no_group(mark: GroupMark) -> None:
    for key in mark.keys if len(mark.keys) > 1 else ():
        assert group_by_marks(**{"labels": {}, "annotations": {}, mark.where: {key: "train"}}) == ""


def test_a_pod_without_marks_is_of_no_group() -> None:
    assert group_by_marks({"app": "web"}, {"note": "true"}) == ""


CHAIN = {
    owner_key("StatefulSet/llm-0"): owner_key("Pod/llm-0"),
    owner_key("Pod/llm-0"): owner_key("StatefulSet/llm"),
    owner_key("ReplicaSet/web-1"): owner_key("Deployment/web"),
    owner_key("Job/run"): owner_key("StatefulSet/llm-0"),
}


@pytest.mark.parametrize(
    ("owner", "leader"),
    [
        ("StatefulSet/llm-0", "Pod/llm-0"),
        ("Job/run", "Pod/llm-0"),
        ("Pod/driver", "Pod/driver"),
        ("ReplicaSet/web-1", None),
        ("StatefulSet/llm", None),
        ("StatefulSet.apps.kruise.io/llm-0", None),
    ],
)
def test_a_pod_ends_with_the_topmost_pod_above_it(owner: str, leader: str | None) -> None:
    actual_owner_key = PodLeaders.from_controllers(CHAIN).leader_of(NAMESPACE, owner_key(owner), {})
    assert actual_owner_key == (leader and owner_key(leader))


def test_owners_that_own_each_other_lead_nothing_for_ever() -> None:
    circle = {owner_key("Job/a"): owner_key("Pod/b"), owner_key("Pod/b"): owner_key("Job/a")}
    assert PodLeaders.from_controllers(circle).leader_of(NAMESPACE, owner_key("Job/a"), {}) == owner_key("Pod/b")
