"""The command line of `trimtab lint`, which reads objects and reports findings."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import click

from trimtab.autoscaling.baseline import (
    Baseline,
    DamagedBaseline,
    compare_baseline,
    compare_findings,
    decode_baseline,
    encode_baseline,
)
from trimtab.autoscaling.fixes import plan_fixes
from trimtab.autoscaling.lint import LintResult, check_snapshot, select_rules
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import parse_minor, with_usage
from trimtab.autoscaling.rules import ALL_RULES, RULES_BY_CODE
from trimtab.cli.lint.accepted_changes import accept_as_api_server
from trimtab.cli.lint.ci_formats import render_junit, render_sarif
from trimtab.cli.lint.report import VIEW, build_lint_report
from trimtab.cli.lint.write_fixes import write_fixes
from trimtab.cli.main import EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.output import write_text
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, output_form, write_report
from trimtab.cli.selection import SelectionOptions
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.yaml_documents import Document
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import FILENAME, STRICT, USAGE, WITHOUT
from trimtab.inputs.lint_objects import read_lint_objects
from trimtab.inputs.lint_usage import read_usage_history
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.node_prices import read_monthly_price
from trimtab.inputs.option import file_option, option
from trimtab.inputs.stated_quantities import QUANTITY
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities

_VIEW = replace(VIEW, texts={"sarif": partial(render_sarif, rules=ALL_RULES), "junit": render_junit})


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOutput(ReportOutput):
    """How and where the report is written."""

    form: Annotated[str, output_form("sarif", "junit")] = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintOptions:
    """The options of `trimtab lint`."""

    filenames: Annotated[tuple[str, ...], FILENAME.with_help("Manifest files or folders; - is standard input.")] = ()
    cluster: ClusterOptions
    selection: SelectionOptions
    usage: Annotated[tuple[str, ...], USAGE.with_help("Usage samples, in the forms of `trimtab recommend`.")] = ()
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    version: Annotated[
        str | None,
        option(
            "--kubernetes",
            metavar="VERSION",
            help="The Kubernetes version to check for, such as 1.37. Default: the version of the cluster.",
        ),
    ] = None
    only: Annotated[
        tuple[str, ...],
        option("--only", metavar="CODE", former=("--rule",), help="Check only this rule. You can repeat the option."),
    ] = ()
    without: Annotated[tuple[str, ...], WITHOUT] = ()
    fix_folder: Annotated[
        str | None,
        option("--fix", metavar="FOLDER", help="Write changed manifests, or apply configurations, to this folder."),
    ] = None
    baseline_file: Annotated[
        str | None,
        file_option("--baseline", help="A baseline: report only findings that this file does not contain."),
    ] = None
    new_baseline: Annotated[
        str | None,
        file_option(
            "--write-baseline",
            help="Write all findings to this file as a baseline, which later runs accept with --baseline.",
        ),
    ] = None
    is_strict: Annotated[bool, STRICT] = False
    output: LintOutput


@click.command("lint")
@takes(LintOptions)
@without_garbage_collection()
def verb(options: LintOptions) -> None:
    """Predict where HPA, VPA, budgets, autoscaler and limits work against each other.

    Each finding says what will happen and what to do. An object ignores a rule with the annotation
    trimtab.dev/lint-ignore: "L35 reason". A rule whose data is missing is reported in one line, and never counts as
    passed. With both -f and --cluster, it reports what applying the files changes: new findings, and those that are
    gone. Exits with 1 if there is an error (with --strict: a warning); `trimtab explain L35` explains a rule.
    """
    selection, fix_folder = options.selection.parse(), options.fix_folder
    # A code that is no rule is a mistake.
    mistakes = [
        ConfigError(
            file=flag,
            expected="the code of a rule of `trimtab lint`, such as L35",
            got=repr(code),
            todo=suggest_name(code, RULES_BY_CODE),
        )
        for flag, codes in (("--only", options.only), ("--without", options.without))
        for code in codes
        if code not in RULES_BY_CODE
    ]
    if mistakes:
        raise UsageError(mistakes)
    minor = _read_minor(options.version)
    baseline = _read_baseline(options.baseline_file)
    if fix_folder is not None and options.filenames and options.cluster.paths:
        raise UsageError([ConfigError(file="--fix", expected="--filename or --cluster", got="both")])
    objects = read_lint_objects(options.filenames, options.cluster, minor)
    subjects = objects.snapshot.documents
    selection.check_namespaces(one.name if str(one.kind) == "Namespace" else one.namespace for one in subjects)
    usage, usage_notes = read_usage_history(options.usage, objects.snapshot, options.stated)
    snapshot = with_usage(objects.snapshot, usage, None if usage is None else read_monthly_price(objects.snapshot))
    rules = select_rules(ALL_RULES, options.only, options.without)

    def check(snapshot: LintSnapshot) -> LintResult:
        result = check_snapshot(snapshot, rules)
        findings = tuple(
            finding
            for finding in result.findings
            if selection.includes(finding.subject.namespace, _read_labels(snapshot.documents.get(finding.subject)))
        )
        return result if selection.is_everything else replace(result, findings=findings)

    result = check(snapshot)
    comparison = None
    if objects.before is not None:
        before = with_usage(objects.before, usage, snapshot.price)
        comparison = compare_findings(check(before).findings, result.findings)
        result = replace(result, findings=comparison.new)
    if options.new_baseline is not None:
        write_text(encode_baseline(result.findings), options.new_baseline)
        baseline = decode_baseline(encode_baseline(result.findings))
    compared = compare_baseline(result.findings, baseline)
    report = build_lint_report(result, compared, snapshot, (*objects.notes, *usage_notes), comparison, objects.files)
    write_report(options.output, report, _VIEW)
    if fix_folder is not None:
        plan = plan_fixes(
            snapshot,
            lambda changed: compare_baseline(check(changed).findings, baseline).new,
            accept_as_api_server(snapshot.documents.values()),
        )
        for line in write_fixes(fix_folder, plan, snapshot, objects.contents):
            print_text(line, err=True)
    if report.counts["error"] or (options.is_strict and report.counts["warning"]):
        sys.exit(EXIT_FOUND)


def _read_labels(document: Document | None) -> Mapping[str, str]:
    """Returns the labels of an object; none if the snapshot does not have the object itself."""
    metadata = document.value.get("metadata") if document is not None else None
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return {key: str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {}


def _read_minor(text: str | None) -> int | None:
    if text is None:
        return None
    minor = parse_minor(text)
    if minor is None:
        raise UsageError([ConfigError(file="--kubernetes", expected="a version such as 1.36", got=repr(text))])
    return minor


def _read_baseline(file: str | None) -> Baseline:
    """Returns the accepted findings of the baseline file; without a file, an empty baseline. Raises UsageError if the
    file is invalid."""
    if file is None:
        return Baseline()
    try:
        return decode_baseline(Path(file).read_bytes())
    except OSError as error:
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=file, expected="a baseline", got=got)]) from None
    except DamagedBaseline as error:
        raise UsageError([ConfigError(file=file, expected=str(error))]) from None
