"""The flags and thresholds of several cluster autoscalers, as doctor compares them with the settings and the pools."""

from dataclasses import replace

from tests.cli.doctor.worlds import NOW, WELL, settings
from trimtab.cluster.autoscaler_processes import split_processes
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.pool import Pool, Precedence
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.several_autoscalers import join_autoscalers
from trimtab.diagnosis.check_integrations import check_autoscaler
from trimtab.diagnosis.finding import FindingSeverity
from trimtab.diagnosis.observed import AutoscalerState

SCALER = Autoscaler(updated=int(NOW.timestamp()))


def codes_with_autoscalers(processes: str, *, flags: str) -> list[str]:
    state = AutoscalerState(status_report=SCALER, processes=split_processes(processes))
    both = settings(
        "compactor",
        TRIMTAB_COMPACTOR_AUTOSCALER_FLAGS=flags,
        TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP="cluster-autoscaler-status,status-spot",
    )
    cluster = replace(WELL, autoscaler=state, processes=both)
    return [one.reason.code.name for one in check_autoscaler(cluster) if one.severity is not FindingSeverity.OK]


def test_each_of_several_autoscalers_is_compared_with_its_own_flags() -> None:
    spot = "--status-config-map-name=status-spot --scale-down-unneeded-time=2m"
    text = f"--scale-down-unneeded-time=5m; {spot}"
    assert codes_with_autoscalers(text, flags=text) == []
    assert codes_with_autoscalers(f"--v=4; {spot}", flags=text) == ["autoscaler-flags-differ"]
    assert codes_with_autoscalers(spot, flags="--scale-down-unneeded-time=2m") == []


def test_a_pool_that_leads_is_compared_with_its_own_autoscaler() -> None:
    members = [
        replace(
            SCALER,
            name=f"kube-system/{name}",
            groups=(NodeGroupStatus(name=group, healthy=True, scale_up="NoActivity"),),
        )
        for name, group in (("cluster-autoscaler-status", "web"), ("status-spot", "batch"))
    ]
    processes = split_processes("--v=4; --status-config-map-name=status-spot --scale-down-utilization-threshold=0.9")
    state = AutoscalerState(status_report=join_autoscalers(members), processes=processes)

    def is_competing(pool: str) -> bool:
        leading_pool = Pool(name=pool, autoscaler=Precedence.LEAD)
        findings = check_autoscaler(replace(WELL, autoscaler=state, pools=PoolReading((leading_pool,))))
        return "autoscaler-drains-same-nodes" in {one.reason.code.name for one in findings}

    assert {pool: is_competing(pool) for pool in ("web", "batch", "other")} == {
        "web": False,
        "batch": True,
        "other": True,
    }
