"""The threat model names every right of every role, and none that no role has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.docs.shared_queues import SHARED
from tests.docs.threats import WHAT, WHO
from trimtab.cli.install.cleanup import render_uninstall_job
from trimtab.cluster.processes import METRICS_API, account_name
from trimtab.installation.installed_processes import render_uninstall_policies
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import PROCESSES, InstallValues, Manifest
from trimtab.installation.processes.captures import CAPTURE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
NAMESPACE = InstallValues().namespace
WITH_METRICS = InstallValues(metrics_api=True)
WITH_CAPTURES = InstallValues(capture_claim="captures")
OPTIONS = {
    "--parameter-namespace": InstallValues(parameter_namespaces=("shop",)),
    "--demote-groups": InstallValues(demote_groups=True),
    "--scale-namespace": InstallValues(scale_namespaces=("shop",)),
    "--vpa-recommender": InstallValues(vpa_recommender=True),
}
EVERY_OPTION = InstallValues(
    metrics_api=True,
    parameter_namespaces=("shop",),
    demote_groups=True,
    scale_namespaces=("shop",),
    vpa_recommender=True,
    capture_claim="captures",
)
ACTORS = "Actors"
OUR_SECRETS = [
    [f"trimtab-{name}"] for name in ("webhook-tls", "webhook-signing", "compactor-signing", "metrics-api-tls")
]
Right = tuple[str, str, str, str]
"""(where, verb, resource.group, name or nothing)"""


def granted(process: str) -> set[Right]:
    """What the rendered roles of a process say."""
    values = {METRICS_API.name: WITH_METRICS, CAPTURE: WITH_CAPTURES}.get(process, InstallValues())
    return {
        right
        for role in (*render_manifests(values), *render_uninstall_job(values))
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] == account_name(process)
        for right in _rights_of_role(role)
    }


def _rights_of_role(role: Manifest) -> Iterator[Right]:
    yield from (
        ("own namespace" if role["kind"] == "Role" else "cluster", verb, _called(resource, group), name)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    )


def _called(resource: str, group: str) -> str:
    plain, slash, sub = resource.partition("/")
    return f"{plain}.{group}{slash}{sub}" if group else resource


def told(process: str) -> set[Right]:
    """What the page says of them."""
    section = PAGE.partition(f"### `{account_name(process)}`\n")[2].partition("\n#")[0]
    return {right for line in section.splitlines() if line.startswith("| ") for right in _rights(line)}


def _rights(line: str) -> Iterator[Right]:
    where, verbs, what, _ = [cell.strip() for cell in line.strip("|").split("|")]
    resources, _, names = what.partition(" named ")
    for verb in verbs.split(", "):
        for resource in re.findall("`([^`]+)`", resources):
            for name in re.findall("`([^`]+)`", names) or [""]:
                yield where, verb, resource, name


@pytest.mark.parametrize("process", [*PROCESSES, METRICS_API.name, CAPTURE, "uninstall"])
def test_the_page_and_the_roles_say_the_same(process: str) -> None:
    assert granted(process) - told(process) == set(), "rights the page does not name"
    assert told(process) - granted(process) == set(), "rights that nobody has"


@pytest.mark.parametrize("option", OPTIONS)
def test_the_page_and_the_roles_of_an_option_say_the_same(option: str) -> None:
    usual = {(role["kind"], role["metadata"]["name"]) for role in render_manifests(InstallValues())}
    added = {
        right[1:]
        for role in render_manifests(OPTIONS[option])
        if role["kind"] in ("Role", "ClusterRole") and (role["kind"], role["metadata"]["name"]) not in usual
        for right in _rights_of_role(role)
    }
    section = PAGE.partition("### Rights of options\n")[2].partition("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith(f"| `{option}` | ")]
    messages = {right[1:] for line in lines for right in _rights(line.removeprefix(f"| `{option}` "))}
    assert messages == added


@pytest.mark.parametrize("values", [InstallValues(), InstallValues(cert_manager=True), EVERY_OPTION])
def test_no_role_has_a_wildcard_or_what_the_page_says_no_role_has(values: InstallValues) -> None:
    for role in render_manifests(values):
        for rule in role.get("rules", []) if role["kind"] in ("Role", "ClusterRole") else []:
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            assert not {"impersonate", "bind", "escalate"} & {*rule["verbs"]}
            assert not {"serviceaccounts/token", "roles", "clusterroles"} & {*rule["resources"]}
            assert "pods" not in rule["resources"] or not {"create", "update", "patch"} & {*rule["verbs"]}
            assert "secrets" not in rule["resources"] or rule.get("resourceNames") in OUR_SECRETS
            assert role["kind"] == "Role" or "secrets" not in rule["resources"]


def test_with_cert_manager_the_webhook_has_neither_named_right() -> None:
    roles = [
        one for one in render_manifests(InstallValues(cert_manager=True)) if one["kind"] in ("Role", "ClusterRole")
    ]
    named = {name for role in roles for rule in role["rules"] for name in rule.get("resourceNames", ())}
    assert not named & {"trimtab", "trimtab-webhook-tls"}


def test_a_new_right_is_noticed() -> None:
    row = "| cluster | get, patch | `deployments.apps/scale` `pods` named `x` | nothing |"
    assert set(_rights(row)) == {
        ("cluster", verb, resource, "x") for verb in ("get", "patch") for resource in ("deployments.apps/scale", "pods")
    }


def rows(heading: str) -> list[list[str]]:
    """The cells of each line of the table under a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def begins(name: str, names: Iterable[str]) -> str:
    """The one of these that the name begins with."""
    [result] = [one for one in names if re.match(rf"{re.escape(one)}(?!\w)", name)]
    return result


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    return bool(name) and file.exists() and f"\ndef {name}(" in file.read_text(encoding="utf-8")


def test_each_thing_that_somebody_must_not_get_is_tried_by_a_test() -> None:
    messages = {begins(who, WHO): [item.strip() for item in must_not.split(";")] for who, _, must_not in rows(ACTORS)}
    assert messages == {who: list(items) for who, items in WHO.items()}


def test_each_threat_has_tests_of_what_bounds_it() -> None:
    assert [begins(threat, WHAT) for threat, _, _ in rows("Threats and mitigations")] == list(WHAT)


def test_the_tests_that_hold_the_threat_model_are_there() -> None:
    named = {test for result in (*WHO.values(), WHAT) for tests in result.values() for test in tests}
    assert [test for test in sorted(named) if not exists(test)] == []
    assert all(tests for result in (*WHO.values(), WHAT) for tests in result.values())


def test_each_thing_that_namespaces_share_has_a_limit_that_is_tested_or_a_reason() -> None:
    assert [shared for shared, _, _ in rows("What namespaces share")] == list(SHARED)
    assert [shared for shared, law in SHARED.items() if not (law.tests or law.reason)] == []
    assert [test for law in SHARED.values() for test in law.tests if not exists(test)] == []


def test_what_a_right_cannot_say_is_what_is_installed() -> None:
    messages = {name.split("`")[1] for name, _ in rows("What RBAC cannot express")}
    assert messages == {
        item["metadata"]["name"]
        for item in (*render_manifests(EVERY_OPTION), *render_uninstall_policies(EVERY_OPTION))
        if item["kind"] == "ValidatingAdmissionPolicy"
    }
