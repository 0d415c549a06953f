"""What is proposed, as kustomize patches for Git."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from trimtab.cluster.mistake import Mistake
from trimtab.command.main import Wrong
from trimtab.command.recommend.report import ContainerReport, RecommendReport, ResourceReport

_VERSIONS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1",
             "Job": "batch/v1", "CronJob": "batch/v1"}  # fmt: skip
"""Of these kustomize knows that containers are told by their name. Of a custom kind (an Argo `Rollout`) it does not: a
patch would replace the whole list, images and all."""


def write(report: RecommendReport, folder: str) -> tuple[list[str], list[str]]:
    """A patch for every workload that changes, and the kustomization that names them. The files' names, and the
    workloads that change and get none."""
    changing = list(_workloads(report))
    found = [rows for rows in changing if rows[0].kind in _VERSIONS]
    patches = {_file(rows[0]): _patch(rows) for rows in found}
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component",
        "patches": [{"path": _file(rows[0]), "target": _target(rows[0], found)} for rows in found],
    }  # fmt: skip
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for name, content in {**patches, "kustomization.yaml": kustomization}.items():
            (root / name).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    except OSError as error:
        came = (error.strerror or type(error).__name__).lower()
        raise Wrong([Mistake(file=folder, expected="a folder that can be written", came=came)]) from None
    others = [f"{rows[0].kind} {rows[0].namespace}/{rows[0].workload}" for rows in changing if rows not in found]
    return sorted(patches), others


def _target(row: ContainerReport, found: list[list[ContainerReport]]) -> dict[str, str]:
    """By name alone where that is enough: in Git the namespace is often written elsewhere (`namespace:` of an overlay),
    and a base need not hold every workload of the cluster."""
    named = {"kind": row.kind, "name": row.workload}
    alike = sum((rows[0].kind, rows[0].workload) == (row.kind, row.workload) for rows in found)
    return named if alike == 1 else {**named, "namespace": row.namespace}


def _workloads(report: RecommendReport) -> Iterable[list[ContainerReport]]:
    found: dict[tuple[str, str, str], list[ContainerReport]] = {}
    for row in report.containers:
        if row.cpu.proposed or row.memory.proposed:
            found.setdefault((row.namespace, row.kind, row.workload), []).append(row)
    return found.values()


def _file(row: ContainerReport) -> str:
    return f"{row.namespace}-{row.kind.lower()}-{row.workload}.yaml"


def _patch(rows: list[ContainerReport]) -> dict[str, Any]:
    """Strategic merge: containers are told by their name."""
    first = rows[0]
    main, sidecars = ([_container(row) for row in rows if (row.role == "sidecar") is side] for side in (False, True))
    lists = {"containers": main, "initContainers": sidecars}
    pod: dict[str, Any] = {"spec": {name: found for name, found in lists.items() if found}}
    spec: dict[str, Any] = {"template": pod}
    if first.kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    metadata = {"name": first.workload, "namespace": first.namespace}
    return {"apiVersion": _VERSIONS[first.kind], "kind": first.kind, "metadata": metadata, "spec": spec}


def _container(row: ContainerReport) -> dict[str, Any]:
    parts: dict[str, ResourceReport] = {"cpu": row.cpu, "memory": row.memory}
    requests = {name: part.proposed for name, part in parts.items() if part.proposed}
    limits = {name: part.proposed_limit for name, part in parts.items() if part.proposed_limit}
    return {"name": row.container, "resources": {"requests": requests, **({"limits": limits} if limits else {})}}
