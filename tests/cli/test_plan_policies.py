"""A plan offline, where policies would give evicted pods more than they ask for now: as the compactor plans."""

import json
from pathlib import Path
from typing import Any

from tests.cli.snapshots import config_map, snapshot, told, trimtab
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts

RAISE = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: raise}
spec:
  match: {namespaces: {include: [team]}}
  actions: {requests: {cpu: {from: policy, otherwise: 1500m, when: always}}}
"""
POLICY: Item = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "raise"},
    "spec": {
        "match": {"namespaces": {"include": ["team"]}},
        "actions": {"requests": {"cpu": {"from": "policy", "otherwise": "1500m", "when": "always"}}},
    },
}


def replica_set(template: bool = True) -> Item:
    spec: dict[str, Any] = {"replicas": 4}
    if template:
        container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": "500m"}}}
        spec["template"] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    status = {"replicas": 4, "readyReplicas": 4}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "team"},
        "spec": spec,
        "status": status,
    }


def four_pods(*more: Item) -> list[Item]:
    """Two nodes of two cores with two pods of half a core each: one of them could go, as they are."""
    pods = [pod(f"web-{number}", on=f"n{number % 2}", namespace="team") for number in range(4)]
    return [node("n0", cpu="2"), node("n1", cpu="2"), *pods, *more]


KEEN = ("--preset", "all=keen")


def evictions(path: Path, *more: str | Path, verb: str = "plan") -> int:
    return int(told(verb, "--cluster", path, *KEEN, *more)["evictions"])


def test_policies_of_the_snapshot_count(tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *four_pods(replica_set()))) == 2
    report = told("plan", "--cluster", snapshot(tmp_path, *four_pods(replica_set(), POLICY)), *KEEN)
    assert report["evictions"] == 0
    assert has_facts(report["notes"], "assumes the requests", "1 policy")


def test_policies_that_are_given_count_instead_of_those_of_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "raise.yaml").write_text(RAISE)
    (tmp_path / "other.yaml").write_text(RAISE.replace("[team]", "[other]"))
    plain = snapshot(tmp_path, *four_pods(replica_set()))
    assert evictions(plain, "--policies", tmp_path / "raise.yaml") == 0
    whole = snapshot(tmp_path, *four_pods(replica_set(), POLICY))
    assert evictions(whole, "--policies", tmp_path / "other.yaml") == 2


def test_a_simulation_counts_them_too(tmp_path: Path) -> None:
    path = snapshot(tmp_path, *four_pods(replica_set(), POLICY))
    assert evictions(path, verb="simulate") == 0
    assert evictions(snapshot(tmp_path, *four_pods(replica_set())), verb="simulate") == 2


def test_a_simulated_successor_holds_what_it_was_given(tmp_path: Path) -> None:
    """Six nodes of four cores with a pod each: three successors of 1.5 cores fill a node, not eight of half a core."""
    pods = [pod(f"web-{number}", on=f"n{number}", namespace="team") for number in range(6)]
    nodes = [node(f"n{number}", cpu="4") for number in range(6)]
    owner = replica_set()
    owner["spec"]["replicas"] = owner["status"]["replicas"] = owner["status"]["readyReplicas"] = 6
    report = told("simulate", "--cluster", snapshot(tmp_path, *nodes, *pods, owner, POLICY), *KEEN)
    assert report["evictions"] > 0
    for each_node in report["nodes"]:
        assert each_node["after"] is None or each_node["after"]["cpu"] <= 4000
    assert sum(node["after"]["cpu"] for node in report["nodes"] if node["after"]) == (
        1500 * report["evictions"] + 500 * (6 - report["evictions"])
    )


def test_a_snapshot_without_templates_is_told_of(tmp_path: Path) -> None:
    report = told("plan", "--cluster", snapshot(tmp_path, *four_pods(replica_set(template=False), POLICY)), *KEEN)
    assert any("no pod templates" in note for note in report["notes"])


def test_a_broken_policy_of_the_snapshot_is_left_out_and_one_that_is_given_is_a_mistake(tmp_path: Path) -> None:
    broken = {**POLICY, "spec": {"actions": {"rquests": {}}}}
    report = told("plan", "--cluster", snapshot(tmp_path, *four_pods(replica_set(), broken)), *KEEN)
    assert any(has_facts(note, "invalid policy") for note in report["notes"])
    (tmp_path / "broken.yaml").write_text(json.dumps(broken))
    plain = snapshot(tmp_path, *four_pods())
    assert trimtab("plan", "--cluster", plain, "--policies", tmp_path / "broken.yaml").exit_code == 2
    assert trimtab("plan", "--cluster", plain, "--policies", tmp_path / "none.yaml").exit_code == 2


def test_while_everything_is_paused_policies_raise_nothing(tmp_path: Path) -> None:
    ours = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "ours", "annotations": {"trimtab.dev/paused": "true"}},
    }
    mark = config_map("trimtab-state-x", {}, namespace="ours", labels={"trimtab.dev/state": "x"})
    assert evictions(snapshot(tmp_path, *four_pods(replica_set(), POLICY, ours, mark))) == 2
