"""The rules of a namespace, and the containers whose requests become its parameters."""

from tests.build import limit_range, quota
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.recommendation import ContainerUsage, Percentiles
from trimtab.cluster.request_parameters import NamespaceRules
from trimtab.cluster.snapshot import Snapshot
from trimtab.recommender.parameter_writer import list_containers, summarize_rules

USAGE = ContainerUsage(cpu=Percentiles(p5="5m", p95="200m"))


def test_a_namespace_without_anything_has_no_rules():
    assert summarize_rules(Snapshot({})) == NamespaceRules()


def test_only_the_containers_of_the_namespace_are_written():
    workloads = {"shop/Deployment/api": {"main": USAGE}, "bank/Deployment/api": {"main": USAGE}}
    assert list_containers(workloads, "shop") == {("Deployment", "api", "main"): USAGE}


def test_what_bounds_or_resizes_pods_is_counted():
    found = summarize_rules(
        Snapshot({
            "LimitRange": (limit_range(default={"cpu": "1"}),), "ResourceQuota": (quota({"pods": "1"}),),
            "VerticalPodAutoscaler": (VerticalPodAutoscaler(),),
        })
    )  # fmt: skip
    assert (found.limit_ranges, found.quotas, found.vpas) == (1, 1, ())
