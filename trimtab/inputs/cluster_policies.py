"""The policies of a cluster: its PodPolicies, and the compiled ones that its API server evaluates itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.cluster.yaml_documents import Document
from trimtab.inputs import live_cluster
from trimtab.inputs.compiled_policy_state import CompiledPolicyState, read_compiled_policies
from trimtab.inputs.plan_inputs import parse_documents
from trimtab.policy.load import load_document
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.policy_kind import KIND

COMPILED_KINDS = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
ListObjects = Callable[[str], Iterable[dict[str, Any]]]
"""A function that yields all objects of a kind as plain values. Raises KubeFault."""


@dataclass(frozen=True, slots=True)
class ClusterPolicies:
    """All policies of a cluster."""

    policies: tuple[PodPolicy, ...]
    compiled: tuple[tuple[str, CompiledPolicyState], ...]
    """Kind and state of each compiled policy."""
    notes: tuple[str, ...]
    """A sentence for each policy that is left out because it has a mistake."""


def read_cluster_policies(cluster: live_cluster.ClusterOptions) -> ClusterPolicies:
    """Returns the policies of the files, or of the live cluster. A PodPolicy with a mistake is left out, as the
    webhook does."""
    if live_cluster.LIVE in cluster.paths:
        from trimtab.kube.listing import iter_pages
        from trimtab.kube.resources import LIST_SOURCES

        with live_cluster.connect_live(cluster) as client:

            def list_live(kind: str) -> Iterator[dict[str, Any]]:
                for page in iter_pages(client, LIST_SOURCES[kind]):
                    for raw in page.items:
                        # The items of a list have no kind of their own.
                        source = LIST_SOURCES[kind]
                        yield {**msgspec.json.decode(raw), "kind": kind, "apiVersion": source.group_version}

            return _collect_policies(list_live)
    documents, mistakes = parse_documents(live_cluster.read_paths(cluster.paths))
    return _collect_policies(lambda kind: (document.value for document in documents if document.kind == kind), mistakes)


def _collect_policies(list_objects: ListObjects, mistakes: Sequence[object] = ()) -> ClusterPolicies:
    from trimtab.kube.errors import NotFound

    try:
        objects = list(list_objects(KIND))
    except NotFound:
        objects = []
    loaded = [load_document(Document(file="cluster", index=n, value=value)) for n, value in enumerate(objects)]
    mistakes = [*mistakes, *(mistake for _, own_mistakes in loaded for mistake in own_mistakes)]
    compiled = [(kind, state) for kind in COMPILED_KINDS for state in read_compiled_policies(list_objects, kind) or ()]
    return ClusterPolicies(
        Policies.from_policies(*(policy for policy, _ in loaded if policy is not None)).all,
        tuple(compiled),
        tuple(f"An invalid policy is ignored: {mistake}" for mistake in mistakes),
    )
