"""The comment on a pull request, from what `trimtab admit` and `trimtab lint` print about its manifests.

    python comment.py [--strict] HEAD_ADMIT BASE_ADMIT NEW_FINDINGS

The arguments are JSON reports: `admit` of the manifests of the pull request, `admit` of those of its base, and `lint`
of the former with a baseline of the latter. A file that is empty counts as a report without pods and findings.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trimtab.cluster.quantity import to_milli, to_whole_units
from trimtab.sizing.cost import LIST_PRICE

MARK = "<!-- trimtab -->"
"""The first line of the comment, by which the next run finds it."""
MAX_ROWS = 20
_ESCAPES = str.maketrans({character: f"&#{ord(character)};" for character in "|`@<>*_[]#~\\&"} | {"\n": " ", "\r": " "})


def main(arguments: Sequence[str]) -> None:
    """Print the comment of the three reports whose files are named; with --strict first, exit with 1 if there is a new
    finding or a refused pod."""
    is_strict = arguments[0] == "--strict"
    head, base, lint = (_read(Path(name)) for name in arguments[is_strict:])
    print(write_comment(head, base, lint))
    if is_strict and (lint.get("findings") or count_refused(head)):
        sys.exit(1)


def write_comment(head: Mapping[str, Any], base: Mapping[str, Any], lint: Mapping[str, Any]) -> str:
    """Return the comment in Markdown: the difference in cost, what policies change, and the new findings of lint."""
    pods, findings = head.get("pods", []), lint.get("findings", [])
    changed = [pod for pod in pods if pod["changes"] or pod["problem"] or pod["refused"]]
    counts = f"{_count(len(changed), 'workload')} changed by policies, {count_refused(head)} refused, "
    lines = [MARK, f"**Trimtab: {_cost_sentence(head, base)}** {counts}{_count(len(findings), 'new finding')}.", ""]
    rows = [_admit_row(pod) for pod in changed]
    lines += _table("What policies would change", ("workload", "result", "changes"), rows)
    finding_rows = [
        (_shield(finding["rule"]), _shield(_object_name(finding)), _shield(f"{finding['sentence']} {finding['fix']}"))
        for finding in findings
    ]
    lines += _table("New findings", ("rule", "object", "what, and what to do"), finding_rows)
    return "\n".join(lines)


def count_refused(report: Mapping[str, Any]) -> int:
    """Return how many pods of the report of `admit` are refused."""
    return int(report.get("totals", {}).get("refused", 0))


def monthly_cost(requests: Mapping[str, str]) -> float:
    """Return what these requests cost in dollars a month, at the list price of a general-purpose machine."""
    cpu, memory = requests.get("cpu", "0"), requests.get("memory", "0")
    return LIST_PRICE.monthly_cost(to_milli(cpu), to_whole_units(memory))


def _cost_sentence(head: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    before, stated, after = (
        monthly_cost(report.get("totals", {}).get(name, {}))
        for report, name in ((base, "requestsBefore"), (head, "requestsBefore"), (head, "requestsAfter"))
    )
    difference = stated - before
    sign = "+" if difference > 0 else "-" if difference < 0 else "±"
    with_policies = f", ${after:,.2f} after policies" if f"{after:.2f}" != f"{stated:.2f}" else ""
    amounts = f"${before:,.2f} before, ${stated:,.2f} now{with_policies}, at list prices"
    return f"requests {sign}${abs(difference):,.2f} a month ({amounts})."


def _admit_row(pod: Mapping[str, Any]) -> tuple[str, str, str]:
    changes = [
        f"{change['field']}: {_value(change['before'])} → {_value(change['after'])}" for change in pod["changes"]
    ]
    problems = [pod["problem"], (pod["refused"] or {}).get("message", "")]
    return _shield(_object_name(pod)), _shield(pod["outcome"]), _shield("; ".join(filter(None, [*problems, *changes])))


def _value(value: Any) -> str:
    return "none" if value is None else str(value)


def _object_name(item: Mapping[str, Any]) -> str:
    return "/".join(part for part in (item["kind"], item["namespace"], item["name"]) if part)


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    left_out = len(rows) - MAX_ROWS
    return [
        f"### {title}",
        "",
        f"| {' | '.join(header)} |",
        "|" + "---|" * len(header),
        *(f"| {' | '.join(row)} |" for row in rows[:MAX_ROWS]),
        *(["", f"{left_out} more: run `trimtab admit` or `trimtab lint` on these files."] if left_out > 0 else []),
        "",
    ]


def _shield(text: Any) -> str:
    """Return the text so that Markdown shows it as it is: manifests are written by those who open pull requests."""
    return str(text).translate(_ESCAPES)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _read(path: Path) -> dict[str, Any]:
    text = path.read_text()
    report: dict[str, Any] = json.loads(text) if text.strip() else {}
    return report


if __name__ == "__main__":
    main(sys.argv[1:])
