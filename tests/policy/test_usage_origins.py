"""What a rule makes of usage is computed once for a recommendation, and never returned for another rule or usage."""

import json

from tests.bench import crowd
from trimtab.cluster.recommendation import ContainerUsage, Percentiles
from trimtab.cluster.snapshot import load_snapshot
from trimtab.policy.actions import request_origin
from trimtab.policy.actions.request_fields import ResourceRequestRule
from trimtab.policy.cluster_facts import from_snapshot


def usage(p95: str) -> ContainerUsage:
    cpu = Percentiles(p5="10m", p50="20m", p95=p95, max="900m")
    return ContainerUsage(cpu=cpu, days=14.0)


def amounts(rules: list[ResourceRequestRule], usages: list[ContainerUsage]) -> list[str]:
    origins = [request_origin._USAGE_ORIGINS.value_for(facts).find(rule, "cpu") for rule in rules for facts in usages]
    return [origin.bounded[0] if origin.bounded else "depends on the pod" for origin in origins]


def test_each_rule_and_each_usage_has_its_own_number() -> None:
    rules = [ResourceRequestRule(min="300m"), ResourceRequestRule(max="150m"), ResourceRequestRule(rule="p50")]
    usages = [usage("100m"), usage("200m")]
    expected = ["300m", "300m", "100m", "150m", "20m", "20m"]
    assert [amounts(rules, usages), amounts(rules, usages)] == [expected, expected]


def test_a_share_of_the_authors_request_is_computed_for_each_pod() -> None:
    rule = ResourceRequestRule(when="always", max_percent=90)
    assert amounts([rule], [usage("200m")]) == ["depends on the pod"]


def test_policies_that_are_replaced_over_and_over_leave_a_bounded_number_of_entries() -> None:
    container_usage = usage("200m")
    rules = [ResourceRequestRule(min=f"{number + 1}m") for number in range(3 * request_origin._MAX_RULES)]
    assert set(amounts(rules, [container_usage])) == {"200m"}
    assert len(request_origin._USAGE_ORIGINS.value_for(container_usage)._cache) <= request_origin._MAX_RULES


def test_the_benchmarks_usage_is_read() -> None:
    world = load_snapshot([("snapshot.json", json.dumps(crowd.snapshot()).encode())])
    facts = from_snapshot(world.snapshot)
    assert (len(facts.recommendations.workloads), facts.problems) == (crowd.WORKLOADS, ())
