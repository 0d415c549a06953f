"""Exports of the report: kustomize patches for Git, a CSV file in KRR's format, and checkpoints from which a new VPA
starts.

In the CSV file, the columns, plus and minus signs, `unset` and `?`, and the words and thresholds of the severity are
KRR's (`robusta_krr/formatters/csv.py` and `core/models/severity.py`). In addition, every row names its workload, and
has the limits that belong to its proposal.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from trimtab.admission.fitted_requests import FittedRequests, ProposedAmounts
from trimtab.admission.reasons import CONTAINER_NOT_IN_TEMPLATE
from trimtab.cli.csv_table import Cell, format_csv_table
from trimtab.cli.output import format_manifests
from trimtab.cli.recommend.fit_decisions import fit_changes
from trimtab.cli.recommend.report import ContainerNames, ContainerReport, RecommendReport, ResourceReport
from trimtab.cluster import quantity
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.resources import all_containers
from trimtab.histogram import vpa
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.current_requests import CurrentRequests
from trimtab.inputs.private_file import write_private_file
from trimtab.policy import autoscalers

_VERSIONS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
}
"""The kinds whose lists of containers kustomize merges by name, with their apiVersion.

For a custom kind (an Argo `Rollout`), a patch would replace the whole list of containers, including the images."""


@dataclass(frozen=True, slots=True)
class WrittenPatches:
    """The patches of a run, and what has no patch."""

    files: list[str]
    unmergeable: list[str]
    """The workloads that change but whose kind cannot be patched."""
    doubtful: list[str]
    """The requests that are not lowered because the confidence is too low."""
    refused: list[str]
    """The requests that are left out, each with the reason."""


def write_patches(
    report: RecommendReport, folder: str, min_confidence: float, current_requests: CurrentRequests
) -> WrittenPatches:
    """Write a patch for every workload that changes, and a kustomization that lists all patches."""
    names = ContainerNames(report.containers)
    doubtful = [
        f"{names.name_of(row)} {name}"
        for row in report.containers
        for name, part in (("cpu", row.cpu), ("memory", row.memory))
        if _is_doubtful(part, min_confidence)
    ]
    changing = list(_group_by_workload([_without_doubtful(row, min_confidence) for row in report.containers]))
    patches = [_build_patch(rows, current_requests) for rows in changing if rows[0].kind in _VERSIONS]
    refused = [sentence for patch in patches for sentence in patch.refused]
    patches = [patch for patch in patches if patch.pod]
    targets = [patch.row for patch in patches]
    contents = {_patch_file_name(patch.row): patch.content for patch in patches}
    # A Component has no resources of its own: an overlay includes it beside its base.
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"path": _patch_file_name(row), "target": _patch_target(row, targets)} for row in targets],
    }
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for name, content in {**contents, "kustomization.yaml": kustomization}.items():
            write_private_file(str(root / name), format_manifests([content]).encode())
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=folder, expected="a folder that can be written", got=got)]) from None
    unmergeable = [
        f"{rows[0].kind} {rows[0].namespace}/{rows[0].workload}" for rows in changing if rows[0].kind not in _VERSIONS
    ]
    return WrittenPatches(sorted(contents), unmergeable, doubtful, refused)


def _is_doubtful(part: ResourceReport, min_confidence: float) -> bool:
    """Returns whether the proposal lowers the request and its confidence is below `min_confidence`. A higher request
    needs no confidence."""
    if part.proposed is None or part.now is None or (part.confidence or 0.0) >= min_confidence:
        return False
    return quantity.compare_quantities(part.proposed, part.now) < 0


def _without_doubtful(row: ContainerReport, min_confidence: float) -> ContainerReport:
    parts = {
        name: structs.replace(part, proposed=None, proposed_limit=None)
        for name, part in (("cpu", row.cpu), ("memory", row.memory))
        if _is_doubtful(part, min_confidence)
    }
    return structs.replace(row, **parts)


def _patch_target(row: ContainerReport, targets: list[ContainerReport]) -> dict[str, str]:
    """Returns the target of the workload's patch: kind and name, and the namespace only if several patched workloads
    have the same kind and name.

    The namespace is left out if possible, because in Git an overlay often sets it."""
    selector = {"kind": row.kind, "name": row.workload}
    same_name_count = sum((other.kind, other.workload) == (row.kind, row.workload) for other in targets)
    return selector if same_name_count == 1 else {**selector, "namespace": row.namespace}


def _group_by_workload(rows: Iterable[ContainerReport]) -> Iterable[list[ContainerReport]]:
    rows_by_workload: dict[OwnerKey, list[ContainerReport]] = {}
    for row in rows:
        if row.cpu.proposed or row.memory.proposed:
            rows_by_workload.setdefault(_owner_of(row), []).append(row)
    return rows_by_workload.values()


def _owner_of(row: ContainerReport) -> OwnerKey:
    return OwnerKey(row.namespace, GroupKind(row.kind), row.workload)


def _patch_file_name(row: ContainerReport) -> str:
    return f"{row.namespace}-{row.kind.lower()}-{row.workload}.yaml"


@dataclass(frozen=True, slots=True)
class _Patch:
    """A strategic merge patch of one workload. Containers are merged by name."""

    row: ContainerReport
    pod: dict[str, Any]
    """The pod's spec; empty if nothing is left to change."""
    refused: list[str]

    @property
    def content(self) -> dict[str, Any]:
        first = self.row
        spec: dict[str, Any] = {"template": {"spec": self.pod}}
        if first.kind == "CronJob":
            spec = {"jobTemplate": {"spec": spec}}
        metadata = {"name": first.workload, "namespace": first.namespace}
        return {"apiVersion": _VERSIONS[first.kind], "kind": first.kind, "metadata": metadata, "spec": spec}


def _build_patch(rows: list[ContainerReport], current_requests: CurrentRequests) -> _Patch:
    """Returns the patch of a workload, with those changes that the API server accepts together."""
    owner = _owner_of(rows[0])
    template = current_requests.templates.get(owner)
    templated = None if template is None else {one.name for one in all_containers(template.pod.spec)}
    foreign = [row for row in rows if templated is not None and row.container not in templated]
    patched = [row for row in rows if row not in foreign]
    refused = [f"{row.namespace}/{row.workload}/{row.container}: {CONTAINER_NOT_IN_TEMPLATE.means}" for row in foreign]
    keys = [ContainerKey(row.namespace, owner.kind, row.workload, row.container) for row in patched]
    proposed = {
        (row.container, name): ProposedAmounts(
            quantity.scheduler_value(name, part.proposed),
            None if part.proposed_limit is None else quantity.scheduler_value(name, part.proposed_limit),
        )
        for row in patched
        for name, part in (("cpu", row.cpu), ("memory", row.memory))
        if part.proposed is not None
    }
    fitted = fit_changes(owner, keys, current_requests, proposed)
    refused += [
        f"{rows[0].namespace}/{rows[0].workload}/{container} {resource}: {fitted.reasons[container, resource]}"
        for container, resource in proposed
        if (container, resource) not in fitted.changes
    ]
    # A sidecar is an init container with restartPolicy Always (KEP-753).
    main, sidecars = (
        [
            entry
            for row in patched
            if (row.role == "sidecar") is side and (entry := _patch_container(row.container, fitted))
        ]
        for side in (False, True)
    )
    lists = {"containers": main, "initContainers": sidecars}
    pod: dict[str, Any] = {name: containers for name, containers in lists.items() if containers}
    if pod and fitted.pod_requests:
        pod["resources"] = {"requests": _written(fitted.pod_requests)}
    return _Patch(rows[0], pod, refused)


def _patch_container(name: str, fitted: FittedRequests) -> dict[str, Any]:
    """Returns the changes of one container; empty if there are none."""
    own = {resource: amounts for (container, resource), amounts in fitted.changes.items() if container == name}
    if not own:
        return {}
    limits = _written({resource: one.limit for resource, one in own.items() if one.limit is not None})
    requests = _written({resource: one.request for resource, one in own.items()})
    return {"name": name, "resources": {"requests": requests, **({"limits": limits} if limits else {})}}


def _written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: quantity.format_quantity(name, amount) for name, amount in amounts.items()}


UNSET, UNKNOWN = "unset", "?"
_KRR_THRESHOLDS = {
    "cpu": ((500, "CRITICAL"), (250, "WARNING"), (100, "OK")),
    "memory": ((500 << 20, "CRITICAL"), (250 << 20, "WARNING"), (100 << 20, "OK")),
}
_KRR_SEVERITIES = ("UNKNOWN", "GOOD", "OK", "WARNING", "CRITICAL")


def format_krr_csv(report: RecommendReport) -> str:
    """Returns the report as KRR's CSV, with a row for each container."""
    first = ["Cluster"] if report.by else []
    columns = [f"{name} {what}" for name in ("CPU", "Memory") for what in ("Diff", "Requests", "Limits")]
    rows: list[list[Cell]] = [
        [*first, "Namespace", "Name", "Pods", "Old Pods", "Type", "Container", "Severity", *columns]
    ]
    for row in report.containers:
        pods = row.replicas or 0
        cells = [
            cell
            for resource, part in (("cpu", row.cpu), ("memory", row.memory))
            for cell in _krr_cells(resource, part, pods, is_in_snapshot=row.replicas is not None)
        ]
        where = [row.cluster] if report.by else []
        values = [*where, row.namespace, row.workload, pods, row.former_pods or 0, row.kind, row.container]
        severities = [
            _krr_resource_severity(resource, part) for resource, part in (("cpu", row.cpu), ("memory", row.memory))
        ]
        rows.append([*values, max(severities, key=_KRR_SEVERITIES.index), *cells])
    return format_csv_table(rows, line_end="\r\n")


def _krr_cells(resource: str, part: ResourceReport, pods: int, *, is_in_snapshot: bool) -> tuple[str, str, str]:
    """Returns three cells: the change of the requests of all pods together, the request before and after, and the limit
    before and after."""
    now = part.now if part.now is not None else UNSET if is_in_snapshot else UNKNOWN
    limit = part.limit if part.limit is not None else UNSET
    target = _target_request(part)
    limits = f"{limit} -> {part.proposed_limit or limit}" if part.limit or part.proposed_limit else UNSET
    if target is None:
        return "", f"{now} -> {UNKNOWN}", limits
    difference = quantity.scheduler_value(resource, target) - (
        quantity.scheduler_value(resource, part.now) if part.now is not None else 0
    )
    return (
        _format_signed(resource, difference * pods),
        f"({_format_signed(resource, difference)}) {now} -> {target}",
        limits,
    )


def _target_request(part: ResourceReport) -> str | None:
    """Returns the request that the container should have, or None with too little usage."""
    return None if part.missing is not None else part.proposed or part.now


def _format_signed(resource: str, number: int) -> str:
    return ("+" if number >= 0 else "-") + quantity.format_quantity(resource, abs(number))


def _krr_resource_severity(resource: str, part: ResourceReport) -> str:
    target = _target_request(part)
    if part.missing is not None:
        return "UNKNOWN"
    if part.now is None or target is None:
        return "GOOD" if part.now == target else "WARNING"
    difference = abs(quantity.scheduler_value(resource, target) - quantity.scheduler_value(resource, part.now))
    return next((word for least, word in _KRR_THRESHOLDS[resource] if difference >= least), "GOOD")


_API_VERSION = "autoscaling.k8s.io/v1"


def build_vpa_checkpoints(history: BatchHistory, current_requests: CurrentRequests) -> list[dict[str, Any]]:
    """Returns a checkpoint for each container with cpu usage.

    If no VPA sizes the container, the checkpoint is for a VPA with the name of the workload.
    """
    documents = []
    for container in history.list_containers():
        cpu = history.compressed_window(container, "cpu")
        if cpu.last:
            histograms = vpa.history_of_windows(cpu, history.compressed_window(container, "memory"))
            current = current_requests.containers.get(container)
            autoscaler = autoscalers.find_managing_vpa(current.pod_context) if current is not None else None
            name = autoscaler.metadata.name if autoscaler is not None else container.workload
            documents.append(
                {
                    "apiVersion": _API_VERSION,
                    "kind": "VerticalPodAutoscalerCheckpoint",
                    "metadata": {"name": f"{name}-{container.name}", "namespace": container.namespace},
                    "spec": {"vpaObjectName": name, "containerName": container.name},
                    "status": msgspec.to_builtins(vpa.encode_checkpoint(histograms)),
                }
            )
    return documents
