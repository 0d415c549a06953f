"""`trimtab doctor` at a real installation: green, and each planted fault found by its name."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.faults import FAULTS, MUTATING, changed, codes, inside, mended, reports, seen
from tests.e2e.installed import Installed
from tests.e2e.replicas import ROOT
from tests.reasons import has_facts
from trimtab.cli.doctor.command import CheckResult, is_well
from trimtab.cluster.processes import account_name
from trimtab.installation.names import CONFIGURATION_NAME
from trimtab.kube import certificate_rotation, objects

WORKERS = ("watchdog", "compactor", "recommender")


@pytest.fixture(scope="module")
def wired(here: Installed) -> Iterator[Installed]:
    """The installation with everything around it: nodes for its pods, an autoscaler that reports, a leader each."""
    here.cluster.pool("doctor", nodes=2, cpu="8", memory="32Gi")
    with contextlib.ExitStack() as stack:
        for process in WORKERS:
            stack.enter_context(here.working(process))
        reports(here)
        here.cluster.eventually(lambda: is_well(seen(here)), within=60, what="all is well before a fault is planted")
        yield here
    with contextlib.suppress(Exception):
        inside(here, "kube-system").delete("ConfigMap", "cluster-autoscaler-status")


def doctor(here: Installed, *more: str, login: Path | None = None) -> subprocess.CompletedProcess[str]:
    kubeconfig = str(login or here.cluster.kubeconfig)
    command = [
        sys.executable,
        "-m",
        "trimtab",
        "doctor",
        "--ask-in",
        here.cluster.namespace,
        "--kubeconfig",
        kubeconfig,
    ]
    return subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


# ── all is well ──────────────────────────────────────────────────────────────────────────────────────


def test_an_installation_that_stands_is_green(wired: Installed) -> None:
    reports(wired)
    process = doctor(wired, "-o", "json")
    document = json.loads(process.stdout)
    severities = {each["check"]: each["severity"] for each in document["findings"] if each["severity"] != "ok"}
    assert severities == {"usage-source": "warn"}, "a test bed has no metrics-server"
    assert (document["well"], process.returncode) == (True, 0)


def test_strictly_a_warning_is_a_finding_and_a_check_may_be_left_out(wired: Installed) -> None:
    reports(wired)
    assert doctor(wired, "--strict").returncode == 1
    process = doctor(wired, "--strict", "--without", "usage-source")
    assert (process.returncode, has_facts(process.stdout, "skipped: usage-source")) == (0, True), process.stdout


def test_nothing_of_what_it_tried_is_stored(wired: Installed) -> None:
    doctor(wired)
    names = [result["metadata"]["name"] for result in wired.cluster.list("Pod")]
    assert not [name for name in names if name.startswith("trimtab-doctor")]
    assert objects.get_plain(wired.client, "PodPolicy", "trimtab-doctor-asks") is None


def test_who_may_not_look_is_told_which_right_is_missing_and_nothing_is_called_well(wired: Installed) -> None:
    process = doctor(wired, "-o", "json", login=wired.login_of("recommender"))
    document = json.loads(process.stdout)
    unknown = {each["check"]: each["reason"]["text"] for each in document["findings"] if each["severity"] == "unknown"}
    assert process.returncode == 1
    assert 'cannot create resource "pods"' in unknown["answers"]
    assert 'cannot create resource "subjectaccessreviews"' in unknown["rights"]
    assert (
        f'cannot get resource "secrets" in API group "" in the namespace "{wired.values.namespace}"'
        in (unknown["certificates"])
    )
    assert {"certificates", "ca-bundle", "answers", "validates", "rights", "policies"} <= set(unknown)


def test_the_rights_of_the_shipped_roles_are_enough_to_look_at_everything(wired: Installed) -> None:
    *roles, last = yaml.safe_load_all((ROOT / "deploy" / "doctor-roles.yaml").read_text(encoding="utf-8"))
    last["metadata"]["namespace"] = wired.cluster.namespace
    reports(wired)
    with contextlib.ExitStack() as stack:
        for item in (each_item for role in (*roles, last) for each_item in (role, bound(role))):
            wired.cluster.apply(item)
            namespace = item["metadata"].get("namespace")
            stack.callback(wired.cluster.delete, item["kind"], "trimtab-doctor", namespace)
        process = doctor(wired, "-o", "json", login=wired.cluster.plane.kubeconfig_for("somebody-on-call"))
    findings = json.loads(process.stdout)["findings"]
    assert [each["reason"]["text"] for each in findings if each["severity"] in ("unknown", "error")] == []


def bound(role: dict[str, Any]) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": f"{role['kind']}Binding",
        "metadata": role["metadata"],
        "roleRef": {"apiGroup": group, "kind": role["kind"], "name": "trimtab-doctor"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "somebody-on-call"}],
    }


def test_where_no_api_server_answers_it_fails(wired: Installed, tmp_path: Path) -> None:
    text = wired.cluster.kubeconfig.read_text()
    port = text.split("https://127.0.0.1:")[1].split("\n")[0].strip().strip('"')
    (tmp_path / "config").write_text(text.replace(port, "9"))
    assert doctor(wired, login=tmp_path / "config").returncode == 3


def test_rights_that_cert_manager_makes_needless_are_not_missed(wired: Installed) -> None:
    def cut(role: dict[str, Any]) -> None:
        role["rules"] = [rule for rule in role["rules"] if CONFIGURATION_NAME not in rule.get("resourceNames", ())]

    annotation = certificate_rotation.INJECTION_ANNOTATIONS[0]

    def kept_by(keeper: str | None) -> None:
        wired.cluster.patch(MUTATING, CONFIGURATION_NAME, {"metadata": {"annotations": {annotation: keeper}}})

    with mended(wired):
        changed(wired, "ClusterRole", cut, account_name("webhook"))
        wired.cluster.eventually(lambda: "permission-missing" in codes(wired), within=20)
        kept_by("trimtab-system/trimtab-webhook")
        actual_codes = codes(wired)
        kept_by(None)
    assert "permission-missing" not in actual_codes


# ── planted faults ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_name(wired: Installed, name: str) -> None:
    fault, expected = FAULTS[name]
    reports(wired)
    assert not expected & codes(wired)
    with fault(wired):
        result = wired.cluster.eventually(lambda: planted(wired, expected), what=f"{expected} found")
    assert all(each.finding.fix for each in result)
    wired.cluster.eventually(lambda: not expected & codes(wired), what=f"{expected} no more")


def planted(here: Installed, wanted: set[str]) -> list[CheckResult]:
    """Those findings, once there are all of them: an API server goes on calling whom it knew for a moment."""
    results = [each for each in seen(here) if each.finding.reason.code.name in wanted]
    return results if {each.finding.reason.code.name for each in results} == wanted else []
