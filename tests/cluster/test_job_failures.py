"""When does the eviction of one pod make its Job fail as a whole?"""

from typing import Any

import msgspec
import pytest

from trimtab.cluster.api.workload import Workload
from trimtab.cluster.job_failures import fails_by_eviction

EVICTED = [{"type": "DisruptionTarget", "status": "True"}]


def rules(*actions: str) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, "onPodConditions": EVICTED} for action in actions]}}


EXIT_CODES = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}
OTHER_CONDITION = {"action": "FailJob", "onPodConditions": [{"type": "ConfigIssue"}]}


@pytest.mark.parametrize(
    ("spec", "failed", "expected"),
    [
        ({}, 0, False),
        ({}, 6, True),
        ({"backoffLimit": 0}, 0, True),
        ({"backoffLimit": 2}, 1, False),
        ({"backoffLimit": 2}, 2, True),
        ({"backoffLimit": 0, "backoffLimitPerIndex": 0}, 0, False),
        ({"backoffLimit": 0, **rules("Ignore")}, 0, False),
        ({"backoffLimit": 0, **rules("Count")}, 0, True),
        ({"backoffLimit": 6, **rules("FailJob")}, 0, True),
        ({"backoffLimit": 0, **rules("Ignore", "FailJob")}, 0, False),
        ({"backoffLimit": 0, "podFailurePolicy": {"rules": [EXIT_CODES]}}, 0, False),
        ({"backoffLimit": 0, "podFailurePolicy": {"rules": [OTHER_CONDITION]}}, 0, True),
    ],
)
def test_a_job_fails_by_its_limit_or_by_its_policy(spec: dict[str, Any], failed: int, expected: bool) -> None:
    job = msgspec.convert({"spec": spec, "status": {"failed": failed}}, Workload)
    assert fails_by_eviction(job) is expected
