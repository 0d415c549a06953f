"""What lint and the doctor read of a cluster, from an API server on the loopback."""

import json
from pathlib import Path
from typing import Any

from tests.cli.recommending import kubeconfig
from tests.cli.report_runs import run_verb
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, serving
from trimtab.cluster.published_reservations import RESERVATIONS_KEY, RESERVATIONS_LABEL
from trimtab.diagnosis.autoscaling_state import read_autoscaling
from trimtab.kube.client import connect_to_cluster

NODE = {
    "metadata": {"name": "a", "labels": {"trimtab.dev/pool": "web"}},
    "status": {"capacity": {"cpu": "4", "memory": "16Gi"}, "allocatable": {"cpu": "3900m", "memory": "15772Mi"}},
}
POLICY = {"metadata": {"name": "sizes"}, "spec": {"actions": {"limits": {"cpu": "remove"}}}}
LIMITS = {
    "metadata": {"name": "limits", "namespace": "shop"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
}
PUBLISHED = {
    "metadata": {"name": "trimtab-reservations", "namespace": "ours", "labels": {RESERVATIONS_LABEL: "v1"}},
    "data": {
        RESERVATIONS_KEY: json.dumps(
            {"pools": [{"pool": "web", "runtime": "", "millicores": 90, "memoryBytes": 1 << 30}]}
        )
    },
}
KUBELET = {
    "metadata": {"name": "kubelet-config", "namespace": "kube-system"},
    "data": {"kubelet": "kind: KubeletConfiguration\nenforceNodeAllocatable: [pods, system-reserved]\n"},
}
OBJECTS = {"nodes": [NODE], "podpolicies": [POLICY], "limitranges": [LIMITS]}


def stored(asked: Asked) -> Answer:
    """Lists of what there is, by label and name as they are asked for; CapacityBuffers are not installed."""
    path, query, _ = asked
    if path == "/version":
        return 200, {"major": "1", "minor": "36"}
    plural = path.rpartition("/")[2]
    if plural == "capacitybuffers":
        return 404, {"message": "the server could not find the requested resource"}
    items: list[Any] = list(OBJECTS.get(plural, ()))
    if plural == "configmaps":
        if query.get("labelSelector") == RESERVATIONS_LABEL or path == "/api/v1/namespaces/ours/configmaps":
            items = [PUBLISHED]
        elif query.get("fieldSelector") == "metadata.name=kubelet-config":
            items = [KUBELET]
    return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}


def forbidden(asked: Asked) -> Answer:
    return (403, {"message": "no"}) if asked[0].endswith("limitranges") else stored(asked)


def test_lint_reads_reservations_and_the_configuration_of_kubelets(tmp_path: Path) -> None:
    with serving(stored) as server:
        result = run_verb("lint", "--cluster", "live", "--kubeconfig", kubeconfig(tmp_path, server.url), "-o", "json")
    report = json.loads(result.stdout)
    assert {finding["rule"] for finding in report["findings"]} == {"N10", "N13", "N15"}


def test_the_doctor_reads_what_concerns_trimtab_and_no_pods(tmp_path: Path) -> None:
    with serving(stored) as server:
        client = connect_to_cluster(str(kubeconfig(tmp_path, server.url)))
        state = read_autoscaling(client, "ours")
        client.close()
    assert [finding.rule for finding in state.findings] == ["N10", "N13"]
    assert state.notes == ()
    assert not [path for path, _, _ in server.asked if path.endswith("/pods")]


def test_what_may_not_be_listed_is_named(tmp_path: Path) -> None:
    with serving(forbidden) as server:
        client = connect_to_cluster(str(kubeconfig(tmp_path, server.url)))
        state = read_autoscaling(client, "ours")
        client.close()
    assert [finding.rule for finding in state.findings] == ["N10"]
    [lint_note] = state.notes
    assert has_facts(lint_note, "may not list", "limitranges")
