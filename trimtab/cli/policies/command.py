"""`trimtab policies`: check, test, list, explain, compile, schema."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click
import msgspec
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli import live_cluster, output
from trimtab.cli.main import FOUND, UsageError
from trimtab.cli.policies.describe import what, whom
from trimtab.cli.policies.example_cases import cases, problems
from trimtab.cluster.config_error import ConfigError, nearest
from trimtab.cluster.snapshot import load as load_snapshot
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.lint import LintFinding, lint
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import PodPolicy, Policies
from trimtab.policy.required_action_rules import required_actions
from trimtab.policy.schema import crd, json_schema
from trimtab.policy.validating_policy import validating

_PATHS = click.argument("paths", nargs=-1, metavar="[PATH]...")


class PolicyReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    description: str
    priority: int
    mode: str
    enabled: bool
    rollout: int
    whom: list[str]
    what: list[str]
    file: str
    line: int | None


class PolicyFindingReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    policy: str
    code: str
    text: str
    page: str


class PoliciesReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Published as deploy/schemas/policies-report.schema.json."""

    api_version: str = output.API_VERSION
    kind: str = "PoliciesReport"
    policies: list[PolicyReport]
    findings: list[PolicyFindingReport]


@click.group("policies")
def verb() -> None:
    """Check, test, list and explain policies; print their schema."""


@verb.command("check")
@_PATHS
@live_cluster.options
@output.options
def check(paths: tuple[str, ...], cluster: live_cluster.ClusterOptions, output: str, output_file: str | None) -> None:
    """Are these policies sound? Every mistake of every file, with its line; exits 2 where there is one.

    What is sound but will not do what it says (an amount without its unit, a kind that no pod has, requirements that no
    node can meet, policies of equal priority that disagree, a rule that another always overrules; with `--cluster`, a
    class, namespace or node that is not there) is told as a finding, and exits 1.
    """
    policies = _load(paths)
    facts = _facts(cluster)
    report = _report(policies.all, lint(policies, facts))
    _emit(output, output_file, report, _draw_check)
    if report.findings:
        sys.exit(FOUND)


@verb.command("list")
@_PATHS
@output.options
def show(paths: tuple[str, ...], output: str, output_file: str | None) -> None:
    """The policies in these paths, or those we ship, in the order in which they decide."""
    _emit(output, output_file, _report(_load(paths).all, ()), _draw_list)


@verb.command("explain")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--policies", "paths", multiple=True, metavar="PATH", help="Default: those we ship.")
@output.options
def explain(names: tuple[str, ...], paths: tuple[str, ...], output: str, output_file: str | None) -> None:
    """What single policies mean and do, in words. Without a NAME: all of them."""
    policies = _load(paths)
    known = {policy.name: policy for policy in policies.all}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            ConfigError(file="NAME", expected="a policy", got=repr(name), todo=nearest(name, known)) for name in unknown
        )
    _emit(output, output_file, _report([known[name] for name in names or known], ()), _draw_explain)


@verb.command("schema")
@click.option("--crd", "as_crd", is_flag=True, help="The CustomResourceDefinition instead, as YAML.")
def schema(as_crd: bool) -> None:
    """The JSON Schema of a PodPolicy, for editors and CI."""
    if as_crd:
        sys.stdout.write(yaml.safe_dump(crd(), sort_keys=False, width=120))
    else:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode() + "\n")


@verb.command("compile")
@_PATHS
@click.option("--to", "target", type=click.Choice(["validatingadmissionpolicy"]), required=True, help="What to print.")
@click.option("--enforce", is_flag=True, help="The Binding says Deny; without it, Warn and Audit.")
def compile_policies(paths: tuple[str, ...], target: str, enforce: bool) -> None:
    """Print what denies pods without the webhook: a ValidatingAdmissionPolicy of each policy with a required action.

    Nothing is applied. With `--enforce` applied, a pod that the webhook could not change because it was down is denied.
    What CEL cannot say is named, and exits 1.
    """
    requiring = [policy for policy in _load(paths).all if required_actions(policy.spec.actions)]
    if not requiring:
        raise UsageError(
            [ConfigError(file=", ".join(paths) or "PATH", expected="a policy with a required action", got="none")]
        )
    made = [validating(policy, enforce=enforce) for policy in requiring]
    manifests = [manifest for one in made for manifest in one.manifests]
    if manifests:
        sys.stdout.write(yaml.safe_dump_all(manifests, sort_keys=False, width=1000))
    for one in made:
        if one.problem:
            click.echo(f"{one.policy} cannot be said in CEL: {one.problem}", err=True)
    if any(one.problem for one in made):
        sys.exit(FOUND)


@verb.command("test")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=click.Path(exists=True, path_type=Path))
@click.option("--policies", "paths", multiple=True, metavar="PATH", help="Default: those we ship.")
@click.option("--accept", is_flag=True, help="Write down as expected what is stored now; read it before you commit.")
def run_cases(folders: tuple[Path, ...], paths: tuple[str, ...], accept: bool) -> None:
    """Run the cases of policies: is each pod stored as its case says, and for these reasons?

    A case of policy web is a few files in a folder `web`: CASE.before.yaml (a manifest), CASE.after.yaml (the pod as it
    is stored), CASE.why.yaml (what the case claims) and, if anything is in the cluster, CASE.world.yaml. See
    policies/examples. Exits 1 where a case does not hold.
    """
    known = {policy.name: policy for policy in _load(paths).all}
    found = cases(folders)
    if not found:
        names = ", ".join(map(str, folders))
        raise UsageError([ConfigError(file=names, expected="at least one CASE.before.yaml", got="none")])
    failed = 0
    for case in found:
        wrong = list(problems(case, known, accept=accept))
        failed += bool(wrong)
        for line in wrong:
            click.echo(f"{case}: {line}")
    click.echo(f"{len(found) - failed} of {len(found)} cases hold.")
    if failed:
        sys.exit(FOUND)


def _load(paths: Iterable[str]) -> Policies:
    paths = tuple(paths)
    contents = (
        live_cluster.read(paths) if paths else [*live_cluster.shipped("recommended"), *live_cluster.shipped("library")]
    )
    loaded = load_policies(contents)
    if loaded.mistakes:
        raise UsageError(loaded.mistakes)
    if not loaded.policies.all:
        names = ", ".join(name for name, _ in contents)
        raise UsageError([ConfigError(file=names, expected="a PodPolicy", got="none")])
    return loaded.policies


def _facts(cluster: live_cluster.ClusterOptions) -> ClusterFacts | None:
    """None: nothing is known of any cluster."""
    contents = live_cluster.read_live_objects(cluster, ("Namespace", "Node", "PriorityClass", "RuntimeClass"))
    if not contents:
        return None
    reading = load_snapshot(contents)
    if reading.mistakes:
        raise UsageError(reading.mistakes)
    return from_snapshot(reading.snapshot)


def _report(policies: Iterable[PodPolicy], findings: Iterable[LintFinding]) -> PoliciesReport:
    return PoliciesReport(
        policies=[_policy(policy) for policy in policies],
        findings=[
            PolicyFindingReport(policy=f.policy, code=f.reason.code.name, text=f.reason.sentence, page=f.reason.page)
            for f in findings
        ],
    )


def _policy(policy: PodPolicy) -> PolicyReport:
    spec = policy.spec
    return PolicyReport(
        name=policy.name, description=spec.description, priority=spec.priority, mode=spec.mode, enabled=spec.enabled,
        rollout=spec.rollout, whom=whom(policy), what=what(policy), file=policy.file, line=policy.line,
    )  # fmt: skip


def _emit(
    form: str, output_file: str | None, report: PoliciesReport, draw: Callable[[Console, PoliciesReport], None]
) -> None:
    output.emit(form, output_file, report, lambda console: draw(console, report), "trimtab policies")


def _draw_check(console: Console, report: PoliciesReport) -> None:
    count = len(report.policies)
    console.print(f"{count} {'policy is' if count == 1 else 'policies are'} sound.", highlight=False)
    for finding in report.findings:
        console.print(Text(f"! {finding.policy}: {finding.text} ({finding.code})", style="yellow"))


def _draw_list(console: Console, report: PoliciesReport) -> None:
    table = Table(header_style="bold")
    for name in ("Priority", "Name", "Mode", "What it is for", "File"):
        table.add_column(name, overflow="fold", justify="right" if name == "Priority" else "left")
    for policy in report.policies:
        mode = policy.mode if policy.enabled else "off"
        mode += f", {policy.rollout}%" if policy.rollout < 100 else ""
        table.add_row(str(policy.priority), policy.name, mode, policy.description, policy.file)
    console.print(table)


def _draw_explain(console: Console, report: PoliciesReport) -> None:
    for policy in report.policies:
        mode = policy.mode if policy.enabled else "switched off"
        console.print(Text.assemble((policy.name, "bold"), f"  (priority {policy.priority}, {mode})"))
        console.print(Text(policy.description))
        for title, phrases in (("means", policy.whom), ("does", policy.what)):
            for phrase in phrases:
                console.print(Text.assemble((f"  {title:>5}  ", "bright_black"), phrase))
                title = ""
        console.print(Text(f"  {policy.file}:{policy.line}\n", style="bright_black"))
