"""Which node groups may get a node of a kind that nobody has seen?"""

import pytest

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.cluster_autoscaler import MAX_STATUS_CHARACTERS, growing_groups, growing_groups_of_any
from trimtab.cluster.snapshot import ConfigMap

YAML = """
time: {time}
autoscalerStatus: Running
clusterWide:
  health: {{status: Healthy, nodeCounts: {{registered: {{total: 3, ready: 3}}}}}}
nodeGroups:
- name: gke-prod-web-1234-grp
  health: {{status: Healthy, nodeCounts: {{registered: {{total: 3, ready: 3}}}}, cloudProviderTarget: 3, maxSize: 3}}
- name: gke-prod-gpu-5678-grp
  health: {{status: Healthy, nodeCounts: {{registered: {{total: 0}}}}, cloudProviderTarget: 1, maxSize: 4}}
  scaleUp: {{status: InProgress, lastTransitionTime: {time}}}
- name: gke-prod-off-9-grp
  health: {{cloudProviderTarget: 0, maxSize: 0}}
"""
TEXT = """Cluster-autoscaler status at {time}:
Cluster-wide:
  Health:      Healthy (ready=2 unready=0 notStarted=0 registered=2)

NodeGroups:
  Name:        eks-web-abcd
  Health:      Healthy (ready=2 unready=0 registered=2 cloudProviderTarget=2 (minSize=1, maxSize=5))
  Name:        eks-spot-abcd
  Health:      Healthy (ready=0 unready=0 registered=0 cloudProviderTarget=0 (minSize=0, maxSize=5))
  Name:        eks-gone-abcd
  Health:      Healthy (ready=0 unready=0 registered=0 cloudProviderTarget=0 (minSize=0, maxSize=5))
  ScaleUp:     Backoff (ready=0 cloudProviderTarget=0)
"""


def status(text: str, time: str = "2026-01-03 00:00:00.123456789 +0000 UTC", **where: str) -> ConfigMap:
    metadata = Metadata(**{"name": "cluster-autoscaler-status", "namespace": "kube-system", **where})
    return ConfigMap(metadata=metadata, data={"status": text.format(time=time)})


@pytest.mark.parametrize(("text", "groups"), [(YAML, ("gke-prod-gpu-5678-grp",)), (TEXT, ("eks-spot-abcd",))])
def test_those_without_a_node_that_may_have_one(text: str, groups: tuple[str, ...]) -> None:
    assert growing_groups(status(text)) == groups


def test_a_report_that_says_the_same_is_the_same_object() -> None:
    first, second = (growing_groups(status(YAML, f"2026-01-03 00:00:{second}0 +0000 UTC")) for second in (1, 2))
    assert first is second


@pytest.mark.parametrize("text", ["nothing of it", "x" * (MAX_STATUS_CHARACTERS + 1)])
def test_of_what_cannot_be_read_no_groups_are_known(text: str) -> None:
    assert growing_groups(status(text)) is None


def test_only_the_one_in_its_place_is_believed() -> None:
    others = [status(YAML, name="other"), status(YAML, namespace="team-a")]
    assert growing_groups_of_any(others) is None
    assert growing_groups_of_any([*others, status(TEXT)]) == ("eks-spot-abcd",)
