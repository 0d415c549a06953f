"""VPAs that are worth it, and those that are not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.reasons import assert_reason, has_facts
from trimtab.autoscaling.simulation.propose_vpas import (
    ContainerHistory,
    VpaAction,
    VpaProposal,
    WorkloadHistory,
    propose_vpa,
    summarize_container,
)
from trimtab.autoscaling.simulation.simulate_vpa import PodSeries

GB, DAY = 10**9, 86400
VARYING = ContainerHistory(
    "app", {"cpu": 40, "memory": GB}, {"cpu": 800, "memory": 3 * GB}, {"cpu": 63, "memory": 2 * GB}, 7 * DAY, 2000
)
WEB = WorkloadHistory(
    namespace="shop",
    kind="Deployment",
    name="web",
    replicas=3,
    containers=(VARYING,),
    max_allowed={"app": {"cpu": 3800, "memory": 14 << 30}},
)


def one(container: ContainerHistory = VARYING, **more: Any) -> WorkloadHistory:
    return replace(WEB, containers=(container,), **more)


def existing(**policy: Any) -> tuple[dict[str, Any], ...]:
    spec = {
        "updatePolicy": {"updateMode": policy.pop("updateMode", "Recreate")},
        "resourcePolicy": {"containerPolicies": [{"containerName": "*", **policy}]},
    }
    return ({"metadata": {"name": "mine"}, "spec": spec},)


def policy_of(proposal: VpaProposal) -> Any:
    assert proposal.manifest is not None
    return proposal.manifest["spec"]["resourcePolicy"]["containerPolicies"][0]


def test_a_large_and_varying_workload_gets_a_vpa_with_bounds() -> None:
    vpa_proposal = propose_vpa(WEB, (1, 33))
    assert vpa_proposal.action is VpaAction.ADD
    assert policy_of(vpa_proposal) == {
        "containerName": "app",
        "controlledResources": ["cpu", "memory"],
        "controlledValues": "RequestsOnly",
        "minAllowed": {"cpu": "63m", "memory": "1908Mi"},
        "maxAllowed": {"cpu": "3800m", "memory": "14Gi"},
    }
    assert vpa_proposal.manifest is not None
    assert vpa_proposal.manifest["spec"]["targetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.mark.parametrize(
    ("version", "mode"), [((1, 33), "InPlaceOrRecreate"), ((1, 32), "Recreate"), (None, "Recreate")]
)
def test_pods_are_resized_in_place_where_the_server_can(version: Any, mode: str) -> None:
    manifest = propose_vpa(WEB, version).manifest
    assert manifest is not None
    assert manifest["spec"]["updatePolicy"] == {"updateMode": mode}


def test_the_minimum_is_never_above_the_maximum() -> None:
    small = propose_vpa(replace(WEB, max_allowed={"app": {"cpu": 50, "memory": GB}}))
    assert policy_of(small)["minAllowed"]["cpu"] == "50m"


@pytest.mark.parametrize(
    ("container", "code"),
    [
        (replace(VARYING, high={"cpu": 50, "memory": 100_000_000}), "vpa-too-small"),
        (replace(VARYING, low={"cpu": 400, "memory": 2 * GB}), "vpa-too-steady"),
    ],
)
def test_a_small_or_steady_workload_needs_none(container: ContainerHistory, code: str) -> None:
    without = propose_vpa(one(container))
    assert (without.action, without.reason.code.name) == (VpaAction.NONE, code)
    removed = propose_vpa(one(container, vpas=existing()))
    assert (removed.action, removed.existing) == (VpaAction.REMOVE, "mine")


def test_steady_usage_is_told_for_what_is_large_alone() -> None:
    """Cpu that is small may vary."""
    vpa_proposal = propose_vpa(
        one(replace(VARYING, low={"cpu": 4, "memory": 2 * GB}, high={"cpu": 40, "memory": 3 * GB}))
    )
    assert has_facts(
        vpa_proposal.reason.sentence, "95th percentile", "app", "memory", "1907Mi (P5)", "2861Mi (P95)", "2 times"
    )


def test_a_resource_of_an_hpa_is_left_alone() -> None:
    vpa_proposal = propose_vpa(replace(WEB, hpa_resources=frozenset({"cpu"})))
    assert policy_of(vpa_proposal)["controlledResources"] == ["memory"]
    both = propose_vpa(replace(WEB, hpa_resources=frozenset({"cpu", "memory"})))
    assert (both.action, both.reason.code.name) == (VpaAction.NONE, "vpa-owned-by-hpa")


def test_too_little_history_keeps_what_there_is() -> None:
    short = replace(VARYING, seconds=DAY - 1)
    assert propose_vpa(one(short)).action is VpaAction.NONE
    assert propose_vpa(one(short, vpas=existing())).action is VpaAction.KEEP


def test_an_existing_vpa_is_told_what_it_lacks() -> None:
    vpa_proposal = propose_vpa(replace(WEB, vpas=existing()), (1, 35))
    assert vpa_proposal.action is VpaAction.CHANGE
    assert_reason(
        vpa_proposal.reason,
        "vpa-differs",
        mode="updateMode Recreate",
        limits="changes limits",
        low="no minAllowed",
        high="no maxAllowed",
    )


def test_bounds_and_modes_of_the_author_are_right() -> None:
    own = existing(
        updateMode="Initial", controlledValues="RequestsOnly", minAllowed={"cpu": "1"}, maxAllowed={"cpu": "2"}
    )
    assert propose_vpa(replace(WEB, vpas=own), (1, 35)).action is VpaAction.KEEP


def test_a_container_that_needs_no_vpa_is_off() -> None:
    side = ContainerHistory("proxy", {"cpu": 5}, {"cpu": 9}, {"cpu": 25}, 7 * DAY, 2000)
    vpa_proposal = propose_vpa(replace(WEB, containers=(VARYING, side)))
    assert vpa_proposal.manifest is not None
    assert vpa_proposal.manifest["spec"]["resourcePolicy"]["containerPolicies"][1] == {
        "containerName": "proxy",
        "mode": "Off",
    }


def test_a_container_is_summarized_by_its_percentiles_and_its_idle_time() -> None:
    times = [n * 300 for n in range(1, 1001)]
    values = [0.1 if n % 4 == 0 else 1.0 for n in range(1000)]
    container_history = summarize_container("app", [PodSeries("p", "cpu", times, values)])
    assert (container_history.low, container_history.high, container_history.idle_target) == (
        {"cpu": 100},
        {"cpu": 1000},
        {"cpu": 126},
    )
    assert (container_history.seconds, container_history.samples) == (999 * 300, 1000)
