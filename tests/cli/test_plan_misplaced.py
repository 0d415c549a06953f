"""Each group of misplaced pods comes with a PodPolicy that `policies check` accepts."""

from pathlib import Path

import pytest
import yaml

from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import SAFE, Item, node, pod
from tests.reasons import has_facts

SPOT = {"nodepool": "cheap", "karpenter.sh/capacity-type": "spot"}
HELD = {"annotations": {SAFE: "false"}}
SCATTERED = [node(name) for name in "abcd"]
JOBS = [
    node("a", labels={"nodepool": "jobs"}),
    node("b", labels={"nodepool": "web"}),
    pod("sum-0", "a", "3", owner="Job"),
    pod("web-0", "a"),
]


@pytest.mark.parametrize(
    ("items", "kind", "match", "placement"),
    [
        (
            [*SCATTERED, *(pod(f"web-{n}", n, **HELD) for n in "abcd")],
            "scattered",
            {"annotations": {SAFE: "false"}},
            ("trimtab.dev/pool", "in", ["unmovable"]),
        ),
        (
            [*SCATTERED, *(pod(f"sum-{n}", n, owner="Job") for n in "abcd")],
            "scattered",
            {"namespaces": {"include": ["default"]}, "owners": ["CronJob", "Job"]},
            ("trimtab.dev/pool", "in", ["unmovable"]),
        ),
        (
            [*SCATTERED, *(pod(f"bare-{n}", n, owner="") for n in "abcd")],
            "scattered",
            {"namespaces": {"include": ["default"]}, "owners": ["Pod"]},
            ("trimtab.dev/pool", "in", ["unmovable"]),
        ),
        (
            [node("a", labels=SPOT), node("b"), pod("web-0", "a", **HELD)],
            "critical-on-spot",
            {"annotations": {SAFE: "false"}},
            ("karpenter.sh/capacity-type", "notIn", ["spot"]),
        ),
        (
            JOBS,
            "long-running-on-temporary",
            {"namespaces": {"include": ["default"]}, "owners": ["Deployment"]},
            ("nodepool", "notIn", ["jobs"]),
        ),
    ],
)
def test_the_policy_gathers_them_and_is_sound(
    tmp_path: Path, items: list[Item], kind: str, match: dict[str, object], placement: tuple[str, str, list[str]]
) -> None:
    (misplaced_files,) = told("plan", "--cluster", snapshot(tmp_path, *items), "--preset", "all=keen")["misplaced"]
    policy = yaml.safe_load(misplaced_files["policy"])
    label, operator, values = placement
    assert (misplaced_files["kind"], policy["spec"]["match"]) == (kind, match)
    assert policy["spec"]["actions"]["placement"]["prefer"] == [{"label": label, operator: values, "weight": 100}]
    (tmp_path / "policy.yaml").write_text(misplaced_files["policy"])
    result = trimtab("policies", "check", tmp_path / "policy.yaml")
    assert result.exit_code == 0, result.output


def test_the_policy_matches_the_pods_that_may_not_move_and_no_others_of_their_kind(tmp_path: Path) -> None:
    local = {"spec": {"volumes": [{"name": "data", "hostPath": {"path": "/data"}}]}}
    hashes = {"pod-template-hash": "5d4f"}
    pods = [pod(f"{app}-{n}", n, labels={"app": app, **hashes}, **local) for app in ("db", "cache") for n in "abcd"]
    free = [pod("web-0", "a", labels={"app": "web", **hashes})]
    cluster = snapshot(tmp_path, *SCATTERED, *pods, *free)
    (misplaced_files,) = told("plan", "--cluster", cluster, "--preset", "all=keen")["misplaced"]
    match = yaml.safe_load(misplaced_files["policy"])["spec"]["match"]
    assert match["podSelector"] == {"matchExpressions": [{"key": "app", "operator": "In", "values": ["cache", "db"]}]}
    (tmp_path / "policy.yaml").write_text(misplaced_files["policy"])
    assert trimtab("policies", "check", tmp_path / "policy.yaml").exit_code == 0


def test_pods_of_kube_system_are_named_without_a_policy_that_would_change_nothing(tmp_path: Path) -> None:
    dns = pod("dns-0", "a", namespace="kube-system", spec={"priority": 2_000_000_000})
    (misplaced_files,) = told("plan", "--cluster", snapshot(tmp_path, node("a", labels=SPOT), dns))["misplaced"]
    assert (misplaced_files["kind"], misplaced_files["policy"]) == ("critical-on-spot", "")


def test_the_table_names_them_and_prints_the_policy(tmp_path: Path) -> None:
    items = [*SCATTERED, *(pod(f"web-{n}", n, **HELD) for n in "abcd")]
    shown = trimtab("plan", "--cluster", snapshot(tmp_path, *items), "--details").stdout
    assert has_facts(shown, "4 pods", "may not be moved")
    assert "kind: PodPolicy" in shown
