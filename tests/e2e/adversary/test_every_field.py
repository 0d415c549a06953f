"""Of every kind that a token of ours may write, every field that the API server serves: added, changed and removed.

The accounts get more rights here than their roles give: update and create of the whole kind and of its status, so that
the policies are tried alone. A field counts if an administrator may change it in the same way, and the object is then
different. The policy must refuse it, unless it is one of those that the account may change. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e import real_vpa
from tests.e2e.adversary.served_fields import Object, Path, Schema, ServedKind, Variant
from tests.e2e.adversary.stored_objects import Attempted, ChangedMeanwhile, Stored, World, until_nobody_interferes
from tests.e2e.drain_orders import order
from tests.e2e.installed import Installed
from tests.e2e.ours import install_crd
from trimtab.cluster.processes import account_name
from trimtab.installation.admission_policies import render_write_policies
from trimtab.installation.installed_processes import ALWAYS_INSTALLED, INSTALLED_PROCESSES
from trimtab.installation.names import InstallValues, build_manifest
from trimtab.installation.write_policy import CREATE, UPDATE

POLICIES = tuple(policy for process in INSTALLED_PROCESSES for policy in process.write_policies)
NOT_ALWAYS_INSTALLED = tuple(
    policy for process in INSTALLED_PROCESSES if process not in ALWAYS_INSTALLED for policy in process.write_policies
)
RBAC = "rbac.authorization.k8s.io"
WITHOUT_LEAVES = {("uninstall", "configmaps")}
"""It may only delete."""
WRITTEN_ALONE = ("podpolicies/status", "deployments/scale", "verticalpodautoscalers/status")
"""Subresources with which nobody changes anything else, not even metadata."""
IDENTITY = (("metadata", "name"), ("metadata", "namespace"))
"""Which object is created is not a question of its fields: rights and other tests are about names."""
SLOW = ("deleteOptions", "preconditions")
"""The API server retries an eviction of a pod of another uid or version for ten seconds."""
TAKEN_OUT = (
    ("apiVersion",),
    ("kind",),
    *(
        ("metadata", name)
        for name in ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid")
    ),
)
"""What the API server takes out of a new object, or puts into it, before any policy sees it. The answers to the other
kinds show that; an eviction is answered with a status."""


def _attempts() -> Iterator[Attempted]:
    with_status = {"nodes", "podpolicies", "apiservices", "verticalpodautoscalers"}
    for policy in POLICIES:
        if (policy.process, policy.subject) in WITHOUT_LEAVES:
            continue
        for kind in policy.kinds:
            for operation in policy.operations:
                if operation in (CREATE, UPDATE):
                    yield Attempted(policy, kind, operation)
            if kind in with_status:
                yield Attempted(policy, f"{kind}/status", UPDATE)


@dataclass
class Tally:
    """What became of the attempts."""

    refused: int = 0
    permitted: int = 0
    let_through: list[str] = field(default_factory=list)
    refused_otherwise: list[str] = field(default_factory=list)
    never_accepted: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def world(applied: Installed) -> Iterator[World]:
    admin = Cluster(applied.cluster.kubeconfig, applied.cluster.namespace, applied.cluster.plane)
    install_crd(admin, real_vpa.definitions()[0])
    values = applied.values
    more = [
        *render_write_policies(NOT_ALWAYS_INSTALLED, values),
        *(build_manifest("v1", "ServiceAccount", account_name(name), values) for name in ("metrics-api", "uninstall")),
        build_manifest("v1", "Secret", "trimtab-metrics-api-tls", values, type="Opaque"),
    ]
    for manifest in more:
        admin.apply(manifest)
    for manifest in _more_rights(values):
        admin.apply(manifest)
    # Only the compactor writes a PoolStatus, and a DrainOrder has rules of its own; here the administrator shows what
    # the API server would accept.
    for policy in ("trimtab-compactor-poolstatuses", "trimtab-compactor-drainorders"):
        admin.delete("ValidatingAdmissionPolicyBinding", policy)
    ours = Cluster(admin.kubeconfig, applied.values.namespace, admin.plane)
    probe = order("one", name="probe", by="one")
    admin.eventually(lambda: _is_accepted(lambda: ours.create(probe, dryRun="All")), within=30)
    yield World(applied, admin)
    for manifest in (*_more_rights(values), *more):
        admin.delete(manifest["kind"], manifest["metadata"]["name"], manifest["metadata"].get("namespace"))
    admin.delete("CustomResourceDefinition", real_vpa.definitions()[0]["metadata"]["name"])


def _is_accepted(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ApiError:
        return False
    return True


def _more_rights(values: InstallValues) -> Iterator[Object]:
    for process in sorted({policy.process for policy in POLICIES}):
        name = f"adversary-{process}"
        rules = [
            {"apiGroups": [policy.group], "resources": [kind, f"{kind}/status"], "verbs": ["get", "create", "update"]}
            for policy in POLICIES
            if policy.process == process
            for kind in policy.kinds
        ]
        meta = {"name": name}
        yield {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
        subject = {"kind": "ServiceAccount", "name": account_name(process), "namespace": values.namespace}
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
        yield {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": ref,
            "subjects": [subject],
        }


def test_the_type_check_of_policies_finds_no_fault_with_ours(world: World) -> None:
    names = {policy.name for policy in POLICIES}

    def checked() -> list[Object]:
        policies = world.admin.list("ValidatingAdmissionPolicy", everywhere=True)
        items = [item for item in policies if item["metadata"]["name"] in names]
        return items if all("observedGeneration" in item.get("status", {}) for item in items) else []

    result = world.admin.eventually(checked, what="every policy checked")
    assert len(result) == len(names)
    warnings = {item["metadata"]["name"]: item["status"].get("typeChecking") for item in result}
    assert {name: warning for name, warning in warnings.items() if warning} == {}


@pytest.mark.parametrize("attempted", list(_attempts()), ids=str)
def test_a_token_changes_no_field_but_those_that_its_policy_names(world: World, attempted: Attempted) -> None:
    stored = Stored(world, attempted)
    served = stored.served_kind()
    with stored.prepared(served) as ready:
        tally = until_nobody_interferes(lambda: _try_everything(ready, served))
    result = f"counted={tally.refused + tally.permitted + len(tally.let_through)} refused={tally.refused}"
    print(
        f"RESULT {attempted} leaves: {result} permitted={tally.permitted} let_through={len(tally.let_through)}"
        f" never_accepted={len(tally.never_accepted)}"
    )
    assert (tally.let_through, tally.refused_otherwise) == ([], [])
    assert tally.refused > 0 or attempted.resource in WRITTEN_ALONE


def test_what_a_controller_changed_meanwhile_is_no_change_of_ours(world: World) -> None:
    (attempted,) = (one for one in _attempts() if str(one) == "trimtab-uninstall-nodes-nodes-update")
    stored = Stored(world, attempted)
    with stored.prepared(stored.served_kind()):
        before = Variant((), "write", stored.base())
        taints = [*before.document["spec"]["taints"], {"key": "adversary.example.com/late", "effect": "NoSchedule"}]
        world.admin.patch("Node", before.document["metadata"]["name"], {"spec": {"taints": taints}})
        with pytest.raises(ChangedMeanwhile):
            stored.attempt(stored.thief, before)
        assert not isinstance(stored.attempt(stored.thief, Variant((), "write", stored.base())), str)


def _try_everything(stored: Stored, served: ServedKind) -> Tally:
    tally = Tally()
    base = stored.base()
    unchanged = stored.attempt(stored.world.admin, Variant((), "write", base))
    assert not isinstance(unchanged, str), unchanged
    permitted = stored.attempt(stored.thief, Variant((), "write", base))
    assert not isinstance(permitted, str), permitted
    leaves = [leaf for leaf in served.leaves() if leaf[0] not in IDENTITY and leaf[0][:2] != SLOW]

    def tried(leaf: tuple[Path, Schema]) -> list[tuple[Variant, str]]:
        return list(_try_leaf(stored, served, base, stored.content(unchanged), leaf))

    with ThreadPoolExecutor(6) as pool:
        for (path, _), outcomes in zip(leaves, pool.map(tried, leaves), strict=True):
            if not outcomes:
                tally.never_accepted.append(".".join(map(str, path)))
            for variant, outcome in outcomes:
                match outcome:
                    case "refused":
                        tally.refused += 1
                    case "permitted":
                        tally.permitted += 1
                    case "let through":
                        tally.let_through.append(str(variant))
                    case _:
                        tally.refused_otherwise.append(f"{variant}: {outcome}")
    return tally


def _try_leaf(
    stored: Stored, served: ServedKind, base: Object, unchanged: Object, leaf: tuple[Path, Schema]
) -> Iterator[tuple[Variant, str]]:
    done = set[tuple[str, Path]]()
    for variant in served.variants(base, *leaf):
        if (variant.how, variant.path) in done:
            continue
        accepted = stored.attempt(stored.world.admin, variant)
        if isinstance(accepted, str):
            continue
        done.add((variant.how, variant.path))
        is_ignored = stored.content(accepted) == unchanged
        if stored.attempted.plural == "pods/eviction":  # answered with a status
            is_ignored = variant.path in TAKEN_OUT
        if is_ignored:
            continue  # the API server ignores the field here
        answer = stored.attempt(stored.thief, variant)
        if stored.may_change(variant.path):
            yield variant, "permitted" if not isinstance(answer, str) or stored.policy.conditions else answer
        elif not isinstance(answer, str):
            yield variant, "refused" if stored.leaves_unchanged(answer, unchanged) else "let through"
        else:
            yield variant, "refused" if f"'{stored.policy.name}'" in answer else answer
