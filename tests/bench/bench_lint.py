"""How many rules has lint, does it call sound manifests errors, what does it cost, and which orphans does `idle` find?

    make bench-lint

The cost is that of a process of `trimtab lint`, start included: the larger one of 800 workloads as manifests, and of
the same ones as a cluster's objects with their pods and nodes.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.autoscaling.shipped_manifests import PUBLISHED, SHIPPED, find_errors, render_shipped
from tests.bench.results import report_result
from tests.idle.cluster_with_orphans import PLANTED, cluster_objects
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.idle.orphans import find_orphans

WORKLOADS = 800
NODES = 100
RUNS = 5
MAX_CPU_SECONDS = 2.0
Manifest = dict[str, Any]


def workload_manifests(number: int) -> Iterator[Manifest]:
    """Yields one workload as teams write them; half have a budget, a third an HPA, a fourth a VPA."""
    name, namespace = f"app-{number:03d}", f"team-{number % 20:02d}"
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name, "team": namespace}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1 + number % 4,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(number)},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": "http"}]},
    }
    if number % 2 == 0:
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        }
    if number % 3 == 0:
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50 + number % 40}},
        }
        yield {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": metadata,
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 10, "metrics": [metric]},
        }
    if number % 4 == 0:
        yield {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": metadata,
            "spec": {"targetRef": target, "updatePolicy": {"updateMode": "Recreate"}},
        }


def pod_spec(number: int) -> Manifest:
    probe = {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 10}
    containers = [
        {
            "name": container,
            "image": f"registry.example.com/{container}:1.{number}",
            "args": ["--listen=:8080", f"--shard={number}"],
            "ports": [{"name": "http", "containerPort": 8080}],
            "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(6)],
            "readinessProbe": probe,
            "resources": {
                "requests": {"cpu": f"{50 + number % 200}m", "memory": "128Mi"},
                "limits": {"memory": "256Mi"},
            },
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
        }
        for container in ("app", "proxy")[: 1 + number % 2]
    ]
    return {"containers": containers, "volumes": [{"name": "config", "configMap": {"name": f"app-{number:03d}"}}]}


def all_manifests() -> list[Manifest]:
    return [manifest for number in range(WORKLOADS) for manifest in workload_manifests(number)]


def cluster_items(manifests: list[Manifest]) -> Iterator[Manifest]:
    """Yields the manifests as a cluster has them: with two pods a workload and their ReplicaSets, and nodes."""
    for number in range(NODES):
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{number:03d}"},
            "spec": {},
            "status": {"allocatable": amounts, "capacity": amounts},
        }
    for manifest in manifests:
        yield manifest
        if manifest["kind"] != "Deployment":
            continue
        name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
        template = manifest["spec"]["template"]
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "controller": True}
        yield {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "spec": {"template": template},
            "metadata": {"name": f"{name}-rs", "namespace": namespace, "ownerReferences": [owner]},
        }
        for pod in range(2):
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-rs", "controller": True}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "status": {"phase": "Running"},
                "spec": {**template["spec"], "nodeName": f"node-{pod:03d}"},
                "metadata": {
                    "name": f"{name}-rs-{pod}",
                    "namespace": namespace,
                    "ownerReferences": [owner],
                    "labels": template["metadata"]["labels"],
                },
            }


def measure_lint(*arguments: str) -> float:
    """Returns the least CPU seconds of some runs of `trimtab lint`, each a process of its own."""
    seconds = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "trimtab", "lint", *arguments, "-o", "json"]
        process = subprocess.run(command, capture_output=True, check=False)
        assert process.returncode in (0, 1), process.stderr.decode()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds)


def measure_800_workloads() -> float:
    manifests = all_manifests()
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "apps.yaml"
        files.write_text(yaml.dump_all(manifests, Dumper=yaml.CSafeDumper))
        cluster = Path(folder) / "cluster.json"
        cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*cluster_items(manifests)]}))
        from_files, from_cluster = measure_lint("-f", str(files)), measure_lint("--cluster", str(cluster))
    print(f"{WORKLOADS} workloads: {from_files:.2f} s CPU as manifests, {from_cluster:.2f} s as a cluster's objects")
    return max(from_files, from_cluster)


def count_false_errors() -> int:
    published = [file for file in PUBLISHED if file.exists()]
    if not published:
        print("bench-lint: no published manifests are here (TRIMTAB_SHARED): only shipped ones are checked for errors")
    errors = [
        (file.name, error) for file in (*published, *SHIPPED) for error in find_errors((file.name, file.read_bytes()))
    ]
    errors += [(name, error) for name, content in render_shipped() for error in find_errors((name, content))]
    for name, error in errors:
        print(f"error in {name}: {error}")
    return len(errors)


def main() -> None:
    seconds = measure_800_workloads()
    errors = count_false_errors()
    objects = cluster_objects()
    names = {orphan.name for orphan in find_orphans(objects).orphans}
    wrong = names - PLANTED
    print(f"{len(objects)} objects: {len(names & PLANTED)} of {len(PLANTED)} orphans, {len(wrong)} wrong ones")
    report_result(
        "lint",
        f"rules={len(ALL_RULES)} false_errors={errors} cpu_s_800={seconds:.2f} orphans_found={len(names & PLANTED)}",
        broken={
            "false_errors": errors,
            "wrong_orphans": wrong,
            "orphans_found": not names >= PLANTED,
            "cpu_s_800": seconds >= MAX_CPU_SECONDS,
        },
    )


if __name__ == "__main__":
    main()
