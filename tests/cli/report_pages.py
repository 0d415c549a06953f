"""The HTML page of every report that has one, for the tests that check pages."""

from dataclasses import replace
from pathlib import Path

from tests.cli.recommending import usage, web
from tests.cli.replay_reports import week
from tests.cli.snapshots import half_empty, snapshot, trimtab
from tests.cli.worlds import DEPLOYMENT, write
from trimtab.cli.output import format_json
from trimtab.cli.replay import page as replay
from trimtab.cli.replay.table import VIEW as REPLAY_VIEW
from trimtab.cli.reporting.emit import render_report


def replay_page() -> str:
    return render_report("html", week(), replace(REPLAY_VIEW, texts={"html": replay.render_page}))


def _write_reports(folder: Path) -> tuple[str, ...]:
    """The printed reports of a plan, of lint and of a replay."""
    (folder / "replay.json").write_text(format_json(week()))
    commands = {"plan": COMMANDS["plan"](folder), "lint": ("lint", "-f", write(folder, DEPLOYMENT))}
    for verb, words in commands.items():
        assert trimtab(*words, "-o", "json", "-O", folder / f"{verb}.json").exit_code in (0, 1)
    return tuple(str(folder / f"{name}.json") for name in ("replay", *commands))


COMMANDS = {
    "plan": lambda folder: ("plan", "--cluster", snapshot(folder, *half_empty())),
    "recommend": lambda folder: (
        "recommend",
        "--cluster",
        snapshot(folder, web(), *half_empty()),
        "--usage",
        usage(folder),
    ),
    "report": lambda folder: ("report", *_write_reports(folder)),
    "simulate": lambda folder: ("simulate", "--cluster", snapshot(folder, *half_empty())),
}
"""Report → the command that makes it, in a folder of its own."""
RENDERED = {"replay": replay_page}
"""Report → its page, for reports that are values of the tests."""
NAMES = (*RENDERED, *COMMANDS)


def build_page(name: str, folder: Path) -> str:
    """The HTML of one report."""
    if name in RENDERED:
        return RENDERED[name]()
    result = trimtab(*COMMANDS[name](folder), "-o", "html")
    assert result.exit_code == 0, result.output
    return result.stdout
