"""The command line of `trimtab why`, with a subcommand per kind of object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import click
import msgspec

from trimtab.cli.catalog import find_entries, load_catalog, suggest_entries
from trimtab.cli.complete_names import complete_nodes
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reports.running_pods import AUDITED_KINDS, audit_contents, choose_policies, parse_documents
from trimtab.cli.why.node_report import NODE_VIEW
from trimtab.cli.why.report import (
    NO_TRACES,
    POD_VIEW,
    WhyPodReport,
    build_gone_report,
    build_why_report,
    find_owners,
    list_stored_decisions,
)
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compactor.settings import Settings as CompactorSettings
from trimtab.diagnosis.gone_pod import find_owner
from trimtab.diagnosis.original_values import decide_about_template
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import NAMESPACE, POLICIES, SYSTEM_NAMESPACE
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import Argument
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.pod_context import DEFAULT_SETTINGS
from trimtab.policy.podpolicy import Policies
from trimtab.policy.vpa_webhook import reach_everywhere_if
from trimtab.runtime.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyPodOptions:
    """The options of `trimtab why pod`."""

    name: Annotated[str, Argument("[NAMESPACE/]NAME")]
    namespace: Annotated[
        str | None,
        NAMESPACE.with_help(
            "The namespace of the workload that you ask about, if NAME contains none. Default: default."
        ),
    ] = None
    policy_paths: Annotated[tuple[str, ...], POLICIES] = ()
    cluster: ClusterOptions
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNodeOptions:
    """The options of `trimtab why node`."""

    name: Annotated[str, Argument("NAME", complete=complete_nodes)]
    namespace: Annotated[str, SYSTEM_NAMESPACE] = CompactorSettings().namespace
    cluster: ClusterOptions
    output: ReportOutput


class WhyGroup(SuggestingGroup):
    """The group `why`: what is neither a pod nor a node is a code or a setting, which `trimtab explain` explains."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        root = ctx.find_root().command
        is_name = args[0] not in self.commands and not args[0].startswith("-")
        if is_name and isinstance(root, click.Group) and find_entries(load_catalog(), args[0]):
            return "explain", root.get_command(ctx, "explain"), args
        return super().resolve_command(ctx, args)

    def suggest_command(self, ctx: click.Context, name: str) -> str:
        if nearest := suggest_name(name, list(self.commands)):
            return nearest
        codes = ", ".join(suggest_entries(load_catalog(), name))
        objects = "for an object, use `trimtab why node NAME` or `trimtab why pod NAMESPACE/NAME`"
        return f"did you mean {codes}? Or, {objects}" if codes else objects


@click.group("why", cls=WhyGroup)
def verb() -> None:
    """Show why an object is as it is.

    With a reason code or a setting in place of a command, it explains that, as `trimtab explain` does.
    """


@verb.command("pod")
@takes(WhyPodOptions)
def explain_pod(options: WhyPodOptions) -> None:
    """Show why a pod is as it is: who changed it on admission, what policies say of it now, and who moved it.

    Joins the pod's annotation, the policies in force (with a rollout: whether its owner is in), the decisions of the
    compactor about the pod and its predecessors, and, without --cluster FILE, its Events and the webhook's log. Each
    change has the value that the author wrote, by the template of the pod's owner, and its reason. Of a pod that is
    gone you see what the same sources still know, and what was changed in another pod of its owner. With --cluster, it
    also shows why a plan of these objects moves the pod or leaves it.
    """
    cluster, policy_paths = options.cluster, options.policy_paths
    if not cluster.paths:
        cluster = live_cluster.ClusterOptions((live_cluster.LIVE,), cluster.kubeconfig, cluster.context)
    place, _, pod_name = options.name.rpartition("/")
    pod_namespace = place or options.namespace or "default"
    contents = live_cluster.read_live_objects(cluster, AUDITED_KINDS, templates=True)
    documents, _ = parse_documents(contents)
    snapshot = build_snapshot(documents).snapshot
    is_live = live_cluster.LIVE in cluster.paths
    pods = {(pod.metadata.namespace, pod.metadata.name): pod for pod in snapshot.objects_of(Pod)}
    pod = pods.get((pod_namespace, pod_name))
    facts = from_snapshot(snapshot, vpa_reach=reach_everywhere_if(True))
    policies, policy_notes, _ = choose_policies(policy_paths, documents)
    if pod is None:
        gone = _explain_gone_pod(pod_namespace, pod_name, cluster, documents, policies, facts)
        write_report(options.output, gone, POD_VIEW)
        return
    running = audit_contents(
        contents,
        policy_paths,
        DEFAULT_SETTINGS,
        vpa_acts=True,
        is_live=is_live,
        keeps=lambda shape: (shape.metadata.namespace, shape.metadata.name) == (pod_namespace, pod_name),
    )
    traces, owners = NO_TRACES, find_owners(pod, facts)
    if is_live:
        from trimtab.cli.why.live_traces import read_live_traces

        top = str(owners[-1]) if owners else ""
        traces = read_live_traces(cluster, Settings().namespace, pod_namespace, pod_name, top)
    decided = decide_about_template(documents, pod_namespace, owners[0] if owners else None, policies, facts)
    chain: list[str] = []
    if options.cluster.paths:
        from trimtab.cli.reports.plan_explanation import explain_in_plan  # a pod of the cluster at hand needs no plan

        chain = explain_in_plan(cluster, "pod", f"{pod_namespace}/{pod_name}")
    report = build_why_report(pod, snapshot, facts, running.findings, traces, decided, chain)
    notes = [*report.notes, *(policy_notes if report.findings else ())]
    write_report(options.output, msgspec.structs.replace(report, notes=notes), POD_VIEW)


@verb.command("node")
@takes(WhyNodeOptions)
def explain_node(options: WhyNodeOptions) -> None:
    """Show why a node is as it is: who cordoned it, since when, and how to undo that.

    The report combines the node's drain annotation, the pools' last plans, the decisions of the compactor about the
    node and, without --cluster FILE, its Events. For a node that is gone, it shows whether the compactor drained it.
    Of a node that is not being drained, and of any with --cluster, it also shows why a plan of these objects drains the
    node or leaves it.
    """
    from trimtab.cli.why.node_sources import read_node_from_cluster, read_node_from_files

    name, namespace, cluster = options.name, options.namespace, options.cluster
    has_files = any(path != live_cluster.LIVE for path in cluster.paths)
    read = read_node_from_files if has_files else read_node_from_cluster
    report = read(cluster, name, namespace)
    write_report(options.output, report, NODE_VIEW)


def _explain_gone_pod(
    namespace: str,
    name: str,
    cluster: live_cluster.ClusterOptions,
    documents: Sequence[Document],
    policies: Policies,
    facts: ClusterFacts,
) -> WhyPodReport:
    """Returns what is known of a pod that does not exist. If nothing is known, raises UsageError with the most similar
    name."""
    snapshot = build_snapshot(documents).snapshot
    stored = list(list_stored_decisions(snapshot))
    owner = find_owner(namespace, name, snapshot, stored)
    chain = (owner, facts.owners.get(owner)) if owner is not None else ()
    top = str(next(filter(None, reversed(chain)), ""))
    traces = NO_TRACES
    if live_cluster.LIVE in cluster.paths:
        from trimtab.cli.why.live_traces import read_live_traces

        traces = read_live_traces(cluster, Settings().namespace, namespace, name, top)
    decided = decide_about_template(documents, namespace, owner, policies, facts)
    report = build_gone_report(namespace, name, snapshot, decided, traces)
    nearest = suggest_name(
        f"{namespace}/{name}", [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in snapshot.objects_of(Pod)]
    )
    if report is None:
        got = f"{namespace}/{name}"
        expected = "the name of a pod that exists, or of a deleted pod about which there are decisions or Events"
        raise UsageError([ConfigError(file="NAME", expected=expected, got=got, todo=nearest)])
    if not nearest:
        return report
    return msgspec.structs.replace(report, notes=[*report.notes, f"Pods with a similar name: {nearest}"])
