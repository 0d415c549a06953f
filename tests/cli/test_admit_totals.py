"""What `trimtab admit` counts: each pod once, however many objects of a dump stand for it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.snapshots import told, trimtab
from tests.cli.test_recommend_owners import (
    CRON_JOB,
    DEPLOYMENT,
    JOB_PODS,
    JOBS,
    REPLICA_SETS,
    WEB_PODS,
    item,
    pod,
    spec,
    templated,
)
from tests.cli.worlds import POLICY, write
from tests.cluster_of import Item
from tests.reasons import has_facts

# The Deployment of a pod is known by the hash in the pod's labels.
LABELLED_PODS = [
    {**one, "metadata": {**one["metadata"], "labels": {"pod-template-hash": "7d4b9c6f5d"}}} for one in WEB_PODS
]
CREATED = [*REPLICA_SETS, *LABELLED_PODS, *JOBS, *JOB_PODS]
"""What controllers have created from the Deployment and the CronJob."""
ROLLOUT = item(
    "Rollout",
    "web",
    version="argoproj.io/v1alpha1",
    spec={"replicas": 3, "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
)
IDLE_DEPLOYMENT = templated("Deployment", "web", replicas=0)


def admitted(folder: Path, *items: Item, policy: str = POLICY) -> dict[str, Any]:
    return told("admit", "-f", write(folder, yaml.safe_dump_all(items)), "--policies", write(folder, policy))


def requests_of(folder: Path, *items: Item) -> tuple[str, str]:
    requests = admitted(folder, *items)["totals"]["requestsBefore"]
    return requests["cpu"], requests["memory"]


@given(st.sets(st.sampled_from(range(len(CREATED)))))
def test_what_a_controller_has_created_changes_no_total(
    tmp_path_factory: pytest.TempPathFactory, chosen: set[int]
) -> None:
    folder, more = tmp_path_factory.mktemp("dump"), [CREATED[number] for number in sorted(chosen)]
    assert requests_of(folder, DEPLOYMENT, CRON_JOB, *more) == ("1500m", "3Gi")


@given(st.lists(st.sampled_from([DEPLOYMENT, CRON_JOB, *CREATED]), max_size=6))
def test_an_object_that_is_there_again_changes_no_total(
    tmp_path_factory: pytest.TempPathFactory, again: list[Item]
) -> None:
    folder = tmp_path_factory.mktemp("dump")
    assert requests_of(folder, DEPLOYMENT, CRON_JOB, *CREATED, *again) == ("1500m", "3Gi")


def test_a_pod_that_is_there_twice_counts_once_and_objects_with_generated_names_count_each(tmp_path: Path) -> None:
    lone = item("Pod", "lone", version="v1", spec=spec("1"))
    generated = {**lone, "metadata": {"generateName": "lone-", "namespace": "shop"}}
    assert requests_of(tmp_path, lone, lone)[0] == "1"
    assert requests_of(tmp_path, generated, generated)[0] == "2"


def test_an_object_that_another_stands_for_names_it(tmp_path: Path) -> None:
    report = admitted(tmp_path, DEPLOYMENT, *REPLICA_SETS, *WEB_PODS)
    assert [one["countedWith"] for one in report["pods"]] == ["", *["Deployment/web"] * 4]
    assert report["totals"]["pods"] == 1


def test_pods_of_one_replica_set_count_once_without_their_deployment(tmp_path: Path) -> None:
    assert requests_of(tmp_path, *REPLICA_SETS, *WEB_PODS) == ("1", "2Gi")


def test_pods_of_an_operator_without_a_template_count_with_the_set_that_creates_them(tmp_path: Path) -> None:
    operator = templated("StatefulSet", "db", "Database/db", above="acme.example/v1")
    assert requests_of(tmp_path, operator, pod("db-0", "StatefulSet/db"), pod("db-1", "StatefulSet/db")) == ("1", "2Gi")


@pytest.mark.parametrize(
    ("workload", "cpu"),
    [
        (templated("DaemonSet", "agent", status={"observedGeneration": 1, "desiredNumberScheduled": 4}), "2"),
        (templated("DaemonSet", "agent"), "500m"),
        (
            item(
                "Job",
                "load",
                version="batch/v1",
                spec={"parallelism": 4, "completions": 3, "template": {"spec": spec()}},
            ),
            "1500m",
        ),
        (item("Job", "load", version="batch/v1", spec={"completions": 3, "template": {"spec": spec()}}), "500m"),
        (
            item(
                "Job",
                "load",
                version="batch/v1",
                spec={"template": {"spec": spec()}},
                status={"conditions": [{"type": "Complete", "status": "True"}]},
            ),
            "0",
        ),
        (pod("alone", "Database/db", above="acme.example/v1", phase="Succeeded"), "0"),
    ],
    ids=["daemons", "a new DaemonSet", "parallel", "one after another", "a finished Job", "a finished pod"],
)
def test_the_pods_that_an_object_says_exist_count(tmp_path: Path, workload: Item, cpu: str) -> None:
    assert requests_of(tmp_path, workload)[0] == cpu


QUOTA = item("ResourceQuota", "budget", version="v1", spec={"hard": {"requests.cpu": "10"}})
GIVES_REQUESTS = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: init}
spec:
  actions:
    requests: {cpu: {from: policy, otherwise: 10m}}
"""


def test_a_pod_that_is_admitted_only_with_a_policy_is_in_the_total_after_it(tmp_path: Path) -> None:
    bare = {"containers": [{"name": "app", "image": "example.com/app:1"}]}
    workload = item("Deployment", "web", spec={"replicas": 2, "template": {"spec": bare}})
    totals = admitted(tmp_path, workload, QUOTA, policy=GIVES_REQUESTS)["totals"]
    assert (totals["requestsBefore"]["cpu"], totals["requestsAfter"]["cpu"], totals["admittedOnlyWithUs"]) == (
        "0",
        "20m",
        1,
    )


def test_a_rollout_has_the_pods_of_the_template_that_it_refers_to(tmp_path: Path) -> None:
    report = admitted(
        tmp_path, ROLLOUT, IDLE_DEPLOYMENT, pod("web-7d4b9c6f5d-x2x4k", "Rollout/web", above="argoproj.io/v1alpha1")
    )
    assert [(one["kind"], one["replicas"], one["countedWith"]) for one in report["pods"]] == [
        ("Rollout", 3, ""),
        ("Deployment", 0, ""),
        ("Pod", 1, "Rollout/web"),
    ]
    assert report["totals"]["requestsBefore"]["cpu"] == "1500m"


def test_a_rollout_whose_template_is_missing_names_it(tmp_path: Path) -> None:
    (note,) = [note for note in admitted(tmp_path, ROLLOUT, CRON_JOB)["notes"] if "Rollout" in note]
    assert has_facts(note, "Rollout web", "template of Deployment shop/web")


def test_the_manifests_change_where_the_template_is_written(tmp_path: Path) -> None:
    limited = templated("Deployment", "web", replicas=0)
    limited["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2"}
    file = write(tmp_path, yaml.safe_dump_all([ROLLOUT, limited]))
    result = trimtab("admit", "-f", file, "--policies", write(tmp_path, POLICY), "-o", "yaml")
    rollout, deployment = yaml.safe_load_all(result.stdout)
    assert rollout == ROLLOUT
    assert "cpu" not in deployment["spec"]["template"]["spec"]["containers"][0]["resources"].get("limits", {})
    assert has_facts(result.stderr, "Rollout web", "template of another object")


GROUP = item(
    "LeaderWorkerSet",
    "llm",
    version="leaderworkerset.x-k8s.io/v1",
    spec={"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": spec()}}},
)
LEADERS = templated("StatefulSet", "llm", "LeaderWorkerSet/llm", above="leaderworkerset.x-k8s.io/v1", replicas=1)
WORKERS = templated("StatefulSet", "llm-0", "Pod/llm-0", above="v1", replicas=1)
LEADER, WORKER = pod("llm-0", "StatefulSet/llm"), pod("llm-0-1", "StatefulSet/llm-0")


@pytest.mark.parametrize(
    "dump", [[GROUP, LEADERS, WORKERS, LEADER, WORKER], [LEADERS, WORKERS, LEADER, WORKER], [LEADER, WORKER], [GROUP]]
)
def test_the_pods_of_a_group_whose_leader_is_a_pod_are_counted_once(tmp_path: Path, dump: list[Item]) -> None:
    """As LeaderWorkerSet has it: the StatefulSet of the workers belongs to the leader's pod. `kubectl get all` prints
    no custom resource."""
    assert requests_of(tmp_path, *dump) == ("1", "2Gi")
