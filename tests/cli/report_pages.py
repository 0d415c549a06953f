"""The HTML page of every report, for the tests that look at pages."""

from dataclasses import replace
from pathlib import Path

import yaml

from tests.cli.recommending import usage
from tests.cli.replay_reports import week
from tests.cli.snapshots import half_empty, snapshot, trimtab
from tests.cli.test_policies_rollout import POLICY as ROLLOUT
from tests.cli.test_policies_rollout import pods
from tests.cli.test_savings import NOW, STATES
from tests.cli.worlds import DEPLOYMENT, POLICY, write
from trimtab.cli.doctor import command as doctor
from trimtab.cli.doctor.command import DoctorFindingReport, DoctorReport
from trimtab.cli.output import ReasonReport, format_json
from trimtab.cli.replay import page as replay
from trimtab.cli.replay.table import VIEW as REPLAY_VIEW
from trimtab.cli.reporting.emit import render_report
from trimtab.cli.savings.report import VIEW, build_savings_report


def doctor_page() -> str:
    reason = ReasonReport(code="not-ready", text="webhook: 0 of 2 replicas <ready>", page="")
    findings = [
        DoctorFindingReport(
            check="processes", asks="Is every process ready?", severity=severity, reason=reason, fix="fix"
        )
        for severity in ("ok", "warn", "error", "unknown")
    ]
    report = DoctorReport(
        server="https://127.0.0.1:6443",
        namespace="trimtab-system",
        at="2026-01-05T00:00:00Z",
        well=False,
        counts={"ok": 1, "warn": 1, "error": 1, "unknown": 1},
        left_out=[],
        findings=findings,
    )
    return render_report("html", report, doctor.VIEW)


def savings_page() -> str:
    report = build_savings_report(STATES, 0, NOW, str)
    return render_report("html", report, VIEW)


def replay_page() -> str:
    return render_report("html", week(), replace(REPLAY_VIEW, texts={"html": replay.render_page}))


def _write_reports(folder: Path) -> tuple[str, ...]:
    """The printed reports of a plan, of lint and of a replay."""
    (folder / "replay.json").write_text(format_json(week()))
    for verb in ("plan", "lint"):
        assert trimtab(*COMMANDS[verb](folder), "-o", "json", "-O", folder / f"{verb}.json").exit_code in (0, 1)
    return tuple(str(folder / f"{name}.json") for name in ("replay", "plan", "lint"))


def _write_rollout(folder: Path) -> Path:
    path = folder / "rollout.yaml"
    path.write_text(yaml.safe_dump_all([ROLLOUT, *(pod for n in range(12) for pod in pods("team-a", f"app{n}", 2))]))
    return path


COMMANDS = {
    "admit": lambda folder: ("admit", "-f", write(folder, DEPLOYMENT), "--policies", write(folder, POLICY)),
    "lint": lambda folder: ("lint", "-f", write(folder, DEPLOYMENT)),
    "plan": lambda folder: ("plan", "--cluster", snapshot(folder, *half_empty())),
    "idle": lambda folder: ("idle", "--cluster", snapshot(folder, *half_empty())),
    "policies check": lambda folder: ("policies", "check", write(folder, POLICY)),
    "policies explain": lambda folder: ("policies", "explain"),
    "policies list": lambda folder: ("policies", "list"),
    "policies rollout": lambda folder: ("policies", "rollout", "first", "--cluster", _write_rollout(folder)),
    "recommend": lambda folder: ("recommend", "--usage", usage(folder)),
    "report": lambda folder: ("report", *_write_reports(folder)),
    "reserved formula": lambda folder: ("reserved", "formula", "--cpu", "4", "--memory", "16Gi"),
    "running": lambda folder: ("admit", "--running", "--cluster", snapshot(folder, *half_empty())),
    "simulate": lambda folder: ("simulate", "--cluster", snapshot(folder, *half_empty())),
}
"""Report → the command that makes it, in a folder of its own."""
RENDERED = {"doctor": doctor_page, "savings": savings_page, "replay": replay_page}
"""Report → its page, for reports that are values of the tests."""
NAMES = (*RENDERED, *COMMANDS)


def build_page(name: str, folder: Path) -> str:
    """The HTML of one report."""
    if name in RENDERED:
        return RENDERED[name]()
    result = trimtab(*COMMANDS[name](folder), "-o", "html")
    assert result.exit_code in (0, 1), result.output
    return result.stdout
