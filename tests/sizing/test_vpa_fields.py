"""Every field of a VPA has a row in the table, and every row a case here."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.build import owner_key
from tests.sizing.vpa_worlds import MI, NOW, after, conditions, entry, kill, present, use, vpa, wanted, written
from trimtab.cluster import quantity
from trimtab.cluster.timestamps import format_timestamp
from trimtab.sizing.vpa.fields import VPA_FIELDS, FieldUse
from trimtab.sizing.vpa.status import LeftAlone
from trimtab.sizing.vpa.target_usage import TargetPods

POLICY = "spec.resourcePolicy.containerPolicies[]"
ENTRY = "status.recommendation.containerRecommendations[]"
CONDITION = "status.conditions[]"
PLAIN = written(vpa())
BOOST = {"cpu": {"type": "Factor", "factor": 3, "quantity": "1", "durationSeconds": 60}}


def amount(status: dict[str, Any], resource: str, field: str = "target") -> int:
    return quantity.scheduler_value(resource, entry(status)[field][resource])


def changes_nothing(*policies: dict[str, Any], **spec: Any) -> bool:
    return written(vpa(*policies, **spec)) == PLAIN


def kind() -> None:
    assert conditions(written(vpa(targetRef={"name": "web"})))["ConfigUnsupported"] == "True"


def name() -> None:
    other = vpa(targetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"})
    pods = TargetPods(topmost=owner_key("Deployment/api", "shop"))
    assert entry(written(other, pods=pods)) == {}


def api_version() -> None:
    other = vpa(targetRef={"apiVersion": "example.com/v1", "kind": "Deployment", "name": "web"})
    assert conditions(written(other))["ConfigUnsupported"] == "True", "it is not the Deployment that the pods belong to"
    assert written(vpa(targetRef={"kind": "Deployment", "name": "web"})) == PLAIN


def update_mode() -> None:
    assert all(changes_nothing(updatePolicy={"updateMode": mode}) for mode in ("Off", "Initial", "InPlace"))


def min_replicas() -> None:
    assert changes_nothing(updatePolicy={"minReplicas": 5})


def eviction_requirements() -> None:
    requirement = {"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}
    assert changes_nothing(updatePolicy={"evictionRequirements": [requirement]})


def evict_after_oom() -> None:
    assert changes_nothing(updatePolicy={"evictAfterOOMSeconds": 60})


def recommenders() -> None:
    for others in ([], [{"name": "default"}], [{"name": "trimtab"}, {"name": "default"}]):
        assert isinstance(wanted(vpa(recommenders=others)), LeftAlone)


def startup_boost() -> None:
    assert changes_nothing(startupBoost=BOOST)
    assert changes_nothing({"containerName": "app", "startupBoost": BOOST})


def container_name() -> None:
    both = ({"containerName": "*", "mode": "Off"}, {"containerName": "app", "mode": "Auto"})
    assert written(vpa(*both)) == PLAIN
    assert entry(written(vpa({"mode": "Off"}))) == {}


def mode() -> None:
    status = written(vpa({"containerName": "app", "mode": "Off"}))
    assert status["recommendation"] is None
    assert conditions(status) == {"RecommendationProvided": "False"}


def min_allowed() -> None:
    status = written(vpa({"containerName": "app", "minAllowed": {"cpu": "2", "memory": "0"}}))
    assert [amount(status, "cpu", field) for field in ("target", "lowerBound", "upperBound")] == [2000] * 3
    assert entry(status)["uncappedTarget"] == entry(PLAIN)["uncappedTarget"]
    assert amount(status, "memory") == amount(PLAIN, "memory")


def max_allowed() -> None:
    status = written(vpa({"containerName": "app", "minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "50m"}}))
    assert [amount(status, "cpu", field) for field in ("target", "lowerBound", "upperBound")] == [50] * 3
    assert entry(status)["uncappedTarget"] == entry(PLAIN)["uncappedTarget"]


def controlled_resources() -> None:
    status = written(vpa({"containerName": "app", "controlledResources": ["memory"]}))
    assert {*entry(status)["target"], *entry(status)["upperBound"]} == {"memory"}


def controlled_values() -> None:
    assert changes_nothing({"containerName": "app", "controlledValues": "RequestsOnly"})


def killed(policy: dict[str, Any]) -> int:
    history = use()
    kill(history, used=1000)
    return amount(written(vpa({"containerName": "app", **policy}), history), "memory")


def oom_bump_up_ratio() -> None:
    assert [killed({"oomBumpUpRatio": ratio}) // MI for ratio in ("1.5", "2", "0.5")] == [1500, 2000, 1100]
    assert killed({"oomBumpUpRatio": "9"}) <= 3 * 820 * MI, "three times the largest usage"
    assert killed({}) // MI == 1200


def oom_min_bump_up() -> None:
    assert killed({"oomMinBumpUp": "500Mi"}) // MI == 1500


def memory_aggregation() -> None:
    assert changes_nothing(
        {"containerName": "app", "memoryAggregationIntervalSeconds": 60, "memoryAggregationIntervalCount": 3}
    )


def entry_container_name() -> None:
    history = use()
    pods = TargetPods(topmost=owner_key("Deployment/web", "shop"), init_containers=frozenset({"app"}))
    assert entry(written(vpa(), history, pods)) == {}
    gone = TargetPods(topmost=owner_key("Deployment/web", "shop"), count=1, containers=frozenset({"new"}))
    assert entry(written(vpa(), history, gone)) == {}, "no pod has it any more"


def target() -> None:
    assert amount(PLAIN, "cpu") == pytest.approx(400, rel=0.1)
    assert amount(PLAIN, "memory") >= 800 * MI
    tiny = written(vpa(), use(cpu=0.0001, memory=1))
    assert (amount(tiny, "cpu"), amount(tiny, "memory")) == (10, 16 * MI)


def lower_bound() -> None:
    assert amount(PLAIN, "cpu", "lowerBound") < amount(PLAIN, "cpu")
    young = written(vpa(), use(days=1.5))
    assert amount(young, "cpu", "lowerBound") < amount(PLAIN, "cpu", "lowerBound")


def upper_bound() -> None:
    assert amount(PLAIN, "cpu", "upperBound") >= amount(PLAIN, "cpu")
    young = written(vpa(), use(days=1.5))
    assert 2 * 411 >= amount(young, "cpu", "upperBound") > amount(PLAIN, "cpu", "upperBound")


def uncapped_target() -> None:
    assert entry(PLAIN)["uncappedTarget"] == entry(PLAIN)["target"]


def condition_type() -> None:
    old = {**present("1"), "conditions": [{"type": "FetchingHistory", "status": "True"}]}
    assert conditions(written(vpa(status=old))) == {"RecommendationProvided": "True"}
    assert conditions(written(vpa(), use(days=0.5))).keys() == {"RecommendationProvided", "LowConfidence"}
    nobody = TargetPods(topmost=owner_key("Deployment/web", "shop"))
    assert conditions(written(vpa(), pods=nobody)).keys() == {"RecommendationProvided", "NoPodsMatched"}


def condition_status() -> None:
    assert conditions(written(vpa(), use(days=0.5)))["RecommendationProvided"] == "False"


def condition_reason() -> None:
    [condition] = PLAIN["conditions"]
    assert condition["reason"] == "VpaFromUsage"


def condition_message() -> None:
    [condition] = PLAIN["conditions"]
    assert format_timestamp(NOW - 600) in condition["message"]


def last_transition_time() -> None:
    before = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    [same] = written(vpa(status={"conditions": [before]}))["conditions"]
    [other] = written(vpa(status={"conditions": [{**before, "status": "False"}]}))["conditions"]
    assert same["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert other["lastTransitionTime"] == format_timestamp(NOW)


def observed_generation() -> None:
    assert PLAIN["observedGeneration"] == 3
    assert [condition["observedGeneration"] for condition in PLAIN["conditions"]] == [3]
    assert after(vpa(), PLAIN).status.observed_generation == 3


CASES: dict[str, Callable[[], None]] = {
    "spec.targetRef.kind": kind,
    "spec.targetRef.name": name,
    "spec.targetRef.apiVersion": api_version,
    "spec.updatePolicy.updateMode": update_mode,
    "spec.updatePolicy.minReplicas": min_replicas,
    "spec.updatePolicy.evictionRequirements[].resources[]": eviction_requirements,
    "spec.updatePolicy.evictionRequirements[].changeRequirement": eviction_requirements,
    "spec.updatePolicy.evictAfterOOMSeconds": evict_after_oom,
    "spec.recommenders[].name": recommenders,
    **{
        f"{place}startupBoost.cpu.{field}": startup_boost
        for place in ("spec.", f"{POLICY}.")
        for field in ("type", "factor", "quantity", "durationSeconds")
    },
    f"{POLICY}.containerName": container_name,
    f"{POLICY}.mode": mode,
    f"{POLICY}.minAllowed": min_allowed,
    f"{POLICY}.maxAllowed": max_allowed,
    f"{POLICY}.controlledResources[]": controlled_resources,
    f"{POLICY}.controlledValues": controlled_values,
    f"{POLICY}.oomBumpUpRatio": oom_bump_up_ratio,
    f"{POLICY}.oomMinBumpUp": oom_min_bump_up,
    f"{POLICY}.memoryAggregationIntervalSeconds": memory_aggregation,
    f"{POLICY}.memoryAggregationIntervalCount": memory_aggregation,
    f"{ENTRY}.containerName": entry_container_name,
    f"{ENTRY}.target": target,
    f"{ENTRY}.lowerBound": lower_bound,
    f"{ENTRY}.upperBound": upper_bound,
    f"{ENTRY}.uncappedTarget": uncapped_target,
    f"{CONDITION}.type": condition_type,
    f"{CONDITION}.status": condition_status,
    f"{CONDITION}.reason": condition_reason,
    f"{CONDITION}.message": condition_message,
    f"{CONDITION}.lastTransitionTime": last_transition_time,
    f"{CONDITION}.observedGeneration": observed_generation,
    "status.observedGeneration": observed_generation,
}


@pytest.mark.parametrize("path", [field.path for field in VPA_FIELDS])
def test_a_field_is_treated_as_the_table_says(path: str) -> None:
    CASES[path]()


def test_every_row_has_a_case_and_no_field_two_rows() -> None:
    assert [field.path for field in VPA_FIELDS if field.path not in CASES] == []
    assert len({field.path for field in VPA_FIELDS}) == len(VPA_FIELDS) == len(CASES)


def test_what_is_written_is_in_the_status_and_nothing_else_is() -> None:
    assert all((field.use is FieldUse.WRITTEN) is field.path.startswith("status.") for field in VPA_FIELDS)
