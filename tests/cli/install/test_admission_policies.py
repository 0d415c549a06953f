"""What each of our accounts may do is what it does: no other process is moved by its token."""

from typing import Any

import pytest

from tests.cli.install.test_manifests import EVERYTHING, WITH_CERT_MANAGER, one
from trimtab.cluster.processes import account_name
from trimtab.compaction.drain import pool_state
from trimtab.compactor import cluster_reader, pool_state_store
from trimtab.compactor import settings as compactor_settings
from trimtab.compactor.pool_state_store import config_map_name
from trimtab.installation.installed_processes import ALWAYS_INSTALLED, find_installed_process
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import PROCESSES, InstallValues
from trimtab.recommender import sharded_configmaps
from trimtab.recommender.reservation_sources import configmap_store
from trimtab.recommender.reservations import RESERVATIONS_NAME
from trimtab.runtime import environment as read_environment


def rules_of(role: dict[str, Any]) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = role["rules"]
    return rules


@pytest.mark.parametrize("process", PROCESSES)
def test_nobody_lists_config_maps_of_other_namespaces_but_one_by_its_name(process: str) -> None:
    rules = rules_of(one("ClusterRole", account_name(process)))
    maps = [rule for rule in rules if "configmaps" in rule["resources"]]
    named = [["cluster-autoscaler-status"]] if process in ("webhook", "compactor") else []
    assert [rule.get("resourceNames") for rule in maps] == named


@pytest.mark.parametrize("process", ["watchdog", "compactor", "recommender"])
def test_a_process_may_take_no_other_process_lease(process: str) -> None:
    leases = [rule for rule in rules_of(one("Role", account_name(process))) if "leases" in rule["resources"]]
    assert [rule["resourceNames"] for rule in leases] == [[account_name(process)]]


def test_the_autoscalers_status_may_lie_elsewhere_and_the_compactor_reads_it_there_and_nowhere_else() -> None:
    values = InstallValues(autoscaler_namespace="scaling", autoscaler_status="scaler-status")
    rules = rules_of(one("ClusterRole", "trimtab-compactor", render_manifests(values)))
    assert [rule["resourceNames"] for rule in rules if "configmaps" in rule["resources"]] == [["scaler-status"]]
    settings = read_environment.read_as(
        find_installed_process("compactor").environment(values), compactor_settings.Settings
    )
    status = cluster_reader.list_sources(settings)[-1]
    assert (status.namespace, status.field_selector) == ("scaling", "metadata.name=scaler-status")


def policies_of(among: tuple[dict[str, Any], ...] = EVERYTHING) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item["spec"] for item in among if item["kind"] == "ValidatingAdmissionPolicy"}


def test_what_rights_cannot_say_of_an_account_a_policy_of_the_api_server_says() -> None:
    assert policies_of().keys() == {
        *(policy.name for process in ALWAYS_INSTALLED for policy in process.write_policies),
        "trimtab-compactor-poolstatuses",
        "trimtab-compactor-drainorders",
    }
    bound = {item["spec"]["policyName"] for item in EVERYTHING if item["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert bound == policies_of().keys()
    assert {spec["failurePolicy"] for spec in policies_of().values()} == {"Fail"}


def test_with_cert_manager_no_policy_is_needed_for_the_ca_bundle() -> None:
    assert policies_of().keys() - policies_of(WITH_CERT_MANAGER).keys() == {"trimtab-webhook-cabundle"}


def test_the_policies_stand_before_the_accounts_are_used() -> None:
    order = [item["kind"] for item in EVERYTHING]
    assert order.index("ValidatingAdmissionPolicyBinding") < order.index("Deployment")


def test_the_policies_know_the_names_and_labels_that_our_processes_write() -> None:
    expressions = {
        name: " ".join(check["expression"] for check in spec["validations"]) for name, spec in policies_of().items()
    }
    for pool in ("web", "Web_1"):
        assert config_map_name(pool).startswith("trimtab-state-")
    assert "startsWith('trimtab-state-')" in expressions["trimtab-compactor-configmaps"]
    for label in (pool_state.STATE_LABEL, pool_state_store.UNREADABLE_STATE_LABEL):
        assert f"'{label}'" in expressions["trimtab-compactor-configmaps"]
    for shelf_ in (sharded_configmaps.checkpoint_backend, sharded_configmaps.recommendation_backend):
        maps = shelf_(None, "trimtab-system")  # type: ignore[arg-type]
        assert f"startsWith('{maps.prefix}-')" in expressions["trimtab-recommender-configmaps"]
        assert f"'{maps.label}'" in expressions["trimtab-recommender-configmaps"]
    assert f"'{sharded_configmaps.DAMAGED_LABEL}'" in expressions["trimtab-recommender-configmaps"]
    store = configmap_store(None, "trimtab-system")  # type: ignore[arg-type]
    for name, label in (
        (RESERVATIONS_NAME, store.published.label),
        (f"{store.histories.prefix}-", store.histories.label),
    ):
        assert f"startsWith('{name}')" in expressions["trimtab-recommender-configmaps"]
        assert f"'{label}'" in expressions["trimtab-recommender-configmaps"]
