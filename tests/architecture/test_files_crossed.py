"""How many files a reader has to open to follow one decision from its input to its result.

Each budget is the measured number: a change that crosses one more file has to say why. The aim of the house is 26 files
for an admission and 30 for a plan. An owner has one identity (cluster/kinds.py, cluster/owner.py), and groups of pods
have a file of their own (cluster/pod_groups.py). A container replaces its own text as soon as it is decoded
(cluster/api/pod.py).
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.architecture.source_words import PACKAGES, ROOT
from tests.build import admission_context, facts, namespace, review, usage, workload
from trimtab.admission.handler import answer_review
from trimtab.cli.demo.sample_pool import build_pool_list
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.pool import Pool
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import read_documents
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.policy.load import load_policies
from trimtab.runtime.files import shipped_policies
from trimtab.scheduling.cluster_model import build_cluster_model

MAX_FILES_OF_AN_ADMISSION = 41
MAX_FILES_OF_A_PLAN = 45
MAX_FILES_FROM_MODEL_TO_PLAN = 29

_FOLDERS = tuple(f"{ROOT / package}/" for package in PACKAGES)


def files_crossed(do: Callable[[], Any]) -> set[str]:
    """The product's files of which a function runs; module bodies, classes and comprehensions do not count, nor what a
    process computes once and keeps: the function has run before it is watched, whichever tests came first."""
    do()
    files = set()

    def record(frame: FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_FOLDERS) and not code.co_name.startswith("<"):
            files.add(str(Path(code.co_filename).relative_to(ROOT)))

    sys.setprofile(record)
    try:
        do()
    finally:
        sys.setprofile(None)
    return files


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "u", "controller": True}
POD = {
    "metadata": {"generateName": "web-5d4f-", "ownerReferences": [OWNER]},
    "spec": {"containers": [{"name": "app", "image": "web:1", "resources": {"limits": {"cpu": "1"}}}]},
}
CLUSTER = facts(
    namespace(),
    usage(cpu=("10m", "90m")),
    workload("ReplicaSet/web-5d4f", owner="Deployment/web"),
    workload("Deployment/web"),
)

POOLS = [Pool(name="web", everything=True)]


def test_one_admission_crosses_few_files() -> None:
    """A pod without requests, the recommended policies, and usage of two weeks: from the review to the response."""
    policies = load_policies(shipped_policies()).policies
    body = review(POD)
    crossed = files_crossed(lambda: answer_review(body, admission_context(policies, CLUSTER)))
    assert b'"patch"' in answer_review(body, admission_context(policies, CLUSTER)).body
    assert len(crossed) <= MAX_FILES_OF_AN_ADMISSION, sorted(crossed)


def test_one_plan_crosses_few_files() -> None:
    """The nine nodes of the demo: from the snapshot's text to the plan."""

    def plan() -> Plan:
        inventory = snapshot_inventory(build_snapshot(read_documents("pool.json", text).documents).snapshot)
        return make_plan(build_cluster_model(inventory), POOLS)

    text = build_pool_list()
    crossed = files_crossed(plan)
    assert plan().waves
    assert len(crossed) <= MAX_FILES_OF_A_PLAN, sorted(crossed)


def test_a_plan_of_a_model_crosses_few_files() -> None:
    documents = read_documents("pool.json", build_pool_list()).documents
    model = build_cluster_model(snapshot_inventory(build_snapshot(documents).snapshot))
    crossed = files_crossed(lambda: make_plan(model, POOLS))
    assert len(crossed) <= MAX_FILES_FROM_MODEL_TO_PLAN, sorted(crossed)
