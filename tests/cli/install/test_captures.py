"""The CronJob of captures: off by default, and an account that may list what a capture has, and nothing else."""

from typing import Any

import pytest

from tests.cli.snapshots import trimtab
from trimtab.inputs.live_cluster import WITH_POLICIES
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues
from trimtab.installation.processes.captures import PROCESS, render_captures
from trimtab.kube.resources import list_sources

VALUES = InstallValues(namespace="ours", capture_claim="captures")


@pytest.fixture(scope="module")
def manifests() -> dict[str, dict[str, Any]]:
    """Kind → the manifest of the captures."""
    return {item["kind"]: item for item in render_captures(VALUES)}


def test_it_is_not_installed_unless_a_volume_is_named() -> None:
    of_captures = [item for item in render_manifests(InstallValues()) if "capture" in item["metadata"]["name"]]
    assert of_captures == []
    kinds = {item["kind"] for item in render_manifests(VALUES) if item["metadata"]["name"] == "trimtab-capture"}
    assert kinds == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "CronJob"}


def test_the_account_may_list_exactly_what_the_command_lists() -> None:
    sources = list_sources(WITH_POLICIES, "ours")
    granted = {
        (rule.group, resource, place)
        for rules, place in ((PROCESS.cluster_rules, ""), (PROCESS.namespace_rules, "ours"))
        for rule in rules
        for resource in rule.resources
    }
    listings = {(one.group_version.rpartition("/")[0], one.plural, one.namespace) for one in sources}
    assert granted == listings
    verbs = {verb for rule in (*PROCESS.cluster_rules, *PROCESS.namespace_rules) for verb in rule.verbs}
    assert verbs == {"list"}
    assert not {resource for _, resource, _ in granted} & {"secrets", "events"}


def test_config_maps_are_listed_in_its_own_namespace_only() -> None:
    assert not [rule for rule in PROCESS.cluster_rules if "configmaps" in rule.resources]
    assert [rule.resources for rule in PROCESS.namespace_rules] == [("configmaps",)]


def test_a_day_is_captured_and_the_next_job_takes_over(manifests: dict[str, dict[str, Any]]) -> None:
    spec = manifests["CronJob"]["spec"]
    assert spec["schedule"].split() == ["0", "0", "*", "*", "*"]
    assert (spec["timeZone"], spec["concurrencyPolicy"]) == ("Etc/UTC", "Replace")
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["volumes"] == [{"name": "captures", "persistentVolumeClaim": {"claimName": "captures"}}]
    assert container["args"][:3] == ["capture", "--every=5m", "--for=1d"]
    assert "--delete-after=14d" in container["args"]
    assert "--config-maps-in=ours" in container["args"]


def test_its_pod_is_restricted(manifests: dict[str, dict[str, Any]]) -> None:
    pod = manifests["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_words_of_the_container_are_a_command_that_exists(manifests: dict[str, dict[str, Any]]) -> None:
    [container] = manifests["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    result = trimtab(*container["args"], "--kubeconfig", "/nonexistent/kubeconfig")
    assert "No such option" not in result.output
    assert result.exit_code != 0
