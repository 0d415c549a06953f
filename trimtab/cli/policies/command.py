"""The command line of `trimtab policies`, with the subcommands check, test, list, explain, rollout, compile and
schema."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar

import click
import msgspec
from rich.text import Text

from trimtab.cli.complete_names import complete_policies
from trimtab.cli.main import EXIT_FOUND, SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart, format_yaml
from trimtab.cli.policies.compile_command import compile_policies
from trimtab.cli.policies.describe import describe_actions, describe_match
from trimtab.cli.policies.example_cases import find_cases, find_problems
from trimtab.cli.policies.rollout_command import show_rollout
from trimtab.cli.print_text import print_document, print_text
from trimtab.cli.reporting.columns import Column, Paragraph, ReportView, Section, number_column
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster.api.meta import Labels, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.format_count import format_count
from trimtab.cluster.snapshot import load_snapshot
from trimtab.compaction.order.order_definition import build_drain_order_crd
from trimtab.compaction.pool_status import build_pool_status_crd
from trimtab.inputs import live_cluster
from trimtab.inputs.cluster_policies import read_cluster_policies
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.compiled_policy_state import CompiledPolicyState
from trimtab.inputs.flags import POLICIES
from trimtab.inputs.given_policies import load_given_policies
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import Argument, option
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.lint import LintFinding, lint
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.schema import build_crd, json_schema


class PolicyReport(ReportPart, frozen=True, kw_only=True):
    """One policy, with its conditions and actions as text."""

    name: str
    """The name of the policy."""
    description: str
    """The description that its author wrote."""
    priority: int
    """The priority: of two policies that set one field, the one with the higher number decides."""
    mode: str
    """The mode: apply, warn or audit."""
    enabled: bool
    """Whether the policy is switched on, by its field `enabled`."""
    rollout: int
    """The percentage of owners that the policy applies to."""
    whom: list[str]
    """The pods that it selects: one sentence for each condition."""
    what: list[str]
    """The actions: one sentence for each."""
    file: str
    """The file of the policy, or where else it was read."""
    line: int | None
    """The line of `file` in which the policy begins; null if it was read from a cluster."""


class PolicyFindingReport(ReportPart, frozen=True, kw_only=True):
    """A reason why a valid policy will not do what it says."""

    policy: str
    """The name of the policy."""
    code: str
    """The code of the reason."""
    text: str
    """The reason as a sentence with its values."""
    page: str
    """The page of the documentation about the code, with its anchor."""


class CompiledPolicyReport(ReportPart, frozen=True, kw_only=True):
    """A policy that `trimtab policies compile` printed and that is in the cluster: the API server evaluates it."""

    kind: str
    """The kind of the policy: ValidatingAdmissionPolicy or MutatingAdmissionPolicy."""
    name: str
    """The name of the policy of the API server."""
    policy: str
    """The name of the PodPolicy from which the policy was compiled."""
    bound: bool
    """Whether a binding names the policy. Without a binding, the policy does nothing."""
    denies: bool
    """Whether the policy denies pods."""


class PoliciesReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab policies`. Published as deploy/schemas/policies-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab policies check PATH"
    api_version: str = API_VERSION
    kind: str = "PoliciesReport"
    policies: list[PolicyReport]
    """The policies that were read."""
    findings: list[PolicyFindingReport]
    """What the policies will not do although they say so."""
    compiled: list[CompiledPolicyReport] = msgspec.field(default_factory=list)
    """The compiled policies in the cluster; empty except for `policies list --cluster`."""


NO_POLICIES = "The cluster has no PodPolicy. `trimtab policies list` lists those that Trimtab includes."
MAX_FINDINGS = 15
"""The largest number of findings that a terminal lists."""


def _describe_check(report: PoliciesReport) -> Iterator[Paragraph]:
    count = len(report.policies)
    yield f"{count} {'policy is' if count == 1 else 'policies are'} valid." if count else NO_POLICIES
    for finding in report.findings:
        yield Text(f"! {finding.policy}: {finding.text} ({finding.code})", style="yellow")


def _describe_first_findings(report: PoliciesReport) -> Iterator[Paragraph]:
    """Yields what was checked, and the findings that fit on one screen."""
    yield from islice(_describe_check(report), 1 + MAX_FINDINGS)
    hidden = len(report.findings[MAX_FINDINGS:])
    if hidden:
        yield Text(f"… and {format_count(hidden, 'more finding')}: -o wide", style="bright_black")


def _describe_policies(report: PoliciesReport) -> Iterator[Text]:
    """Yields each policy in sentences."""
    for policy in report.policies:
        mode = policy.mode if policy.enabled else "switched off"
        yield Text.assemble((policy.name, "bold"), f"  (priority {policy.priority}, {mode})")
        yield Text(policy.description)
        for title, phrases in (("means", policy.whom), ("does", policy.what)):
            for phrase in phrases:
                yield Text.assemble((f"  {title:>5}  ", "bright_black"), phrase)
                title = ""
        yield Text(f"  {policy.file}:{policy.line}\n", style="bright_black")


def _format_mode(policy: PolicyReport) -> str:
    mode = policy.mode if policy.enabled else "off"
    return mode + (f", {policy.rollout}%" if policy.rollout < 100 else "")


def _describe_compiled(policy: CompiledPolicyReport) -> str:
    does = "changes pods" if policy.kind.startswith("Mutating") else "denies pods" if policy.denies else "warns"
    return does if policy.bound else "nothing, because the policy has no binding"


_POLICIES: Section[PoliciesReport, PolicyReport] = Section(
    key="policies",
    rows=lambda report: report.policies,
    columns=(
        number_column("Priority", lambda policy: policy.priority, "{}", rank=1),
        Column("Name", lambda policy: policy.name),
        Column("Mode", _format_mode),
        Column("Purpose of the policy", lambda policy: policy.description, rank=2, min_width=20),
        Column("File", lambda policy: policy.file, rank=3),
        Column("Matches", lambda policy: Text("\n".join(policy.whom)), is_wide=True, rank=5, min_width=20),
        Column("Actions", lambda policy: Text("\n".join(policy.what)), is_wide=True, rank=4, min_width=20),
    ),
    name=lambda policy: f"podpolicy/{policy.name}",
    empty=lambda report: () if report.compiled else [NO_POLICIES],
)
_COMPILED: Section[PoliciesReport, CompiledPolicyReport] = Section(
    key="compiled",
    rows=lambda report: report.compiled,
    columns=(
        Column("Evaluated by the API server", lambda policy: policy.kind, rank=1),
        Column("Name", lambda policy: policy.name),
        Column("Compiled from", lambda policy: policy.policy, rank=2),
        Column("What it does", _describe_compiled),
    ),
    name=lambda policy: f"{policy.kind.lower()}/{policy.name}",
)
_FINDINGS: Section[PoliciesReport, PolicyFindingReport] = Section(
    key="findings",
    rows=lambda report: report.findings,
    columns=(
        Column("policy", lambda finding: finding.policy),
        Column("reason", lambda finding: finding.code),
        Column("finding", lambda finding: finding.text),
    ),
    name=lambda finding: f"podpolicy/{finding.policy}",
    lines=_describe_check,
    screen_lines=_describe_first_findings,
)
_TITLE = "trimtab policies"
_LIST_VIEW: ReportView[PoliciesReport] = ReportView(title=_TITLE, sections=(_POLICIES, _COMPILED))
_CHECK_VIEW: ReportView[PoliciesReport] = ReportView(title=_TITLE, sections=(_FINDINGS,))
_EXPLAIN_VIEW: ReportView[PoliciesReport] = ReportView(
    title=_TITLE, sections=(replace(_POLICIES, lines=_describe_policies),)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesCheckOptions:
    """The options of `trimtab policies check` and `trimtab policies list`."""

    paths: Annotated[tuple[str, ...], Argument("[PATH]...", is_required=False)] = ()
    cluster: ClusterOptions
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesExplainOptions:
    """The options of `trimtab policies explain`."""

    names: Annotated[tuple[str, ...], Argument("[NAME]...", is_required=False, complete=complete_policies)] = ()
    paths: Annotated[
        tuple[str, ...], POLICIES.with_help("Policies to explain. Default: the policies that Trimtab includes.")
    ] = ()
    output: ReportOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesSchemaOptions:
    """The options of `trimtab policies schema`."""

    crd: Annotated[bool, option("--crd", help="Print Trimtab's CustomResourceDefinitions instead, as YAML.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliciesTestOptions:
    """The options of `trimtab policies test`."""

    folders: Annotated[tuple[Path, ...], Argument("FOLDER...", type=click.Path(exists=True))]
    paths: Annotated[
        tuple[str, ...], POLICIES.with_help("Policies to test. Default: the policies that Trimtab includes.")
    ] = ()
    accept: Annotated[
        bool,
        option(
            "--accept",
            help="Replace the expected pods by the present results, and write missing expectations. Review the written "
            "files before you commit them.",
        ),
    ] = False


@click.group("policies", cls=SuggestingGroup)
def verb() -> None:
    """Check, test, list and explain policies; show rollouts; print their schema."""


verb.add_command(compile_policies)
verb.add_command(show_rollout)


@verb.command("check")
@takes(PoliciesCheckOptions)
def check_policies(options: PoliciesCheckOptions) -> None:
    """Check policies: report every mistake of every file, with its line. Exits with 2 if there is one.

    A valid policy that will not work as its author expects is a finding, and the command exits with 1: an amount
    without its unit, a kind that no pod has, requirements that no node can meet, policies of equal priority that
    conflict, a rule that another one always overrules, or, with `--cluster`, a class, namespace or node that does not
    exist, or a label that no pod or namespace has.
    """
    if options.cluster.paths and not options.paths:
        cluster_policies = read_cluster_policies(options.cluster)
        for note in cluster_policies.notes:
            print_text(note, err=True)
        policies = cluster_policies.policies
    else:
        policies = load_given_policies(options.paths, is_authoring=True).all
    matches = [conditions for policy in policies for conditions in (policy.spec.match, *policy.spec.match.exclude)]
    facts, pod_labels = _read_facts(
        options.cluster, reads_pods=any(match.pod_labels or match.pod_selector is not None for match in matches)
    )
    report = _build_report(policies, lint(Policies.from_policies(*policies), facts, pod_labels))
    write_report(options.output, report, _CHECK_VIEW)
    if report.findings:
        sys.exit(EXIT_FOUND)


@verb.command("list")
@takes(PoliciesCheckOptions)
def list_policies(options: PoliciesCheckOptions) -> None:
    """List the policies in these paths, those of --cluster, or the shipped ones, in the order in which they decide.

    With `--cluster` the list also has the policies that `trimtab policies compile` printed and that were applied: the
    API server evaluates them itself, whether or not Trimtab runs.
    """
    cluster, paths = options.cluster, options.paths
    if cluster.paths and paths:
        raise UsageError(
            [
                ConfigError(
                    file="command line", expected="PATH (a file or folder with policies) or --cluster", got="both"
                )
            ]
        )
    if cluster.paths:
        cluster_policies = read_cluster_policies(cluster)
        for note in cluster_policies.notes:
            print_text(note, err=True)
        report = msgspec.structs.replace(
            _build_report(cluster_policies.policies, ()),
            compiled=[_report_compiled(*one) for one in cluster_policies.compiled],
        )
    else:
        report = _build_report(load_given_policies(paths).all, ())
    write_report(options.output, report, _LIST_VIEW)


@verb.command("explain")
@takes(PoliciesExplainOptions)
def explain_policies(options: PoliciesExplainOptions) -> None:
    """Explain in sentences which pods policies match, and what they do. Default: all policies."""
    names, policies = options.names, load_given_policies(options.paths)
    policies_by_name = {policy.name: policy for policy in policies.all}
    unknown_names = [name for name in names if name not in policies_by_name]
    if unknown_names:
        raise UsageError(
            ConfigError(file="NAME", expected="a policy", got=repr(name), todo=_suggest_policy(name, policies_by_name))
            for name in unknown_names
        )
    report = _build_report([policies_by_name[name] for name in names or policies_by_name], ())
    write_report(options.output, report, _EXPLAIN_VIEW)


@verb.command("schema")
@takes(PoliciesSchemaOptions)
def print_schema(options: PoliciesSchemaOptions) -> None:
    """Print the JSON Schema of a PodPolicy, for editors and CI."""
    if options.crd:
        definitions = [build_crd(), build_pool_status_crd(), build_drain_order_crd()]
        print_document(format_yaml(*definitions))
    else:
        print_document(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode() + "\n")


@verb.command("test")
@takes(PoliciesTestOptions)
def run_cases(options: PoliciesTestOptions) -> None:
    """Run the test cases of policies: compare each stored pod, and the reasons, with the expectation.

    A case of policy web is a few files in a folder `web`: CASE.before.yaml (a manifest), CASE.after.yaml (the pod as it
    is stored), CASE.why.yaml (the expected outcome and reasons) and, if the case needs objects of a cluster,
    CASE.world.yaml. See policies/examples. Exits with 1 if a case fails.
    """
    folders, accept = options.folders, options.accept
    policies_by_name = {policy.name: policy for policy in load_given_policies(options.paths).all}
    test_cases = find_cases(folders)
    if not test_cases:
        names = ", ".join(map(str, folders))
        raise UsageError([ConfigError(file=names, expected="at least one CASE.before.yaml", got="none")])
    failed = 0
    for case in test_cases:
        case_problems = list(find_problems(case, policies_by_name, accept=accept))
        failed += bool(case_problems)
        for line in case_problems:
            print_text(f"{case}: {line}")
    print_text(f"{len(test_cases) - failed} of {format_count(len(test_cases), 'case')} passed.")
    if failed:
        sys.exit(EXIT_FOUND)


def _read_facts(cluster: live_cluster.ClusterOptions, *, reads_pods: bool) -> tuple[ClusterFacts | None, list[Labels]]:
    """Returns the facts in the snapshot of --cluster and the labels of its pods; None and no labels without the option.

    Of a live cluster, pods are listed only with `reads_pods`, because there can be very many."""
    kinds = ("Namespace", "Node", "PriorityClass", "RuntimeClass", *(("Pod",) if reads_pods else ()))
    contents = live_cluster.read_live_objects(cluster, kinds)
    if not contents:
        return None, []
    reading = load_snapshot(contents)
    if reading.mistakes:
        raise UsageError(reading.mistakes)
    labels = [value_or(pod.metadata.labels, {}) for pod in reading.snapshot.objects_of(Pod)]
    return from_snapshot(reading.snapshot), labels


def _build_report(policies: Iterable[PodPolicy], findings: Iterable[LintFinding]) -> PoliciesReport:
    return PoliciesReport(
        policies=[_report_policy(policy) for policy in policies],
        findings=[
            PolicyFindingReport(
                policy=finding.policy,
                code=finding.reason.code.name,
                text=finding.reason.sentence,
                page=finding.reason.page_path,
            )
            for finding in findings
        ],
    )


def _report_compiled(kind: str, state: CompiledPolicyState) -> CompiledPolicyReport:
    return CompiledPolicyReport(
        kind=kind, name=state.name, policy=state.policy, bound=state.is_bound, denies=state.is_denying
    )


def _report_policy(policy: PodPolicy) -> PolicyReport:
    spec = policy.spec
    return PolicyReport(
        name=policy.name,
        description=spec.description,
        priority=spec.priority,
        mode=spec.mode,
        enabled=spec.enabled,
        rollout=spec.rollout,
        whom=describe_match(policy),
        what=describe_actions(policy),
        file=policy.file,
        line=policy.line,
    )


def _suggest_policy(name: str, names: Iterable[str]) -> str:
    if name.endswith((".yaml", ".yml", ".json")) or "/" in name:
        return f"to explain the policies in a file, use --policies {name}"
    return suggest_name(name, names) or f"the policies are {', '.join(sorted(names))}"
