"""What is proposed, as kustomize patches for Git.

The report under the column names of KRR's CSV, for what reads those.

Columns, signs, `unset` and `?`, and the words and thresholds of the severity are KRR's (`robusta_krr/formatters/csv.py`
and `core/models/severity.py`). Every row names its workload, and limits are those that go with a proposal.

What was seen, as checkpoints that a fresh VPA begins with.
"""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import structs

from trimtab.cli.main import UsageError
from trimtab.cli.recommend.current_requests import CurrentRequests
from trimtab.cli.recommend.report import ContainerReport, RecommendReport, ResourceReport
from trimtab.cluster import quantity
from trimtab.cluster.config_error import ConfigError
from trimtab.histogram import vpa
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.policy import autoscalers

_VERSIONS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1",
             "Job": "batch/v1", "CronJob": "batch/v1"}  # fmt: skip
"""Of these kustomize knows that containers are told by their name. Of a custom kind (an Argo `Rollout`) it does not: a
patch would replace the whole list, images and all."""


def write(report: RecommendReport, folder: str, min_confidence: float) -> tuple[list[str], list[str], list[str]]:
    """A patch for every workload that changes, and the kustomization that names them. The files' names, the workloads
    that change and get none, and the requests that are not lowered, since too little is sure of them."""
    doubtful = [f"{row.namespace}/{row.workload}/{row.container} {name}" for row in report.containers
                for name, part in (("cpu", row.cpu), ("memory", row.memory))
                if _is_doubtful(part, min_confidence)]  # fmt: skip
    changing = list(_workloads([_without_doubtful(row, min_confidence) for row in report.containers]))
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
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=folder, expected="a folder that can be written", got=got)]) from None
    others = [f"{rows[0].kind} {rows[0].namespace}/{rows[0].workload}" for rows in changing if rows not in found]
    return sorted(patches), others, doubtful


def _is_doubtful(part: ResourceReport, min_confidence: float) -> bool:
    """Whether a request would be lowered for less than this confidence; a raise and a first request need none."""
    if part.proposed is None or part.now is None or (part.confidence or 0.0) >= min_confidence:
        return False
    return quantity.compare(part.proposed, part.now) < 0


def _without_doubtful(row: ContainerReport, min_confidence: float) -> ContainerReport:
    parts = {
        name: structs.replace(part, proposed=None, proposed_limit=None)
        for name, part in (("cpu", row.cpu), ("memory", row.memory))
        if _is_doubtful(part, min_confidence)
    }
    return structs.replace(row, **parts)


def _target(row: ContainerReport, found: list[list[ContainerReport]]) -> dict[str, str]:
    """By name alone where that is enough: in Git the namespace is often written elsewhere (`namespace:` of an overlay),
    and a base need not hold every workload of the cluster."""
    named = {"kind": row.kind, "name": row.workload}
    alike = sum((rows[0].kind, rows[0].workload) == (row.kind, row.workload) for rows in found)
    return named if alike == 1 else {**named, "namespace": row.namespace}


def _workloads(rows: Iterable[ContainerReport]) -> Iterable[list[ContainerReport]]:
    found: dict[tuple[str, str, str], list[ContainerReport]] = {}
    for row in rows:
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


UNSET, UNKNOWN = "unset", "?"
_STEPS = {
    "cpu": ((500, "CRITICAL"), (250, "WARNING"), (100, "OK")),
    "memory": ((500 << 20, "CRITICAL"), (250 << 20, "WARNING"), (100 << 20, "OK")),
}
_WORDS = ("UNKNOWN", "GOOD", "OK", "WARNING", "CRITICAL")


def as_csv(report: RecommendReport) -> str:
    """A row for each container."""
    text = io.StringIO()
    first = ["Cluster"] if report.by else []
    columns = [f"{name} {what}" for name in ("CPU", "Memory") for what in ("Diff", "Requests", "Limits")]
    out = csv.writer(text)
    out.writerow([*first, "Namespace", "Name", "Pods", "Old Pods", "Type", "Container", "Severity", *columns])
    for row in report.containers:
        pods = row.replicas or 0
        cells = [cell for resource, part in (("cpu", row.cpu), ("memory", row.memory))
                 for cell in _cells(resource, part, pods, known=row.replicas is not None)]  # fmt: skip
        where = [row.cluster] if report.by else []
        out.writerow([*where, row.namespace, row.workload, pods, row.former_pods or 0, row.kind, row.container,
                      _severity(row), *cells])  # fmt: skip
    return text.getvalue()


def _cells(resource: str, part: ResourceReport, pods: int, *, known: bool) -> tuple[str, str, str]:
    """The difference of all pods, the request and the limit before and after."""
    now = part.now if part.now is not None else UNSET if known else UNKNOWN
    limit = part.limit if part.limit is not None else UNSET
    wanted = _wanted(part)
    limits = f"{limit} -> {part.proposed_limit or limit}" if part.limit or part.proposed_limit else UNSET
    if wanted is None:
        return "", f"{now} -> {UNKNOWN}", limits
    apart = quantity.scheduler_value(resource, wanted) - (
        quantity.scheduler_value(resource, part.now) if part.now is not None else 0
    )
    return _signed(resource, apart * pods), f"({_signed(resource, apart)}) {now} -> {wanted}", limits


def _wanted(part: ResourceReport) -> str | None:
    """What it should ask for; None where too little is known."""
    return None if part.missing is not None else part.proposed or part.now


def _signed(resource: str, number: int) -> str:
    return ("+" if number >= 0 else "-") + quantity.format_quantity(resource, abs(number))


def _severity(row: ContainerReport) -> str:
    found = [_severity_of(resource, part) for resource, part in (("cpu", row.cpu), ("memory", row.memory))]
    return max(found, key=_WORDS.index)


def _severity_of(resource: str, part: ResourceReport) -> str:
    wanted = _wanted(part)
    if part.missing is not None:
        return "UNKNOWN"
    if part.now is None or wanted is None:
        return "GOOD" if part.now == wanted else "WARNING"
    apart = abs(quantity.scheduler_value(resource, wanted) - quantity.scheduler_value(resource, part.now))
    return next((word for least, word in _STEPS[resource] if apart >= least), "GOOD")


_API_VERSION = "autoscaling.k8s.io/v1"


def checkpoints(book: BatchHistory, cluster: CurrentRequests) -> list[dict[str, Any]]:
    """One for each container of which cpu is known; where no VPA sizes it yet, for one named after its workload."""
    found = []
    for container in book.containers():
        cpu = book.window(container, "cpu")
        if cpu.last:
            known = vpa.known(cpu, book.window(container, "memory"))
            found.append(_document(container, _autoscaler(container, cluster), vpa.write(known)))
    return found


def text(documents: list[dict[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def _autoscaler(container: ContainerKey, cluster: CurrentRequests) -> str:
    standing = cluster.standing.get(container)
    found = autoscalers.of(standing.subject) if standing is not None else None
    return found.metadata.name if found is not None else container.workload


def _document(container: ContainerKey, name: str, status: vpa.CheckpointStatus) -> dict[str, Any]:
    return {
        "apiVersion": _API_VERSION, "kind": "VerticalPodAutoscalerCheckpoint",
        "metadata": {"name": f"{name}-{container.name}", "namespace": container.namespace},
        "spec": {"vpaObjectName": name, "containerName": container.name},
        "status": msgspec.to_builtins(status),
    }  # fmt: skip
