"""A kind is a name and a group. Only the group's kinds of one name are one kind."""

import pytest

from trimtab.cluster.kinds import GROUPS_BY_KIND, group_kind, group_name, kind_name, kind_of_object, scale_target_kind
from trimtab.kube.resources import LIST_SOURCES


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps/v1", "StatefulSet"),
        ("apps/v1beta2", "StatefulSet"),
        ("", "StatefulSet"),
        ("v1", "Pod"),
        ("extensions/v1beta1", "Deployment"),
        ("argoproj.io/v1alpha1", "Rollout"),
        ("v1", "DeploymentConfig"),
    ],
)
def test_every_version_of_the_kinds_own_group_is_the_kind_of_that_name(version: str, kind: str) -> None:
    assert group_kind(version, kind) == kind


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [
        ("apps.kruise.io/v1beta1", "StatefulSet", "StatefulSet.apps.kruise.io"),
        ("batch.volcano.sh/v1alpha1", "Job", "Job.batch.volcano.sh"),
        ("example.com/v1", "Node", "Node.example.com"),
        ("v1", "StatefulSet", "StatefulSet.core"),
        ("kafka.strimzi.io/v1", "Kafka", "Kafka.kafka.strimzi.io"),
    ],
)
def test_a_kind_of_another_group_has_the_group_in_its_name(version: str, kind: str, expected: str) -> None:
    assert group_kind(version, kind) == expected


def test_a_dot_in_a_kind_makes_no_kind_of_another_group() -> None:
    kinds = {group_kind("kruise.io/v1", "StatefulSet.apps"), group_kind("", "StatefulSet.apps.kruise.io")}
    assert group_kind("apps.kruise.io/v1", "StatefulSet") not in kinds


@pytest.mark.parametrize("version", ["apps.kruise.io/v1", "apps/v1", "v1", ""])
def test_the_name_and_the_group_of_a_kind_are_what_was_read(version: str) -> None:
    kind = group_kind(version, "StatefulSet")
    assert (kind_name(kind), group_name(kind)) == ("StatefulSet", version.rpartition("/")[0] if version else "apps")


def test_a_kind_without_a_group_has_none() -> None:
    assert group_name(group_kind("", "Database")) is None


@pytest.mark.parametrize("value", [{}, {"kind": 1}, {"kind": ""}, "Pod", None, [{"kind": "Pod"}]])
def test_a_value_that_names_no_kind_has_none(value: object) -> None:
    assert kind_of_object(value) is None


def test_each_kind_that_is_listed_is_of_the_group_that_its_name_means() -> None:
    names = {source.group_version: source for kind, source in LIST_SOURCES.items() if source.kind in GROUPS_BY_KIND}
    assert {version.rpartition("/")[0] for version in names} == {GROUPS_BY_KIND[s.kind] for s in names.values()}
    assert all(
        group_kind(source.group_version, kind) == kind
        for kind, source in LIST_SOURCES.items()
        if source.kind in GROUPS_BY_KIND
    )


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [
        ("", "StatefulSet", "StatefulSet.core"),
        ("apps/v1", "StatefulSet", "StatefulSet"),
        ("", "ReplicationController", "ReplicationController"),
        ("", "Rollout", "Rollout.core"),
        ("extensions/v1beta1", "Deployment", "Deployment.extensions"),
        ("apps/v1beta1", "Deployment", "Deployment"),
    ],
)
def test_a_scale_target_is_of_the_group_as_written_or_of_the_core_group(version: str, kind: str, expected: str) -> None:
    assert scale_target_kind(version, kind) == expected
