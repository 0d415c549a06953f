"""`doctor` finds what policies, pools and processes name and the cluster does not have."""

from dataclasses import replace

from tests.cli.doctor.worlds import HIDDEN, WELL, bad
from tests.cluster_of import node
from trimtab.cli.doctor.check_references import find_empty_pools
from trimtab.cli.doctor.references import PROTECTING_KINDS, ReferencesState, find_dangling
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.reason import Code
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document

assert isinstance(WELL.references, ReferencesState)
REFERENCES = WELL.references
MISSING = Code("test-missing", "means", "todo")


def snapshot(*items: object):
    return build_snapshot([Document(file="x", index=n, value=item) for n, item in enumerate(items)]).snapshot


def policy(name: str, enabled: bool = True, **actions: object) -> dict[str, object]:
    return {
        "apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": name},
        "spec": {"enabled": enabled, "actions": actions},
    }  # fmt: skip


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
    found = find_dangling([sandbox, off, {"kind": "PodPolicy", "spec": 3}], snapshot(node("n1")))
    assert [(name, reason.sentence) for name, reason in found] == [
        ("sandbox", "RuntimeClass gvisor does not exist"), ("sandbox", "PriorityClass gold does not exist"),
    ]  # fmt: skip
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
    assert find_dangling([sandbox], snapshot(node("n1"), runtime_class, priority_class)) == ()


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
