"""What arrives at a webhook, kind by kind, and a day's mix of it.

Each kind is a body and what is another in each review of it, or in each group of reviews. Names are as controllers make
them, so that a server which remembers what it decided meets what it would meet in a cluster.

The mix is of a cluster that runs more batch than services. 72 % of containers live less than five minutes (Sysdig, 2023
Cloud-Native Security and Usage Report): these are taken for pods of CronJobs, of Jobs and of workflow engines. How they
divide among the three, and the other 28 % among rollouts, DaemonSets and new workloads, is assumed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench import crowd
from tests.bench.payloads import REPLICA_SET, REPLICA_SET_UID, SIZES, TOKEN_VOLUME, make_review

Item = dict[str, Any]
UID, TOKEN = "705ab4f5-6393-11e8-b7cc-42010a800002", TOKEN_VOLUME.rpartition("-")[2]
OTHER, WORKLOAD, ANNOTATION = "7d9c6b5f48", "payments-api", "annotation-0"
MINUTE, RUN, STEP = "28000001", "x7k2pqrs", "1234567890"
NODE = crowd.NODES[0]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Reviews of one kind."""

    body: str
    """The name of the body that they are made from."""
    fresh: tuple[str, ...] = (UID, TOKEN)
    """Texts that are others in each review."""
    fresh_in_group: tuple[str, ...] = ()
    """Texts that are others in each group of reviews."""
    group: int = 1
    """The number of reviews that come one after the other with the same texts of a group."""
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Text → those that stand in its place, one drawn in each review."""


KINDS = {
    "siblings": Arrivals("typical"),
    "quota": Arrivals("typical"),
    "distinct": Arrivals("typical", (UID, TOKEN, OTHER)),
    "anew": Arrivals("typical", (UID, TOKEN, OTHER, ANNOTATION)),
    "unknown": Arrivals("typical", (UID, TOKEN, OTHER, WORKLOAD)),
    "daemonset": Arrivals("daemonset", choices={NODE: crowd.NODES}),
    "cronjob": Arrivals("cronjob", (UID, TOKEN, MINUTE)),
    "job": Arrivals("job", (UID, TOKEN, RUN)),
    "workflow": Arrivals("workflow", (UID, TOKEN, STEP), (RUN,), group=6),
}
_ROLLOUT = Arrivals("typical", fresh_in_group=(OTHER,), group=5)
_NEW = Arrivals("typical", fresh_in_group=(OTHER, WORKLOAD), group=2)
MIX = (
    (24, KINDS["cronjob"]),
    (24, KINDS["job"]),
    (24, KINDS["workflow"]),
    (20, _ROLLOUT),
    (6, KINDS["daemonset"]),
    (2, _NEW),
)
"""(pods of 100, what they are)."""
PLANS: dict[str, tuple[tuple[int, Arrivals], ...]] = {
    **{name: ((100, arrivals),) for name, arrivals in KINDS.items()},
    "mix": MIX,
}


def write_plans(folder: Path, bodies: dict[str, Path]) -> dict[str, Path]:
    """Writes a plan for `tests.bench.caller` for each kind and for the mix, with the bodies that they are made from;
    returns name → file."""
    files = {**bodies, **_write_bodies(folder)}
    plans = {name: folder / f"{name}.plan.json" for name in PLANS}
    for name, file in plans.items():
        parts = [
            {
                "pods": pods,
                "body": str(files[arrivals.body]),
                "fresh": arrivals.fresh,
                "fresh_in_group": arrivals.fresh_in_group,
                "group": arrivals.group,
                "choices": arrivals.choices,
            }
            for pods, arrivals in PLANS[name]
        ]
        file.write_text(json.dumps(parts))
    return plans


def _write_bodies(folder: Path) -> dict[str, Path]:
    bodies = {}
    for name, owner in OWNERS.items():
        review = json.loads(make_review(SIZES["typical"]))
        owner(review["request"]["object"])
        bodies[name] = folder / f"{name}.json"
        bodies[name].write_bytes(json.dumps(review, separators=(",", ":")).encode() + b"\n")
    return bodies


def _owned(pod: Item, version: str, kind: str, name: str, labels: dict[str, str]) -> None:
    metadata = pod["metadata"]
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": REPLICA_SET_UID}
    metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    metadata["generateName"] = f"{name}-"
    del metadata["labels"]["pod-template-hash"]
    metadata["labels"] |= labels
    assert REPLICA_SET not in json.dumps(pod)


def _by_daemon_set(pod: Item) -> None:
    """As the DaemonSet controller pins a pod to a node (`ReplaceDaemonSetPodNodeNameNodeAffinity`)."""
    _owned(pod, "apps/v1", "DaemonSet", "payments-agent", {"controller-revision-hash": "6b7c8d9f"})
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}


def _by_cron_job(pod: Item) -> None:
    _by_batch(pod, f"payments-report-{MINUTE}")


def _by_job(pod: Item) -> None:
    _by_batch(pod, f"payments-import-{RUN}")


def _by_batch(pod: Item, name: str) -> None:
    uid = f"1b2c3d4e-0000-4000-8000-{name[-8:]:0>12}"
    labels = {"job-name": name, "controller-uid": uid, "batch.kubernetes.io/job-name": name}
    _owned(pod, "batch/v1", "Job", name, {**labels, "batch.kubernetes.io/controller-uid": uid})
    pod["spec"]["restartPolicy"] = "Never"


def _by_workflow(pod: Item) -> None:
    """As Argo Workflows makes the pod of a step: with a name of its own, and the step in annotations and variables."""
    name = f"payments-train-{RUN}"
    step = f"{name}-step-{STEP}"
    _owned(pod, "argoproj.io/v1alpha1", "Workflow", name, {"workflows.argoproj.io/workflow": name})
    metadata = pod["metadata"]
    del metadata["generateName"]
    metadata["name"] = step
    metadata["annotations"] |= {
        "workflows.argoproj.io/node-id": step,
        "workflows.argoproj.io/node-name": f"{name}.step",
    }
    for container in pod["spec"]["containers"]:
        container["env"].append({"name": "ARGO_NODE_ID", "value": step})
    pod["spec"]["restartPolicy"] = "Never"


OWNERS = {"daemonset": _by_daemon_set, "cronjob": _by_cron_job, "job": _by_job, "workflow": _by_workflow}
"""Name of the body → gives the typical pod this owner."""
