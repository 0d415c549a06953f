"""The threat model names every right of every role, and none that no role has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trimtab.command.install.manifests import manifests
from trimtab.command.install.names import PROCESSES, account
from trimtab.command.install.removal import removal
from trimtab.command.install.values import Values

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
NAMESPACE = Values().namespace
Right = tuple[str, str, str, str]
"""(where, verb, resource.group, name or nothing)"""


def granted(process: str) -> set[Right]:
    """What the rendered roles of a process say."""
    return {
        ("own namespace" if role["kind"] == "Role" else "cluster", verb, _called(resource, group), name)
        for role in (*manifests(Values()), *removal(Values()))
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] == account(process)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def _called(resource: str, group: str) -> str:
    plain, slash, sub = resource.partition("/")
    return f"{plain}.{group}{slash}{sub}" if group else resource


def told(process: str) -> set[Right]:
    """What the page says of them."""
    section = PAGE.partition(f"### `{account(process)}`\n")[2].partition("\n#")[0]
    return {right for line in section.splitlines() if line.startswith("| ") for right in _rights(line)}


def _rights(line: str) -> Iterator[Right]:
    where, verbs, what, _ = [cell.strip() for cell in line.strip("|").split("|")]
    resources, _, names = what.partition(" named ")
    for verb in verbs.split(", "):
        for resource in re.findall("`([^`]+)`", resources):
            for name in re.findall("`([^`]+)`", names) or [""]:
                yield where, verb, resource, name


@pytest.mark.parametrize("process", [*PROCESSES, "uninstall"])
def test_the_page_and_the_roles_say_the_same(process: str) -> None:
    assert granted(process) - told(process) == set(), "rights the page does not name"
    assert told(process) - granted(process) == set(), "rights that nobody has"


@pytest.mark.parametrize("values", [Values(), Values(cert_manager=True)])
def test_no_role_has_a_wildcard_or_what_the_page_says_no_role_has(values: Values) -> None:
    for role in manifests(values):
        for rule in role.get("rules", []) if role["kind"] in ("Role", "ClusterRole") else []:
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            assert not {"impersonate", "bind", "escalate"} & {*rule["verbs"]}
            assert not {"serviceaccounts/token", "roles", "clusterroles"} & {*rule["resources"]}
            assert "pods" not in rule["resources"] or not {"create", "update", "patch"} & {*rule["verbs"]}
            assert "secrets" not in rule["resources"] or rule.get("resourceNames") == ["trimtab-webhook-tls"]
            assert role["kind"] == "Role" or "secrets" not in rule["resources"]


def test_with_cert_manager_the_webhook_has_neither_named_right() -> None:
    roles = [one for one in manifests(Values(cert_manager=True)) if one["kind"] in ("Role", "ClusterRole")]
    assert not [rule for role in roles for rule in role["rules"] if "resourceNames" in rule]


def test_a_new_right_is_noticed() -> None:
    row = "| cluster | get, patch | `deployments.apps/scale` `pods` named `x` | nothing |"
    assert set(_rights(row)) == {
        ("cluster", verb, resource, "x") for verb in ("get", "patch") for resource in ("deployments.apps/scale", "pods")
    }
