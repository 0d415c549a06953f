"""A lint report as SARIF 2.1.0 and as JUnit XML, for CI systems.

SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. A CI system recognizes a finding by its
`partialFingerprints` even if lines have moved. JUnit has one test case per finding; without findings it has one case
that passes, because some systems take an empty report for a failed run.
"""

import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from trimtab.autoscaling.rule import LintRule
from trimtab.cli.lint.report import RULE_PAGE, LintFindingReport, LintReport
from trimtab.cli.output import format_json
from trimtab.cluster.control_characters import REPLACEMENT, on_one_line, replace_control_characters
from trimtab.cluster.format_count import format_count

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render_sarif(report: LintReport, rules: Iterable[LintRule]) -> str:
    """Returns the report as a SARIF log of one run."""
    driver = {"name": "trimtab lint", "version": version("trimtab"), "rules": [_sarif_rule(rule) for rule in rules]}
    notifications = [
        {"level": "note", "message": sarif_message(text), "descriptor": {"id": "not-checked"}}
        for text in report.not_checked
    ]
    run = {
        "tool": {"driver": driver},
        "results": [_sarif_result(finding) for finding in report.findings],
        "invocations": [{"executionSuccessful": True, "toolConfigurationNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
    }
    log = {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return format_json(log)


def _sarif_rule(rule: LintRule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.function.__name__,
        "shortDescription": sarif_message(rule.title + "."),
        "fullDescription": sarif_message(rule.why),
        # No helpUri: it must be an absolute URI, and the page is in the documentation of the version that you run.
        "help": sarif_message(f"{rule.fix} (Source: {rule.source}; `trimtab explain {rule.code}`, {RULE_PAGE})"),
        "defaultConfiguration": {"level": _LEVELS[rule.severity.value]},
    }


def _sarif_result(finding: LintFindingReport) -> dict[str, Any]:
    logical = "/".join(part for part in (finding.namespace, finding.kind, finding.name) if part)
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": logical, "kind": "object"}]}
    if finding.file:
        # The URI of a file. It is relative if the file is below the current directory: CI systems look for it in the
        # repository.
        path = Path(finding.file)
        if path.is_absolute() and path.is_relative_to(Path.cwd()):
            path = path.relative_to(Path.cwd())
        physical: dict[str, Any] = {
            "artifactLocation": {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}
        }
        if finding.line:
            physical["region"] = {"startLine": finding.line}
        location["physicalLocation"] = physical
    return {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": sarif_message(f"{finding.sentence} {finding.outcome} Fix: {finding.fix}"),
        "locations": [location],
        "partialFingerprints": {"trimtabObject/v1": f"{finding.rule}:{logical}:{finding.field}"},
    }


def sarif_message(text: str) -> dict[str, str]:
    """Returns a message of SARIF that shows the text as it is. A reader of SARIF takes `[text](address)` for a link and
    `{0}` for a placeholder (SARIF 2.1.0, 3.11.5 and 3.11.6), and both may be in a name."""
    return {"text": _SARIF_SIGN.sub(_escape_sarif_sign, on_one_line(text))}


_SARIF_SIGN = re.compile(r"[\\\[\]{}]")


def _escape_sarif_sign(sign: re.Match[str]) -> str:
    return sign[0] * 2 if sign[0] in "{}" else f"\\{sign[0]}"


def render_junit(report: LintReport) -> str:
    """Returns the report as JUnit XML: errors and warnings are failures, infos are passed cases with output. Control
    characters, of which XML permits none, are replaced."""
    failures = [finding for finding in report.findings if finding.severity != "info"]
    count = max(1, len(report.findings))
    suites = ElementTree.Element("testsuites", tests=str(count), failures=str(len(failures)))
    suite = ElementTree.SubElement(
        suites, "testsuite", name="trimtab lint", tests=str(count), failures=str(len(failures)), errors="0"
    )
    if not report.findings:
        ElementTree.SubElement(suite, "testcase", classname="lint", name=format_count(report.rules, "rule"))
    for finding in (each.on_one_line() for each in report.findings):
        name = f"{finding.kind} {finding.namespace}/{finding.name} {finding.field}".strip()
        case = ElementTree.SubElement(suite, "testcase", classname=finding.rule, name=name)
        if finding.file:
            case.set("file", finding.file)
        if finding.line:
            case.set("line", str(finding.line))
        text = f"{finding.sentence}\n{finding.outcome}\nFix: {finding.fix}"
        if finding.severity == "info":
            ElementTree.SubElement(case, "system-out").text = text
        else:
            failure = ElementTree.SubElement(case, "failure", type=finding.severity, message=finding.sentence)
            failure.text = text
    not_checked = "\n".join(map(on_one_line, report.not_checked))
    if not_checked:
        ElementTree.SubElement(suite, "system-out").text = not_checked
    for element in suites.iter():
        element.attrib.update({key: _xml_text(value) for key, value in element.attrib.items()})
        element.text = _xml_text(element.text) if element.text else element.text
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _xml_text(text: str) -> str:
    """Returns the text without the characters that XML 1.0 does not permit: control characters, halves of surrogate
    pairs, U+FFFE and U+FFFF."""
    return _NOT_IN_XML.sub(REPLACEMENT, replace_control_characters(text))


_NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
