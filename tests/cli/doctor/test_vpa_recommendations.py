"""What is well of VPAs that name Trimtab, and of the recommender alone. The faults are rows of `test_judge`."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.cli.doctor.worlds import NOW, RECOMMENDS, WELL, bad, vpas
from trimtab.cli.doctor.command import judge_cluster
from trimtab.diagnosis.finding import FindingSeverity
from trimtab.diagnosis.observed import DeploymentState


@pytest.mark.parametrize(
    "other", [vpas(), vpas(has_pods=False, used_until=NOW - timedelta(days=3)), vpas(used_until=None)]
)
def test_a_vpa_that_is_served_and_one_without_pods_are_well(other: dict[str, Any]) -> None:
    assert bad(**other) == {}


def test_the_recommender_alone_is_an_installation_and_is_judged_as_one() -> None:
    alone = {name: state if name == "recommender" else None for name, state in RECOMMENDS.items()}
    cluster = replace(WELL, processes=alone, mutating=(), validating=None, crd=None, secret=None)
    cluster = replace(cluster, pool_status_crd=None, drain_order_crd=None)
    assert [result for result in judge_cluster(cluster) if result.finding.severity != FindingSeverity.OK] == []
    off = replace(cluster, processes={**alone, "recommender": DeploymentState(replicas=2, ready_replicas=2)})
    assert "process-missing" in {result.finding.reason.code.name for result in judge_cluster(off)}
