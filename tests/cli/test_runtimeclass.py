"""`trimtab runtimeclass` as its users call it."""

import json
from pathlib import Path

import yaml

from tests.cli.test_admit import trimtab
from tests.cli.worlds import write
from tests.reasons import has_facts

CLASS = """\
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata-fc
overhead: {podFixed: {cpu: 250m, memory: 64Mi}}
scheduling: {nodeSelector: {sandbox: kata}}
"""


def world(folder: Path, pods: int = 6) -> tuple[str | Path, ...]:
    """A class, its pods, and what their kubelet says: 100m and 80Mi beside the containers."""
    manifests = [
        CLASS,
        *(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"p{n}", "namespace": "shop"},
                    "spec": {
                        "runtimeClassName": "kata",
                        "overhead": {"cpu": "250m", "memory": "64Mi"},
                        "containers": [{"name": "app", "image": "x"}],
                    },
                }
            )
            for n in range(pods)
        ),
    ]

    def used(cores: float, mebibytes: int) -> dict[str, object]:
        return {"cpu": {"usageNanoCores": int(cores * 1e9)}, "memory": {"workingSetBytes": mebibytes << 20}}

    summary = {
        "pods": [
            {
                "podRef": {"name": f"p{n}", "namespace": "shop"},
                **used(0.6, 180),
                "containers": [{"name": "app", **used(0.3, 60)}, {"name": "proxy", **used(0.2, 40)}],
            }
            for n in range(pods)
        ]
    }
    other = {
        "podRef": {"name": "other", "namespace": "shop"},
        **used(9, 900),
        "containers": [{"name": "a", **used(1, 1)}],
    }
    summary["pods"].append(other)
    path = folder / "node.json"
    path.write_text(json.dumps(summary))
    return "--cluster", write(folder, "---\n".join(manifests)), "--summary", path


def test_a_class_is_measured_by_what_its_pods_use_beside_their_containers(tmp_path: Path) -> None:
    result = trimtab("runtimeclass", "measure", *world(tmp_path), "-o", "json")
    (row,) = json.loads(result.stdout)["classes"]
    assert (row["pods"], row["measured"]) == (6, {"cpu": "115m", "memory": "92Mi"})


def test_too_few_pods_are_said(tmp_path: Path) -> None:
    assert has_facts(trimtab("runtimeclass", "measure", *world(tmp_path, 2)).stdout, "have 2", "need 5 pods")
    assert trimtab("runtimeclass", "render", "kata", *world(tmp_path, 2)).exit_code == 2


def test_the_class_is_rendered_with_the_larger_overhead_until_pods_are_made_again(tmp_path: Path) -> None:
    cluster_world = world(tmp_path)
    result = trimtab("runtimeclass", "render", "kata", *cluster_world)
    rendered = yaml.safe_load(result.stdout)
    assert rendered["overhead"] == {"podFixed": {"cpu": "250m", "memory": "92Mi"}}
    assert (rendered["handler"], rendered["scheduling"]) == ("kata-fc", {"nodeSelector": {"sandbox": "kata"}})
    assert has_facts(result.stderr, "6 running pods", "different overhead", "RuntimeClass kata")
    lower = yaml.safe_load(trimtab("runtimeclass", "render", "kata", *cluster_world, "--lower").stdout)
    assert lower["overhead"] == {"podFixed": {"cpu": "115m", "memory": "92Mi"}}


def test_a_class_that_is_not_there_and_a_damaged_summary_are_asked_wrongly(tmp_path: Path) -> None:
    cluster_world = world(tmp_path)
    assert trimtab("runtimeclass", "render", "gvisor", *cluster_world).exit_code == 2
    (tmp_path / "node.json").write_text("{")
    result = trimtab("runtimeclass", "measure", *cluster_world)
    assert result.exit_code == 2
    assert "a kubelet's summary" in result.stderr


def test_pods_that_use_more_than_request_and_overhead_are_named_and_why_no_node_takes_them(tmp_path: Path) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n"
    cluster_world = world(tmp_path)
    Path(cluster_world[1]).write_text(Path(cluster_world[1]).read_text() + "---\n" + node)
    (row,) = json.loads(trimtab("runtimeclass", "measure", *cluster_world, "-o", "json").stdout)["classes"]
    assert (len(row["over"]), row["over"][0], row["noNodes"]) == (6, "shop/p0", "no-label")  # 180Mi, and 64Mi reserved
    assert has_facts(trimtab("runtimeclass", "measure", *cluster_world).stdout, "no node has")


PRICED = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1, trimtab.dev/price: "300000"}}
status: {allocatable: {cpu: "2", memory: 7680Mi}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: blue}}
"""


def pod_of(name: str, labels: str, spec: str) -> str:
    meta = f"{{name: {name}, namespace: shop, labels: {labels}}}"
    return f"---\napiVersion: v1\nkind: Pod\nmetadata: {meta}\nspec: {spec}\n"


def test_a_teams_cost_has_the_sandboxes_share_apart(tmp_path: Path) -> None:
    box = "{runtimeClassName: kata, overhead: {cpu: 500m}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}"
    plain = "{containers: [{name: a, resources: {requests: {memory: 7680Mi}}}]}"
    broken = "{containers: [{name: a, resources: {requests: {memory: lots}}}]}"
    pods = pod_of("a", "{}", box) + pod_of("b", "{team: red}", plain) + pod_of("c", "{team: red}", broken)
    path = write(tmp_path, PRICED + pods)
    document = json.loads(trimtab("runtimeclass", "cost", "--cluster", path, "--by", "team", "-o", "json").stdout)
    blue, red = sorted(document["teams"], key=lambda row: row["name"])
    assert (blue["workload"]["dollarsPerMonth"], blue["sandbox"]["dollarsPerMonth"]) == (73.0, 36.5)
    assert (red["workload"]["dollarsPerMonth"], red["unreadablePods"], red["pods"]) == (73.0, 1, 2)
    assert {row["name"]: row["sandbox"]["cores"] for row in document["classes"]} == {"kata": 0.5, "(none)": 0}
    per_pod = {"cores": 0.5, "gib": 0, "dollarsPerMonth": 36.5}
    assert [row["sandboxPerPod"] for row in document["classes"] if row["name"] == "kata"] == [per_pod]
    assert red["workloadPerPod"]["dollarsPerMonth"] == 73.0  # the pod that cannot be read is not counted
    text = trimtab("runtimeclass", "cost", "--cluster", path).stdout
    assert has_facts(text, "RuntimeClass kata", "$73.00", "1 cores", "0 GiB")
    assert [word for word in ("shop", "20.0%", "cannot be read") if word not in text] == []


def test_without_a_price_the_list_price_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, pod_of("a", "{}", "{containers: [{name: a}]}").removeprefix("---\n"))
    assert has_facts(trimtab("runtimeclass", "cost", "--cluster", path).stdout, "No node", "a price")
