"""`trimtab policies`: check, list, explain, schema."""

import sys
from collections.abc import Callable, Iterable

import click
import msgspec
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cluster.mistake import Mistake, nearest
from trimtab.cluster.snapshot import load as load_snapshot
from trimtab.command import files, output
from trimtab.command.main import FOUND, Wrong
from trimtab.command.policies.words import what, whom
from trimtab.policy.document import PodPolicy, Policies
from trimtab.policy.facts import Facts, from_snapshot
from trimtab.policy.lint import Finding, lint
from trimtab.policy.load import load_policies
from trimtab.policy.schema import crd, json_schema

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


class FindingReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    policy: str
    code: str
    text: str
    page: str


class PoliciesReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Published as deploy/schemas/policies-report.schema.json."""

    api_version: str = output.API_VERSION
    kind: str = "PoliciesReport"
    policies: list[PolicyReport]
    findings: list[FindingReport]


@click.group("policies")
def verb() -> None:
    """Check, list and explain policies; print their schema."""


@verb.command("check")
@_PATHS
@click.option("--cluster", "cluster_paths", multiple=True, metavar="SNAPSHOT", help="Also look things up in there.")
@output.options
def check(paths: tuple[str, ...], cluster_paths: tuple[str, ...], output: str, output_file: str | None) -> None:
    """Are these policies sound? Every mistake of every file, with its line; exits 2 where there is one.

    What is sound but will not do what it says (a class that does not exist in the snapshot, a rule that another
    always overrules) is told as a finding, and exits 1.
    """
    policies = _load(paths)
    facts = _facts(cluster_paths)
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
        raise Wrong(
            Mistake(file="NAME", expected="a policy", came=repr(name), todo=nearest(name, known)) for name in unknown
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


def _load(paths: Iterable[str]) -> Policies:
    paths = tuple(paths)
    contents = files.read(paths) if paths else [*files.shipped("recommended"), *files.shipped("library")]
    loaded = load_policies(contents)
    if loaded.mistakes:
        raise Wrong(loaded.mistakes)
    if not loaded.policies.all:
        names = ", ".join(name for name, _ in contents)
        raise Wrong([Mistake(file=names, expected="a PodPolicy", came="none")])
    return loaded.policies


def _facts(paths: tuple[str, ...]) -> Facts | None:
    """None: nothing is known of any cluster."""
    if not paths:
        return None
    reading = load_snapshot(files.read(paths))
    if reading.mistakes:
        raise Wrong(reading.mistakes)
    return from_snapshot(reading.snapshot)


def _report(policies: Iterable[PodPolicy], findings: Iterable[Finding]) -> PoliciesReport:
    return PoliciesReport(
        policies=[_policy(policy) for policy in policies],
        findings=[
            FindingReport(policy=f.policy, code=f.reason.code.name, text=f.reason.sentence, page=f.reason.page)
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
