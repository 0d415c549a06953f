"""The autoscaler's status: YAML since 1.30, text before, told apart by content."""

import msgspec
import pytest

from trimtab.cluster import node
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.cluster_autoscaler import (
    Autoscaler,
    autoscaler_from_flags,
    format_status,
    parse_flags,
    parse_go_time,
    parse_status,
    wrong_flags,
)
from trimtab.cluster.node import NodeInfo, describe_scale_up
from trimtab.cluster.reason import Unreadable

YAML = """
time: 2026-01-03 00:00:00.123456789 +0000 UTC
autoscalerStatus: Running
clusterWide:
  health: {status: Healthy, nodeCounts: {registered: {total: 5, ready: 5}}}
  scaleUp: {status: NoActivity}
  scaleDown: {status: CandidatesPresent, candidates: 2}
nodeGroups:
- name: gke-prod-web-1234-grp
  health: {status: Healthy, cloudProviderTarget: 3, minSize: 1, maxSize: 10}
  scaleUp: {status: InProgress}
  scaleDown: {status: CandidatesPresent, candidates: 1}
- name: gke-prod-webhooks-9-grp
  health: {status: Healthy, cloudProviderTarget: 2, minSize: 0, maxSize: 5}
  scaleUp: {status: NoActivity}
"""
TEXT = """Cluster-autoscaler status at 2026-01-03 00:00:00.123456789 +0000 UTC:
Cluster-wide:
  Health:      Unhealthy (ready=2 unready=3 notStarted=0 registered=5)
  ScaleUp:     NoActivity (ready=2 registered=5)
  ScaleDown:   NoCandidates (candidates=0)

NodeGroups:
  Name:        eks-web-abcd
  Health:      Healthy (ready=2 unready=0 cloudProviderTarget=3 (minSize=1, maxSize=5))
  ScaleUp:     Backoff (ready=2 cloudProviderTarget=3)
  ScaleDown:   CandidatesPresent (candidates=1)
"""


def made(status: str, **more: object) -> Autoscaler:
    autoscaler = parse_status(status, "2026-01-03 00:00:00.5 +0000 UTC", **more)  # type: ignore[arg-type]
    assert isinstance(autoscaler, Autoscaler)
    return autoscaler


def test_the_yaml_status() -> None:
    autoscaler = made(YAML)
    assert autoscaler.healthy
    group = autoscaler.groups[0]
    assert (group.scale_up, group.min_size, group.target, group.candidates) == ("InProgress", 1, 3, 1)


def test_the_text_status() -> None:
    autoscaler = made(TEXT)
    assert not autoscaler.healthy
    group = autoscaler.groups[0]
    assert (group.name, group.scale_up, group.min_size, group.max_size, group.target, group.candidates) == (
        "eks-web-abcd",
        "Backoff",
        1,
        5,
        3,
        1,
    )


def test_a_pools_groups_are_those_with_its_name_as_a_part_of_their_own() -> None:
    autoscaler = made(YAML)
    assert [group.name for group in autoscaler.groups_of_pool("web")] == ["gke-prod-web-1234-grp"]
    assert "InProgress" in describe_scale_up(autoscaler, "web", [])


def of_group(name: str) -> NodeInfo:
    shape = {"metadata": {"name": "n", "labels": {"group": name}}, "spec": {}, "status": {"allocatable": {}}}
    return node.node_from_api(msgspec.convert(shape, NodeShape), None)


BACKOFF = """
clusterWide: {health: {status: Healthy}, scaleUp: {status: NoActivity}}
nodeGroups:
- {name: asg-prod-7f, scaleUp: {status: Backoff}}
- {name: asg-prod-8c, scaleUp: {status: NoActivity}}
"""


@pytest.mark.parametrize(
    ("group", "described"), [("asg-prod-7f", "node group asg-prod-7f (Backoff)"), ("asg-prod-8c", "")]
)
def test_a_group_in_back_off_counts_for_the_pools_whose_nodes_tell_it(group: str, described: str) -> None:
    assert describe_scale_up(made(BACKOFF), "web", [of_group(group)]) == described


def test_a_group_in_back_off_counts_for_pools_whose_groups_nobody_knows() -> None:
    assert describe_scale_up(made(BACKOFF), "web", [of_group("other")]) == "node group asg-prod-7f (Backoff)"


def test_an_autoscaler_that_is_still_initializing_is_not_healthy() -> None:
    assert not made("autoscalerStatus: Initializing\nclusterWide: {}").healthy
    assert made("autoscalerStatus: Running\nclusterWide: {health: {status: Healthy}}").healthy


@pytest.mark.parametrize("status", ["", "hello", "[1, 2]", "a: b", "{", "clusterWide: {}\nlast: 2026-13-01"])
def test_what_is_no_status_is_unreadable(status: str) -> None:
    assert isinstance(parse_status(status), Unreadable)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-03 00:00:00.123456789 +0000 UTC", 1767398400),
        ("2026-01-03 01:00:00 +0100 CET", 1767398400),
        ("2026-01-03T00:00:00Z", 1767398400),
        ("never", None),
    ],
)
def test_gos_time_text(text: str, expected: int | None) -> None:
    assert parse_go_time(text) == expected


def test_silence_is_two_minutes_without_a_report() -> None:
    autoscaler = made(YAML)
    assert not autoscaler.is_silent(1767398400 + 120)
    assert autoscaler.is_silent(1767398400 + 121)


def test_flags_in_all_their_spellings() -> None:
    arguments = ["./cluster-autoscaler", "--a=1", "--b", "2", "--c", "--d", "-e=f"]
    assert parse_flags(arguments) == {"a": "1", "b": "2", "c": "true", "d": "true", "e": "f"}


@pytest.mark.parametrize(
    ("said", "percent"), [("0.5", 50), ("0.65", 65), ("1", 100), ("1.0", 100), (".7", 70), ("high", 50)]
)
def test_the_threshold_is_a_percentage(said: str, percent: int) -> None:
    assert made(YAML, arguments=[f"--scale-down-utilization-threshold={said}"]).threshold == percent


def test_scale_down_may_be_off() -> None:
    assert not made(YAML, arguments=["--scale-down-enabled=false"]).scale_down


def test_flags_a_person_gives_are_read_or_named() -> None:
    assert autoscaler_from_flags(["--scale-down-gpu-utilization-threshold=0.3"], 5).gpu_threshold == 30
    assert len(wrong_flags(["--scale-down-gpu-utilization-threshold=few"])) == 1
    autoscaler = autoscaler_from_flags(["--scale-down-utilization-threshold=0.7", "--scale-down-enabled", "false"], 5)
    assert (autoscaler.threshold, autoscaler.scale_down, autoscaler.updated) == (70, False, 5)
    assert wrong_flags(["--scale-down-utilization-threshold", "0.7"]) == []
    assert len(wrong_flags(["threshold", "--scale-down-utilization-threshold=much", "--scale-down-enabled=no"])) == 3


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("scale-down-utilization-treshold", "scale-down-utilization-threshold"),
        ("ignore-daemonset-utilization", "ignore-daemonsets-utilization"),
        ("scale-down-non-empty-candidates-count", ""),
        ("expander", ""),
        ("scan-interval", ""),
    ],
)
def test_a_flag_that_does_not_exist_is_named_with_the_one_that_was_meant(name: str, meant: str) -> None:
    wrong = [f"--{name} is not a flag; did you mean --{meant}?"] if meant else []
    assert wrong_flags([f"--{name}=0.9"]) == wrong


@pytest.mark.parametrize("status", [YAML, TEXT])
def test_a_status_that_is_written_reads_as_the_same(status: str) -> None:
    autoscaler = parse_status(status)
    assert isinstance(autoscaler, Autoscaler)
    assert parse_status(format_status(autoscaler)) == autoscaler


def test_a_report_of_the_future_tells_nothing() -> None:
    """Else an autoscaler that died would be believed for as long as the clocks differ."""
    autoscaler = made(YAML)
    assert not autoscaler.is_silent(1767398400 - 120)
    assert autoscaler.is_silent(1767398400 - 121)
    assert "future" in autoscaler.silence_reason(1767398400 - 121)
