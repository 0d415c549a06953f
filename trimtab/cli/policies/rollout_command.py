"""`trimtab policies rollout`: which owners a policy's rollout includes, and from which percentage it includes each
other owner."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import click

from trimtab.admission.audit.original_pod import AuditedPodReader
from trimtab.cli.complete_names import complete_policies
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, number_column
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reports.running_pods import choose_policies, parse_documents
from trimtab.cli.selection import SelectionOptions
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import SHAPES_BY_KIND, build_snapshot
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError, check_names
from trimtab.inputs.flags import POLICIES
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import Argument, option
from trimtab.policy.applicable_policies import find_applicable_policies
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.match import match_dependencies, rollout_place
from trimtab.policy.pod_context import PodContext
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.policy_kind import KIND
from trimtab.runtime.settings import Settings


class RolloutOwner(ReportPart, frozen=True, kw_only=True):
    """One owner of pods that the policy matches."""

    namespace: str
    """The namespace of the owner."""
    owner: str
    """Kind and name of the topmost owner of the pods. If a pod has no owner, kind and name of the pod."""
    pods: int
    """The number of its pods."""
    is_included: bool
    """Whether the rollout includes the owner at the percentage that was asked for."""
    joins_at: int
    """The smallest percentage at which the owner is included; 1 to 100."""


class RolloutReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab policies rollout`. Published as deploy/schemas/rollout-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab policies rollout NAME"
    api_version: str = API_VERSION
    kind: str = "RolloutReport"
    policy: str
    """The name of the policy."""
    rollout: int
    """The percentage of the rollout, from the policy or from --at."""
    owners: list[RolloutOwner]
    """The owners, sorted by the percentage from which they are included."""
    notes: list[str]
    """What the report rests on, one sentence each."""


def _describe_rollout(report: RolloutReport) -> str:
    included = sum(owner.is_included for owner in report.owners)
    plural = "" if len(report.owners) == 1 else "s"
    return (
        f"policy {report.policy} at a rollout of {report.rollout}%: {included} of {len(report.owners)} "
        f"owner{plural} of pods included"
    )


VIEW: ReportView[RolloutReport] = ReportView(
    title="trimtab policies rollout",
    before=lambda report: [_describe_rollout(report)],
    sections=(
        Section(
            key="owners",
            rows=lambda report: report.owners,
            columns=(
                Column("namespace", lambda row: row.namespace),
                Column("owner", lambda row: row.owner),
                number_column("pods", lambda row: row.pods, "{}", align="left", rank=2),
                Column("included", lambda row: "yes" if row.is_included else "no", rank=1),
                number_column("joins at", lambda row: row.joins_at, "{}%", align="left"),
            ),
            name=lambda row: f"{row.namespace}/{row.owner}",
            named=lambda report: [owner for owner in report.owners if owner.is_included],
            frame=Frame.NONE,
        ),
    ),
    notes=lambda report: report.notes,
)
"""A sentence about the rollout, and a row for each owner; the names are those of the owners that it includes."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The policies, facts and pods that were read from the cluster or from files."""

    policies: Policies
    facts: ClusterFacts
    pods: tuple[Pod, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOptions:
    """The options of `trimtab policies rollout`."""

    name: Annotated[str, Argument("NAME", complete=complete_policies)]
    percent: Annotated[
        int | None,
        option(
            "--at",
            minimum=0,
            maximum=100,
            metavar="PERCENT",
            help="Show the owners that this value of `rollout` would include.",
        ),
    ] = None
    policy_paths: Annotated[tuple[str, ...], POLICIES] = ()
    selection: SelectionOptions
    cluster: ClusterOptions
    output: ReportOutput


@click.command("rollout")
@takes(RolloutOptions)
def show_rollout(options: RolloutOptions) -> None:
    """Show which owners of running pods a policy's rollout includes, and from which percentage it includes the others.

    `rollout: 25%` includes the owners that join at 25 or less. These are always the same ones, and they stay included
    as the percentage grows.
    """
    selection = options.selection.parse()
    inputs = _read(options.cluster, options.policy_paths)
    selection.check_namespaces(pod.metadata.namespace for pod in inputs.pods)
    policy = _find_policy(inputs, options.name)
    report = build_rollout_report(
        policy,
        inputs.policies,
        inputs.facts,
        inputs.pods,
        options.percent,
        keeps=lambda pod: selection.includes(pod.metadata.namespace, value_or(pod.metadata.labels, {})),
        notes=inputs.notes,
    )
    write_report(options.output, report, VIEW)


def _read(cluster: live_cluster.ClusterOptions, paths: tuple[str, ...]) -> _Inputs:
    if not cluster.paths:
        cluster = live_cluster.ClusterOptions((live_cluster.LIVE,), cluster.kubeconfig, cluster.context)
    documents, mistakes = parse_documents(live_cluster.read_live_objects(cluster, (*SHAPES_BY_KIND, KIND)))
    snapshot_build = build_snapshot(documents)
    policies, notes, policy_mistakes = choose_policies(paths, documents)
    mistakes += [*snapshot_build.mistakes, *policy_mistakes]
    if mistakes:
        raise UsageError(mistakes)
    facts = from_snapshot(snapshot_build.snapshot, own_namespace=Settings().namespace)
    return _Inputs(policies, facts, snapshot_build.snapshot.objects_of(Pod), tuple(notes))


def _find_policy(inputs: _Inputs, name: str) -> PodPolicy:
    by_name = {policy.name: policy for policy in inputs.policies.all}
    check_names("NAME", "; ".join(("a policy", *(note.rstrip(".") for note in inputs.notes))), [name], by_name)
    return by_name[name]


def build_rollout_report(
    policy: PodPolicy,
    policies: Policies,
    facts: ClusterFacts,
    pods: Iterable[Pod],
    percent: int | None = None,
    *,
    keeps: Callable[[Pod], bool] = lambda pod: True,
    notes: Iterable[str] = (),
) -> RolloutReport:
    """Returns the owners of the pods that the policy matches, with the percentage from which each is included."""
    rollout = policy.spec.rollout if percent is None else percent
    read, counts = AuditedPodReader(match_dependencies(policies).annotations), Counter[tuple[str, str]]()
    places: dict[tuple[str, str], int] = {}
    for pod in pods:
        audited = read(pod)
        if not audited.running or not keeps(pod):
            continue
        subject = PodContext(pod=audited.alike.pod, namespace=audited.namespace, facts=facts)
        if not any(turn.policy is policy for turn in find_applicable_policies(policies, subject).matching):
            continue
        key = (audited.namespace, subject.owner_names[-1] if subject.owners else f"Pod/{audited.name}")
        counts[key] += 1
        places[key] = rollout_place(policy.name, subject.rollout_identity)
    owners = [
        RolloutOwner(
            namespace=namespace,
            owner=owner,
            pods=counts[namespace, owner],
            is_included=place < rollout,
            joins_at=place + 1,
        )
        for (namespace, owner), place in places.items()
    ]
    owners.sort(key=lambda each: (each.joins_at, each.namespace, each.owner))
    return RolloutReport(policy=policy.name, rollout=rollout, owners=owners, notes=list(notes))
