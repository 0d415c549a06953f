"""Several cluster autoscalers: each status counts, with the flags of its own process."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus, format_status, split_status_names
from trimtab.cluster.several_autoscalers import contested_groups, join_autoscalers, read_statuses
from trimtab.cluster.snapshot import ConfigMap

NAMES = ("cluster-autoscaler-status", "status-spot", "other-name")


def group(name: str, min_size: int = 0, scale_up: str = "NotNeeded", *, healthy: bool = True) -> NodeGroupStatus:
    return NodeGroupStatus(name=name, healthy=healthy, scale_up=scale_up, min_size=min_size)


def status(name: str, *groups: NodeGroupStatus, namespace: str = "kube-system") -> ConfigMap:
    text = format_status(Autoscaler(groups=groups))
    return ConfigMap(metadata=Metadata(name=name, namespace=namespace), data={"status": text})


def read_all(*maps: ConfigMap, processes: Sequence[Sequence[str]] = ()) -> Autoscaler:
    autoscaler = read_statuses(maps, processes).autoscaler
    assert autoscaler is not None
    return autoscaler


@pytest.mark.parametrize("namespace", ["kube-system", "autoscaling"])
@pytest.mark.parametrize("name", NAMES)
def test_a_status_is_known_by_its_content_whatever_its_name_is(name: str, namespace: str) -> None:
    assert [one.name for one in read_all(status(name, group("asg-a"), namespace=namespace)).groups] == ["asg-a"]


def test_a_config_map_that_only_has_a_key_of_that_name_is_no_status() -> None:
    other = ConfigMap(metadata=Metadata(name="orders", namespace="shop"), data={"status": "shipped"})
    assert read_statuses([other], ()).autoscaler is None


def test_the_groups_of_all_statuses_count() -> None:
    both = read_all(status(NAMES[0], group("asg-a")), status(NAMES[1], group("asg-b", 3, "InProgress")))
    assert [(one.name, one.min_size) for one in both.groups] == [("asg-a", 0), ("asg-b", 3)]
    assert [one.name for one in both.busy_groups] == ["asg-b"]


def test_each_autoscaler_has_the_flags_of_the_process_that_names_its_status() -> None:
    processes = [
        ["--status-config-map-name=status-spot", "--scale-down-utilization-threshold=0.8"],
        ["--scale-down-utilization-threshold=0.3"],
    ]
    both = read_all(status(NAMES[0]), status(NAMES[1]), processes=processes)
    assert [(member.name, member.threshold) for member in both.members] == [
        ("kube-system/cluster-autoscaler-status", 30),
        ("kube-system/status-spot", 80),
    ]


def test_flags_that_belong_to_no_status_are_reported_missing() -> None:
    reading = read_statuses([status(NAMES[0]), status(NAMES[1])], [["--status-config-map-name=status-spot"]])
    assert reading.without_flags == ("kube-system/cluster-autoscaler-status",)


def test_a_group_that_two_statuses_report_is_named_and_has_the_larger_minimum() -> None:
    both = read_all(status(NAMES[0], group("asg-a", 1)), status(NAMES[1], group("asg-a", 3)))
    assert [one.min_size for one in both.groups] == [3]
    assert list(contested_groups(both)) == ["asg-a"]


def test_the_setting_lists_several_names() -> None:
    assert split_status_names("cluster-autoscaler-status, status-spot,") == NAMES[:2]


autoscalers = st.builds(
    Autoscaler,
    healthy=st.booleans(),
    scale_down=st.booleans(),
    threshold=st.integers(0, 100),
    updated=st.none() | st.integers(0, 9),
    groups=st.lists(
        st.builds(
            group,
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 3),
            st.sampled_from(["NotNeeded", "InProgress"]),
            healthy=st.booleans(),
        ),
        max_size=3,
        unique_by=lambda one: one.name,
    ).map(tuple),
)


@given(members=st.lists(autoscalers, min_size=2, max_size=4))
def test_the_sum_of_several_is_never_less_careful_than_one_of_them(members: list[Autoscaler]) -> None:
    joined = join_autoscalers(members)
    assert joined is not None
    for member in members:
        assert joined.healthy <= member.healthy
        assert joined.scale_down <= member.scale_down
        assert joined.threshold <= member.threshold
        for one in member.groups:
            same = next(other for other in joined.groups if other.name == one.name)
            assert (same.min_size or 0) >= (one.min_size or 0)
            assert same.scale_up == "InProgress" or one.scale_up != "InProgress"
