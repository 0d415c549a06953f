"""What the webhook is measured in: the whole shipped library, usage of ten thousand workloads, and reviews.

python -m tests.bench.crowd FOLDER        writes snapshot.json there
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, ContainerUsage, Percentiles, encode

WORKLOADS = 10_000
SHARDS = 32
NODES = tuple(f"ip-10-0-{number // 250}-{number % 250}.internal" for number in range(1, 501))
_SIZES = (("16", "64Gi"), ("8", "32Gi"), ("32", "256Gi"))
ROOT = Path(__file__).parents[2]
POLICIES = f"{ROOT}/policies/recommended:{ROOT}/policies/library"
_OWN = ("Deployment/payments-api", "DaemonSet/payments-agent", "CronJob/payments-report")
_CONTAINERS = ("app", *(f"app-{number}" for number in range(1, 10)), "init-migrate")


def snapshot() -> dict[str, Any]:
    """Recommendations for everybody, the workloads that the reviews are of, and nodes of three sizes."""
    workloads = {f"team-{n % 100}/Deployment/app-{n}": {"app": _usage(n), "proxy": _usage(n + 7)} for n in _others()}
    for owner in _OWN:
        workloads[f"payments/{owner}"] = {name: _usage(number) for number, name in enumerate(_CONTAINERS)}
    names = sorted(workloads)
    shards = [{name: workloads[name] for name in names[number::SHARDS]} for number in range(SHARDS)]
    items = [_shard(number, result) for number, result in enumerate(shards)]
    return {"apiVersion": "v1", "kind": "List", "items": [*items, *_surroundings()]}


def own_containers() -> list[tuple[str, str, str, ContainerUsage]]:
    """(kind, owner, container, usage) of the Deployment that the reviews are of."""
    kind, owner = _OWN[0].split("/")
    return [(kind, owner, name, _usage(number)) for number, name in enumerate(_CONTAINERS)]


def _others() -> range:
    return range(WORKLOADS - len(_OWN))


def _usage(number: int) -> ContainerUsage:
    low, high = 10 + number % 40, 150 + number % 400
    return ContainerUsage(
        cpu=Percentiles(p5=f"{low}m", p50=f"{2 * low}m", p95=f"{high}m", max=f"{3 * high}m"),
        memory=Percentiles(p5=f"{2 * low}Mi", p50=f"{3 * low}Mi", p95=f"{high}Mi", max=f"{2 * high}Mi"),
        days=14.0,
        samples=20160,
    )


def _shard(number: int, result: dict[str, dict[str, ContainerUsage]]) -> dict[str, Any]:
    name = f"trimtab-recommendations-{number:02d}"
    metadata = {"name": name, "namespace": "trimtab-system", "labels": {RECOMMENDATIONS_LABEL: "v1"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: encode(result)}}


def _surroundings() -> list[dict[str, Any]]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "payments-api", "uid": "d", "controller": True}
    here = {"namespace": "payments"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "payments", "labels": {"team": "payments"}}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "payments-api", **here}},
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "payments-api-7d9c6b5f48", **here, "ownerReferences": [owner]},
        },
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "payments-agent", **here}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "payments-report", **here}},
        *map(_node, range(len(NODES))),
    ]


def _node(number: int) -> dict[str, Any]:
    cpu, memory = _SIZES[number % len(_SIZES)]
    labels = {"kubernetes.io/hostname": NODES[number], "kubernetes.io/arch": "amd64"}
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODES[number], "labels": labels},
        "status": {"allocatable": amounts},
    }


if __name__ == "__main__":
    (Path(sys.argv[1]) / "snapshot.json").write_text(json.dumps(snapshot()))
