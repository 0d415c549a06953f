"""`doctor` finds what policies, pools and processes name and the cluster does not have."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.cli.doctor.worlds import HIDDEN, WELL, bad
from tests.cluster_of import node
from tests.reasons import assert_reason, has_facts
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Code
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.diagnosis.check_references import find_empty_pools
from trimtab.diagnosis.references import (
    PROTECTING_KINDS,
    ReferencesState,
    find_dangling,
    find_missing_resize_permissions,
    load_policies,
)

assert isinstance(WELL.references, ReferencesState)
REFERENCES = WELL.references
MISSING = Code("test-missing", "means", "todo")


def snapshot(*items: object):
    return build_snapshot([Document(file="x", index=n, value=item) for n, item in enumerate(items)]).snapshot


def policy(name: str, enabled: bool = True, **actions: object) -> dict[str, object]:
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "PodPolicy",
        "metadata": {"name": name},
        "spec": {"enabled": enabled, "actions": actions},
    }


def test_a_cluster_that_is_well_has_what_everything_names() -> None:
    assert bad() == {}


def test_a_policy_that_names_a_class_that_does_not_exist_is_a_warning() -> None:
    state = replace(REFERENCES, dangling=(("sandbox", MISSING("RuntimeClass gvisor does not exist")),))
    assert bad(references=state) == {"policy-names-what-is-missing": "warn"}


def test_what_policies_in_force_name_is_looked_for_in_the_cluster() -> None:
    sandbox, off = (
        policy(name, enabled, runtimeClass={"name": "gvisor"}, priorityClass={"name": "gold"})
        for name, enabled in (("sandbox", True), ("off", False))
    )
    policies = load_policies([sandbox, off, {"kind": "PodPolicy", "spec": 3}])
    dangling = find_dangling(policies, snapshot(node("n1")))
    assert [name for name, _ in dangling] == ["sandbox", "sandbox"]
    (_, runtime_class_reason), (_, priority_class_reason) = dangling
    assert_reason(runtime_class_reason, "runtimeclass-not-found", kind="RuntimeClass gvisor")
    assert_reason(priority_class_reason, "priorityclass-not-found", kind="PriorityClass gold")
    runtime_class = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "gvisor"},
        "handler": "x",
    }
    priority_class = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "gold"},
        "value": 1,
    }
    assert find_dangling(load_policies([sandbox]), snapshot(node("n1"), runtime_class, priority_class)) == ()


def test_a_pool_whose_name_no_node_has_is_a_warning() -> None:
    assert bad(pools=PoolReading((Pool(name="wbe"),))) == {"pool-without-nodes": "warn"}
    assert bad(pools=PoolReading((Pool(name="wbe", enabled=False),))) == {}
    assert find_empty_pools((Pool(name="wbe"), Pool(name="all", everything=True)), REFERENCES.nodes or ()) == ["wbe"]


def test_processes_with_different_images_are_a_warning() -> None:
    state = replace(REFERENCES, images={**REFERENCES.images, "watchdog": "trimtab:0.0.9"})
    assert bad(references=state) == {"processes-of-different-versions": "warn"}


def test_a_budget_or_a_network_policy_that_was_deleted_is_a_warning() -> None:
    for kind in PROTECTING_KINDS:
        left = REFERENCES.protecting[kind] - {"trimtab-webhook"}
        state = replace(REFERENCES, protecting={**REFERENCES.protecting, kind: left})
        assert bad(references=state) == {"process-without-protection": "warn"}


def test_an_installation_without_network_policies_is_well() -> None:
    assert bad(references=replace(REFERENCES, protecting={**REFERENCES.protecting, "NetworkPolicy": frozenset()})) == {}


def test_what_cannot_be_read_is_unknown_and_not_well() -> None:
    assert bad(references=HIDDEN) == {"not-checked": "unknown"}


MISSING_RIGHT = replace(REFERENCES, resizing=("sizes",), missing_resize_permissions=("patch pods/resize",))
ACTS = PoolReading((Pool(name="web", dry_run=False),))


def test_a_policy_that_resizes_without_the_permission_is_a_warning() -> None:
    assert bad(references=MISSING_RIGHT, pools=ACTS) == {"resize-permission-missing": "warn"}
    assert bad(references=MISSING_RIGHT, pools=HIDDEN)["resize-permission-missing"] == "warn"
    assert bad(references=replace(REFERENCES, resizing=("sizes",)), pools=ACTS) == {}


def test_a_cluster_that_is_too_old_to_resize_is_a_warning() -> None:
    assert bad(references=MISSING_RIGHT, pools=ACTS, version=(1, 32))["resize-not-supported"] == "warn"


@pytest.mark.parametrize("pool", [Pool(name="web"), Pool(name="web", dry_run=False, resizes_per_hour=0)])
def test_where_no_pool_resizes_no_permission_is_needed(pool: Pool) -> None:
    assert bad(references=MISSING_RIGHT, pools=PoolReading((pool,))) == {}


def test_the_permission_to_resize_is_asked_for_the_compactors_account() -> None:
    requests: list[str] = []

    def review(reviews: Sequence[Mapping[str, Any]]) -> list[bool]:
        requests.extend(each["spec"]["user"] for each in reviews)
        return [each["spec"]["resourceAttributes"].get("subresource") != "resize" for each in reviews]

    [right] = find_missing_resize_permissions("trimtab-system", review)
    assert has_facts(right, "patch pods/resize", "running: resize")
    assert set(requests) == {"system:serviceaccount:trimtab-system:trimtab-compactor"}
