"""Every permission to write has a policy that says what may change, or a reason for none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trimtab.cli.install.cleanup import render_uninstall_job
from trimtab.cluster.processes import account_name
from trimtab.installation.installed_processes import INSTALLED_PROCESSES
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues, Manifest
from trimtab.installation.permitted_changes import EachEntry, OwnEntries, created_cel, unchanged_cel
from trimtab.installation.write_policy import OPERATIONS, Place, UnrestrictedWrite, WritePolicy

POLICIES = tuple(policy for process in INSTALLED_PROCESSES for policy in process.write_policies)
UNRESTRICTED_WRITES = tuple(write for process in INSTALLED_PROCESSES for write in process.unrestricted_writes)
EVERY_OPTION = InstallValues(
    scale_namespaces=("shop",),
    resize=True,
    parameter_namespaces=("shop",),
    demote_groups=True,
    metrics_api=True,
    vpa_recommender=True,
)
MANIFESTS = (*render_manifests(EVERY_OPTION), *render_uninstall_job(EVERY_OPTION))
Write = tuple[str, str, str, str, Place]
"""(process, group, resource, operation, place)"""


def writes() -> set[Write]:
    """Every write that a rendered role permits, by the account to which it is bound."""
    roles = {_place(item): item for item in MANIFESTS if item["kind"] in ("Role", "ClusterRole")}
    return {
        (subject["name"].removeprefix("trimtab-"), group, resource, operation, _namespaces_of(binding))
        for binding in MANIFESTS
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in binding["subjects"]
        for group, resource, operation in _permitted(roles.get(_place(binding)))
    }


def _namespaces_of(binding: Manifest) -> Place:
    if binding["kind"] == "ClusterRoleBinding":
        return Place.EVERYWHERE
    is_own = binding["metadata"]["namespace"] == EVERY_OPTION.namespace
    return Place.OWN_NAMESPACE if is_own else Place.OTHER_NAMESPACES


def _place(item: Manifest) -> tuple[str, str, str]:
    reference = item.get("roleRef", item)
    name = reference.get("name") or reference["metadata"]["name"]
    namespace = item["metadata"].get("namespace", "") if reference["kind"] == "Role" else ""
    return reference["kind"], name, namespace


def _permitted(role: Manifest | None) -> Iterator[tuple[str, str, str]]:
    reads = ("get", "list", "watch")
    for rule in (role or {}).get("rules", ()):
        for verb in rule["verbs"]:
            operations = () if verb in reads else OPERATIONS[verb]
            yield from ((g, r, o) for g in rule["apiGroups"] for r in rule["resources"] for o in operations)


def find_restriction(
    process: str, group: str, resource: str, operation: str, place: Place
) -> WritePolicy | UnrestrictedWrite | None:
    """The policy that restricts a kind of write, or the reason for none; None if there is neither."""
    for policy in POLICIES:
        if policy.covers(process, group, resource, operation, place):
            return policy
    for write in UNRESTRICTED_WRITES:
        if (process, group, resource, operation) == (write.process, write.group, write.resource, write.operation):
            return write
    return None


def test_every_permission_to_write_has_a_policy_or_a_reason_for_none() -> None:
    write_policies = {write: find_restriction(*write) for write in writes()}
    assert len(write_policies) > 35
    assert [write for write, restriction in write_policies.items() if restriction is None] == []


def test_a_new_permission_without_a_policy_is_noticed() -> None:
    anywhere = Place.EVERYWHERE
    assert find_restriction("compactor", "", "pods", "DELETE", anywhere) is None
    assert find_restriction("compactor", "", "nodes/status", "UPDATE", anywhere) is not None
    assert find_restriction("webhook", "", "nodes", "UPDATE", anywhere) is None
    assert find_restriction("compactor", "", "configmaps", "CREATE", anywhere) is None


@pytest.mark.parametrize(
    "write", UNRESTRICTED_WRITES, ids=lambda write: f"{write.process}-{write.resource}-{write.operation}"
)
def test_a_reason_for_no_policy_belongs_to_a_permission(write: UnrestrictedWrite) -> None:
    permitted = {permission[:4] for permission in writes()}
    assert (write.process, write.group, write.resource, write.operation) in permitted


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_belongs_to_a_permission(policy: WritePolicy) -> None:
    assert any(policy.covers(*write) for write in writes())


def test_two_policies_have_no_common_name() -> None:
    assert len({policy.name for policy in POLICIES}) == len(POLICIES)


def test_the_uninstall_account_is_the_one_of_the_job() -> None:
    names = {item["metadata"]["name"] for item in MANIFESTS if item["kind"] == "ServiceAccount"}
    assert {account_name(policy.process) for policy in POLICIES} <= names


def test_an_update_compares_everything_but_the_named_field() -> None:
    now, was = "dyn(object)[?'spec'].orValue({})", "dyn(oldObject)[?'spec'].orValue({})"
    expression = unchanged_cel([("spec", "caBundle")])
    assert "dyn(oldObject).all(k0, k0 in ['metadata', 'spec'] || k0 in dyn(object))" in expression
    assert f"{now}.all(k1, k1 in ['caBundle'] || (k1 in {was} && {now}[k1] == {was}[k1]))" in expression
    assert "[?'metadata'].orValue({}).all(k1, k1 in ['generation', 'managedFields', 'resourceVersion'] ||" in expression


def test_entries_of_a_list_stay_in_order() -> None:
    each = unchanged_cel([("webhooks", EachEntry("name"), "caBundle")])
    assert "dyn(object)[?'webhooks'].orValue([]).map(e1, e1.name) == " in each
    own = unchanged_cel([("spec", "taints", OwnEntries("key", ("a", "b")))])
    assert "[?'taints'].orValue([]).filter(e2, !(e2.key in ['a', 'b'])) == " in own


def test_a_new_object_has_no_owner_and_no_generated_name() -> None:
    expression = created_cel([("data",)])
    assert "'name'" in expression
    assert "ownerReferences" not in expression
    assert "generateName" not in expression
