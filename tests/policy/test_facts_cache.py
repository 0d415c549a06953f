"""Which updates count as a change, and what an unreadable object leaves as it was. The laws are in tests/property."""

import pytest

from tests.build import namespace, node, owner_key, usage, vpa, workload
from trimtab.cluster.api.autoscaling import ContainerRecommendation, VPARecommendation, VPAStatus
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import Metadata, change
from trimtab.cluster.pause_mark import PAUSED_MARK
from trimtab.cluster.recommendation import PAYLOAD_KEY
from trimtab.policy.cluster_facts import OWN_NAMESPACE
from trimtab.policy.watched_facts import FactsCache, projections_by_kind

HOLDS = projections_by_kind(OWN_NAMESPACE)


def told(gathering, *objects):
    for item in objects:
        kind = getattr(item, "kind", type(item).__name__)
        gathering.put(kind, (item.metadata.namespace, item.metadata.name), HOLDS[kind](item))
    return gathering.build_facts()


def recommended(cpu, lower):
    text = ContainerRecommendation(container_name="app", target={"cpu": cpu}, lower_bound={"cpu": lower})
    status = VPAStatus(recommendation=VPARecommendation(container_recommendations=(text,)))
    return change(vpa(), status=status)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (recommended("1", "100m"), recommended("1", "120m")),
        (node(cpu="4"), change(node(cpu="4"), metadata=Metadata(name="n1", resource_version="2"))),
        (workload("Deployment/web"), workload("Deployment/web", ready_replicas=7)),
        (
            namespace(team="a"),
            change(
                namespace(team="a"), metadata=Metadata(name="team-a", labels={"team": "a"}, annotations={"note": "new"})
            ),
        ),
    ],
    ids=["vpa bounds", "node heartbeat", "ready", "annotated"],
)
def test_what_decides_nothing_is_no_change(before, after):
    gathering = FactsCache()
    assert told(gathering, before) is told(gathering, after)


def test_a_shard_that_turned_bad_keeps_what_it_said_last_and_is_named():
    gathering, good = FactsCache(), usage(cpu=("10m", "90m"))
    before = told(gathering, good)
    after = told(gathering, change(good, data={PAYLOAD_KEY: "{"}))
    assert after.recommendations is before.recommendations
    assert [problem.where for problem in after.problems] == [f"ConfigMap {OWN_NAMESPACE}/trimtab-recommendations-00"]


def test_a_shard_mended_is_no_problem_any_more():
    gathering, good = FactsCache(), usage(cpu=("10m", "90m"))
    told(gathering, change(good, data={PAYLOAD_KEY: "{"}))
    assert told(gathering, good).problems == ()


def test_a_shard_in_somebody_elses_namespace_is_not_believed():
    ours = usage(cpu=("10m", "90m"))
    theirs = change(ours, metadata=change(ours.metadata, namespace="team-a"))
    assert told(FactsCache(), theirs).recommendations.workloads == {}


@pytest.mark.parametrize(
    ("metadata", "paused"),
    [
        ({}, False),
        ({"annotations": {PAUSED_MARK: "true"}}, True),
        ({"labels": {PAUSED_MARK: ""}}, True),
        ({"annotations": {PAUSED_MARK: "false"}}, False),
    ],
)
def test_our_own_namespace_says_whether_all_is_paused(metadata, paused):
    gathering = FactsCache()
    told(gathering, Namespace(metadata=Metadata(name=OWN_NAMESPACE, **metadata)))
    assert gathering.is_paused is paused


def test_another_namespace_pauses_nobody():
    gathering = FactsCache()
    told(gathering, Namespace(metadata=Metadata(name="team-a", labels={PAUSED_MARK: "true"})))
    assert not gathering.is_paused


def test_nodes_that_take_no_pods_do_not_count_for_the_largest():
    gathering, small, large = FactsCache(), node("n1", cpu="4"), node("n2", cpu="8")
    assert told(gathering, small, large).largest_node == {"cpu": 8000}
    assert told(gathering, change(large, spec=change(large.spec, unschedulable=True))).largest_node == {"cpu": 4000}


def test_an_owner_is_known_as_soon_as_it_is_told():
    gathering = FactsCache()
    assert told(gathering, workload("ReplicaSet/web-1", owner="Deployment/web")).find_controller(
        owner_key("ReplicaSet/web-1")
    ) == owner_key("Deployment/web")
