"""Which pods of one owner count as pods of one template."""

import pytest

from tests.cluster_of import Item, cluster, pod
from trimtab.cluster.next_pod import largest_requests


def owned(name: str, cpu: str, kind: str, version: str, labels: dict[str, str]) -> Item:
    item = pod(name, "a", cpu)
    owner = {"apiVersion": version, "kind": kind, "name": "it", "uid": "1", "controller": True}
    item["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
    return item


RAY, JOB, SET = ("RayCluster", "ray.io/v1"), ("Job", "batch.volcano.sh/v1alpha1"), ("ReplicaSet", "apps/v1")


@pytest.mark.parametrize(
    ("owner", "first", "second", "is_one"),
    [
        (RAY, {"ray.io/group": "head"}, {"ray.io/group": "small"}, False),
        (RAY, {"ray.io/group": "small"}, {"ray.io/group": "small"}, True),
        (JOB, {"volcano.sh/task-spec": "master"}, {"volcano.sh/task-spec": "worker"}, False),
        (JOB, {"volcano.sh/task-index": "0"}, {"volcano.sh/task-index": "1"}, True),
        (JOB, {"example.com/pod": "first"}, {"example.com/pod": "second"}, True),
        (JOB, {"controller-revision-hash": "it-a"}, {"controller-revision-hash": "it-b"}, True),
        (SET, {"role": "a"}, {"role": "b"}, True),
    ],
)
def test_pods_of_one_owner_with_other_labels_may_have_other_templates(
    owner: tuple[str, str], first: dict[str, str], second: dict[str, str], is_one: bool
) -> None:
    pods = cluster(owned("first", "100m", *owner, first), owned("second", "3", *owner, second)).pods
    assert bool(largest_requests(pods)) == is_one
