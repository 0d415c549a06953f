"""Reads a node, the compactor's state and the Events about the node, from a live cluster or from a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.cli.reports.plan_explanation import explain_in_plan
from trimtab.cli.why.gone_node import build_gone_node_report
from trimtab.cli.why.live_traces import read_events
from trimtab.cli.why.node_report import WhyNodeReport, build_why_node_report
from trimtab.cli.why.report import PodEventReport
from trimtab.cluster.api.core import Node
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.snapshot import build_snapshot
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import CommandFault, UsageError
from trimtab.inputs.compactor_state import ClusterLogin, CompactorState, build_compactor_state, list_state, open_client
from trimtab.inputs.leadership import Leadership
from trimtab.inputs.plan_inputs import parse_documents
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import get_plain

NODE_EVENTS_NAMESPACE = "default"
"""The namespace of Events about objects without a namespace (client-go, tools/record)."""


def read_node_from_cluster(cluster: live_cluster.ClusterOptions, name: str, namespace: str) -> WhyNodeReport:
    """Returns the report of a node of the live cluster. Raises UsageError if nothing is known of a node with this
    name."""
    login = ClusterLogin(kubeconfig=cluster.kubeconfig, context=cluster.context, namespace=namespace)
    notes: list[str] = []
    events: tuple[PodEventReport, ...] = ()
    with open_client(login) as client:
        listing = list_state(client, namespace, pods=True)
        document = get_plain(client, "Node", name)
        try:
            events = read_events(client, NODE_EVENTS_NAMESPACE, "Node", name)
        except (KubeFault, msgspec.DecodeError) as error:
            notes.append(f"Events could not be read: {error}")
    state = build_compactor_state(listing.snapshot, listing.unreadable, Leadership(), namespace)
    if document is None:
        names = [shape.metadata.name for shape in listing.snapshot.objects_of(Node)]
        return _explain_gone_node(name, names, state, events, notes)
    chain: Sequence[str] = ()
    if cluster.paths:
        chain = explain_in_plan(cluster, "node", name)
    elif name not in {node.name for node, _ in state.list_annotations()}:
        # What stays has no stored reason: a plan of the cluster as it is now knows it.
        live = live_cluster.ClusterOptions((live_cluster.LIVE,), cluster.kubeconfig, cluster.context)
        try:
            chain = explain_in_plan(live, "node", name)
        except CommandFault as fault:
            notes.append(f"No plan was made, so its reasons are missing: {fault}")
    return build_why_node_report(document, state, events, notes, chain)


def read_node_from_files(cluster: live_cluster.ClusterOptions, name: str, namespace: str) -> WhyNodeReport:
    """Returns the report of a node of a snapshot. Raises UsageError with every mistake, or if nothing is known of a
    node with this name."""
    documents, mistakes = parse_documents(
        live_cluster.read_paths(path for path in cluster.paths if path != live_cluster.LIVE)
    )
    if mistakes:
        raise UsageError(mistakes)
    nodes: dict[str, Any] = {
        str((document.value.get("metadata") or {}).get("name")): document.value
        for document in documents
        if document.kind == "Node"
    }
    built = build_snapshot(documents)
    state = build_compactor_state(built.snapshot, (), Leadership(), namespace)
    notes = ("A snapshot contains no Events.",)
    if name not in nodes:
        return _explain_gone_node(name, list(nodes), state, (), notes)
    return build_why_node_report(nodes[name], state, (), notes, explain_in_plan(cluster, "node", name))


def _explain_gone_node(
    name: str, names: Sequence[str], state: CompactorState, events: Sequence[PodEventReport], notes: Sequence[str]
) -> WhyNodeReport:
    """Returns what is known of a node that does not exist. If nothing is known, raises UsageError with the most similar
    name."""
    report = build_gone_node_report(name, state, events, notes)
    if report is None:
        expected = "the name of a node that exists, or of a deleted node about which there are decisions or Events"
        todo = suggest_name(name, names)
        raise UsageError([ConfigError(file="NAME", expected=expected, got=repr(name), todo=todo)])
    return report
