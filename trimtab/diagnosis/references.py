"""Reads which of the objects that policies, pools and processes name exist in the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.cluster.node import NodeInfo, node_from_api
from trimtab.cluster.processes import account_name
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.snapshot import Snapshot
from trimtab.diagnosis.permissions import ReviewAccess, missing_permissions, resize_permissions, resizing_process
from trimtab.installation.names import PROCESSES

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.policy.podpolicy import Policies

PROTECTING_KINDS = ("PodDisruptionBudget", "NetworkPolicy")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesState:
    """Which of the objects that policies, pools and processes name exist in the cluster."""

    dangling: tuple[tuple[str, Reason], ...] = ()
    """(policy, reason) for each object that a policy names and that does not exist in the cluster."""
    nodes: tuple[NodeInfo, ...] | None = None
    """All nodes; None if they were not read."""
    images: Mapping[str, str] = field(default_factory=dict)
    """Process → the image of its Deployment; processes without a Deployment are left out."""
    protecting: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The names of the objects in Trimtab's namespace that protect the processes, by kind."""
    resizing: tuple[str, ...] = ()
    """The names of the policies in force that have `running: resize`."""
    missing_resize_permissions: tuple[str, ...] | Unreadable = ()
    """The permissions to resize running pods that the compactor's account lacks, as text.

    Empty if no policy resizes running pods."""


REFERENCE_CODES = frozenset(
    {
        "not-in-the-cluster",
        "runtimeclass-not-found",
        "priorityclass-not-found",
        "no-node-can-match",
        "image-chosen-by-author",
        "exclude-chosen-by-author",
    }
)
"""The codes of `policies check` for an object that does not exist in the cluster."""


def read_references(client: Client, namespace: str, review_access: ReviewAccess) -> ReferencesState:
    """Read nodes, RuntimeClasses, namespaces, policies and Trimtab's own objects. Raises any KubeFault."""
    from trimtab.cluster.api.core import Node
    from trimtab.kube.errors import NotFound
    from trimtab.kube.listing import list_kinds
    from trimtab.kube.objects import get_plain
    from trimtab.kube.resources import LIST_SOURCES
    from trimtab.policy.actions.requests_of_policies import policies_that_resize

    kinds = ("Namespace", "Node", "PriorityClass", "RuntimeClass")
    snapshot = list_kinds(client, [LIST_SOURCES[kind] for kind in kinds]).snapshot
    try:
        documents = list(_list_plain(client, "PodPolicy"))
    except NotFound:
        documents = []
    deployments = {name: get_plain(client, "Deployment", account_name(name), namespace) for name in PROCESSES}
    protecting = {
        kind: frozenset(
            name for name in map(account_name, PROCESSES) if get_plain(client, kind, name, namespace) is not None
        )
        for kind in PROTECTING_KINDS
    }
    policies = load_policies(documents)
    resizing = tuple(sorted(policy.name for policy in policies_that_resize(policies)))
    return ReferencesState(
        dangling=find_dangling(policies, snapshot),
        nodes=tuple(map(node_from_api, snapshot.objects_of(Node))),
        images={name: _image(deployment) for name, deployment in deployments.items() if deployment is not None},
        protecting=protecting,
        resizing=resizing,
        missing_resize_permissions=find_missing_resize_permissions(namespace, review_access) if resizing else (),
    )


def find_missing_resize_permissions(namespace: str, review_access: ReviewAccess) -> tuple[str, ...] | Unreadable:
    """Returns the permissions to resize running pods that the compactor's account lacks, as text."""
    from trimtab.kube.errors import KubeFault

    try:
        return missing_permissions(resize_permissions(), resizing_process(), namespace, review_access)
    except KubeFault as error:
        return Unreadable("the permissions of the compactor", str(error))


def load_policies(documents: Iterable[Mapping[str, Any]]) -> Policies:
    """Returns the policies in force. Invalid documents are ignored."""
    from trimtab.cluster.yaml_documents import Document
    from trimtab.policy.load import load_document
    from trimtab.policy.podpolicy import Policies

    loaded = (load_document(Document(file="cluster", index=n, value=dict(one)))[0] for n, one in enumerate(documents))
    return Policies.from_policies(*(policy for policy in loaded if policy is not None and policy.spec.enabled))


def find_dangling(policies: Policies, snapshot: Snapshot) -> tuple[tuple[str, Reason], ...]:
    """Returns (policy, reason) for each object that a policy in force names and that is not in the snapshot."""
    from trimtab.policy.cluster_facts import from_snapshot
    from trimtab.policy.lint import lint

    return tuple(
        (finding.policy, finding.reason)
        for finding in lint(policies, from_snapshot(snapshot))
        if finding.reason.code.name in REFERENCE_CODES
    )


def _list_plain(client: Client, kind: str) -> Iterator[dict[str, Any]]:
    from trimtab.kube.listing import iter_pages
    from trimtab.kube.resources import LIST_SOURCES

    for page in iter_pages(client, LIST_SOURCES[kind]):
        for raw in page.items:
            yield {**msgspec.json.decode(raw), "kind": kind, "apiVersion": LIST_SOURCES[kind].group_version}


def _image(deployment: Mapping[str, Any]) -> str:
    containers = ((deployment.get("spec") or {}).get("template") or {}).get("spec", {}).get("containers") or [{}]
    return str(containers[0].get("image", ""))
