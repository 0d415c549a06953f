"""`trimtab policies rollout`: the owners that a share includes, and when each of the others joins."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.report_runs import read_report, run_verb
from tests.reasons import has_facts
from trimtab.cluster.api.pod import Pod
from trimtab.policy.load import load_policies
from trimtab.policy.match import in_rollout
from trimtab.policy.pod_context import PodContext

POLICY = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "first"},
    "spec": {
        "rollout": "50%",
        "match": {"namespaces": {"include": ["team-*"]}},
        "actions": {"limits": {"cpu": "remove"}},
    },
}


def pods(namespace: str, owner: str, count: int, phase: str = "Running") -> list[dict[str, Any]]:
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": owner, "controller": True}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{owner}-{n}",
                "namespace": namespace,
                "labels": {"app": owner},
                "ownerReferences": [reference],
            },
            "spec": {"containers": [{"name": "main", "image": "x"}]},
            "status": {"phase": phase},
        }
        for n in range(count)
    ]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    items: list[dict[str, Any]] = [POLICY]
    items += [pod for number in range(40) for pod in pods("team-a", f"app{number}", 2)]
    items += pods("other", "elsewhere", 1) + pods("team-b", "done", 1, phase="Succeeded")
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(items))
    return path


def test_the_owners_that_are_included_are_those_that_the_webhook_would_include(cluster: Path) -> None:
    report = read_report("policies", "rollout", "first", "--cluster", cluster)
    [policy] = load_policies([("p", yaml.safe_dump(POLICY).encode())]).policies.all
    assert (report["policy"], report["rollout"], len(report["owners"])) == ("first", 50, 40)
    for owner in report["owners"]:
        [item, _] = pods(owner["namespace"], owner["owner"].partition("/")[2], 2)
        metadata = {"name": "x", "ownerReferences": item["metadata"]["ownerReferences"]}
        subject = PodContext(pod=pod_of(metadata), namespace=owner["namespace"])
        assert owner["isIncluded"] is in_rollout(policy, subject)
        assert owner["pods"] == 2
    assert 8 < sum(owner["isIncluded"] for owner in report["owners"]) < 32


def pod_of(metadata: dict[str, Any]) -> Pod:
    import msgspec

    return msgspec.convert({"metadata": metadata, "spec": {"containers": []}}, Pod)


def test_each_owner_joins_where_it_says_and_stays(cluster: Path) -> None:
    def included(percent: int) -> set[str]:
        report = read_report("policies", "rollout", "first", "--cluster", cluster, "--at", str(percent))
        return {owner["owner"] for owner in report["owners"] if owner["isIncluded"]}

    joins = {
        owner["owner"]: owner["joinsAt"]
        for owner in read_report("policies", "rollout", "first", "--cluster", cluster)["owners"]
    }
    assert included(0) == set()
    assert included(100) == set(joins)
    assert included(30) == {owner for owner, at in joins.items() if at <= 30}
    assert included(30) <= included(60)


def test_a_namespace_or_label_can_be_asked_for(cluster: Path) -> None:
    report = read_report(
        "policies", "rollout", "first", "--cluster", cluster, "-n", "team-a", "-l", "app in (app1,app2)"
    )
    assert {owner["owner"] for owner in report["owners"]} == {"StatefulSet/app1", "StatefulSet/app2"}


def test_a_table_says_how_many_and_a_wrong_name_which_there_are(cluster: Path) -> None:
    table = run_verb("policies", "rollout", "first", "--cluster", cluster, "--at", "100").stdout.splitlines()
    assert has_facts(table[0], "policy first", "rollout of 100%", "40 of 40 owners")
    assert [line.split() for line in table if line][1][:2] == ["NAMESPACE", "OWNER"]
    names = run_verb("policies", "rollout", "first", "--cluster", cluster, "--at", "0", "-o", "name")
    assert (names.exit_code, names.stdout) == (0, "")
    wrong = run_verb("policies", "rollout", "frist", "--cluster", cluster)
    assert wrong.exit_code == 2
    assert "did you mean 'first'?" in wrong.output
