"""What the doctor says of the provider of custom metrics."""

from dataclasses import replace

import pytest

from tests.cli.doctor.worlds import OURS, WELL
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.check_metrics_api import check_metrics_api, read_metrics_api_state
from trimtab.diagnosis.observed import ApiServiceState, DeploymentState, MetricsApiState

NAME = "v1beta2.custom.metrics.k8s.io"
RUNS = DeploymentState(replicas=2, ready_replicas=2)
REGISTERED = ApiServiceState(name=NAME, service=f"{OURS}/trimtab-metrics-api", is_available=True)
SILENT = replace(REGISTERED, is_available=False, message="no endpoints")
ADAPTER = ApiServiceState(name="v1beta1.custom.metrics.k8s.io", service="monitoring/adapter", is_available=True)


@pytest.mark.parametrize(
    ("state", "codes"),
    [
        (MetricsApiState(), ["no-problem-found"]),
        (MetricsApiState(api_services=(ADAPTER,)), ["no-problem-found"]),
        (MetricsApiState(api_services=(REGISTERED,), deployment=RUNS), ["no-problem-found"]),
        (MetricsApiState(api_services=(SILENT,), deployment=RUNS), ["metrics-api-unavailable"]),
        (MetricsApiState(api_services=(SILENT,)), ["metrics-api-unavailable"]),
        (MetricsApiState(deployment=RUNS), ["metrics-api-not-registered"]),
        (
            MetricsApiState(api_services=(ADAPTER, REGISTERED), deployment=RUNS),
            ["metrics-api-other-provider", "no-problem-found"],
        ),
        (Unreadable("list apiservices", "forbidden"), ["not-checked"]),
    ],
)
def test_one_provider_that_answers_is_well(state: MetricsApiState | Unreadable, codes: list[str]) -> None:
    doctor_finding = check_metrics_api(replace(WELL, metrics_api=state))
    assert [finding.reason.code.name for finding in doctor_finding] == codes


def test_the_state_is_read_from_the_apiservices_of_the_group() -> None:
    service = {"namespace": OURS, "name": "trimtab-metrics-api"}
    conditions = [{"type": "Available", "status": "False", "message": "no endpoints"}]
    ours = {
        "metadata": {"name": NAME},
        "spec": {"group": "custom.metrics.k8s.io", "service": service},
        "status": {"conditions": conditions},
    }
    other = {"metadata": {"name": "v1."}, "spec": {}}
    assert read_metrics_api_state([ours, other], RUNS) == MetricsApiState(api_services=(SILENT,), deployment=RUNS)
