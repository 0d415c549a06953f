"""Writes recommended requests as parameters of policies: one ConfigMap `trimtab-requests` in each namespace that has
opted in.

Policies that the API server itself evaluates read it (`trimtab policies compile --params usage`). A namespace opts in
by a Role that `trimtab install --parameter-namespace` creates; nothing is written to other namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.core import LimitRange, ResourceQuota
from trimtab.cluster.owner import OwnerKey, parse_owner_key
from trimtab.cluster.recommendation import ContainerUsage, Workloads
from trimtab.cluster.request_parameters import (
    PARAMETERS_LABEL,
    PARAMETERS_NAME,
    RULES_VALIDITY_SECONDS,
    NamespaceRules,
    build_parameters,
    is_same_except_times,
    list_owner_keys,
    name_own_parameters,
)
from trimtab.cluster.snapshot import Snapshot
from trimtab.cluster.timestamps import format_timestamp
from trimtab.kube import listing, objects
from trimtab.kube.errors import InvalidResponse, RequestRefused
from trimtab.kube.objects import Writer
from trimtab.kube.resources import ListSource
from trimtab.policy.autoscalers import scales_by_utilization
from trimtab.policy.cluster_facts import hpa_target, vpa_target
from trimtab.runtime.log import Logger

_KINDS = (
    ("LimitRange", "v1", "limitranges"),
    ("ResourceQuota", "v1", "resourcequotas"),
    ("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers"),
    ("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", "verticalpodautoscalers"),
)


@dataclass(slots=True)
class ParameterWriter:
    """The parameters of all namespaces that opted in. Not thread-safe."""

    writer: Writer
    namespaces: tuple[str, ...]
    log: Logger
    own_namespace: str | None = None
    """Trimtab's own namespace, if the parameters of all namespaces are to be there, where no tenant writes. None: the
    parameters of each namespace are in the namespace itself."""
    _written: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Namespace → the data that this replica wrote last."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Namespace → why the API server refused the last reading or writing there."""

    def write_changes(self, workloads: Workloads, now: int) -> int:
        """Writes the ConfigMaps whose content has changed, or whose namespace entry has passed half of its validity.
        Returns how many were written.

        If the API server refuses to read or write the ConfigMap of one namespace, the reason is in `refused`, and the
        others are written nevertheless: a tenant may delete the Role or the namespace, or use up its quota of
        ConfigMaps. Raises every other KubeFault.
        """
        written, refused = 0, dict[str, str]()
        for namespace in self.namespaces:
            try:
                written += self._write_namespace(namespace, workloads, now)
            except (RequestRefused, InvalidResponse) as error:
                refused[namespace] = str(error)
                if namespace not in self.refused:
                    self.log.warning("parameters.refused", namespace=namespace, error=str(error))
        self.refused = refused
        return written

    def _write_namespace(self, namespace: str, workloads: Workloads, now: int) -> bool:
        """Writes the ConfigMap of one namespace. Returns False if it need not be written."""
        built = build_parameters(list_containers(workloads, namespace), self._read_rules(namespace), now)
        before = self._written.get(namespace)
        half = format_timestamp(now + RULES_VALIDITY_SECONDS // 2)
        if before is not None and is_same_except_times(before, built.data, namespace_expires_before=half):
            return False
        if built.not_carried:
            self.log.warning(
                "parameters.incomplete",
                namespace=namespace,
                containers=len(built.not_carried),
                first=built.not_carried[0],
            )
        where = (
            {"name": PARAMETERS_NAME, "namespace": namespace}
            if self.own_namespace is None
            else {"name": name_own_parameters(namespace), "namespace": self.own_namespace}
        )
        meta = {**where, "labels": {PARAMETERS_LABEL: "v1"}}
        objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": dict(built.data)})
        self._written[namespace] = built.data
        return True

    def _read_rules(self, namespace: str) -> NamespaceRules:
        sources = tuple(
            # The definition of VPAs may not be installed.
            ListSource(
                kind=kind, group_version=version, plural=plural, namespace=namespace, optional="k8s.io" in version
            )
            for kind, version, plural in _KINDS
        )
        return summarize_rules(listing.list_kinds(self.writer.client, sources).snapshot)


def summarize_rules(snapshot: Snapshot) -> NamespaceRules:
    """Returns the rules of a namespace from its LimitRanges, quotas and autoscalers."""
    targets = map(hpa_target, filter(scales_by_utilization, snapshot.objects_of(HorizontalPodAutoscaler)))
    managed = map(vpa_target, snapshot.objects_of(VerticalPodAutoscaler))
    return NamespaceRules(
        limit_ranges=len(snapshot.objects_of(LimitRange)),
        quotas=len(snapshot.objects_of(ResourceQuota)),
        hpas=list_owner_keys(targets),
        vpas=list_owner_keys(target for target in managed if target.name),
    )


def list_containers(workloads: Workloads, namespace: str) -> dict[tuple[OwnerKey, str], ContainerUsage]:
    """Returns (owner, container) → the recommendation, for all containers of one namespace."""
    usages: dict[tuple[OwnerKey, str], ContainerUsage] = {}
    for name, containers in workloads.items():
        owner = parse_owner_key(name)
        if owner.namespace == namespace:
            usages |= {(owner, container): usage for container, usage in containers.items()}
    return usages
