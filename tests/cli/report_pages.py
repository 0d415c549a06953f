"""The HTML page of every report that has one, for the tests that look at pages."""

from pathlib import Path

from tests.cli.recommending import usage, web
from tests.cli.snapshots import half_empty, snapshot, trimtab

COMMANDS = {
    "plan": lambda folder: ("plan", "--cluster", snapshot(folder, *half_empty())),
    "recommend": lambda folder: (
        "recommend",
        "--cluster",
        snapshot(folder, web(), *half_empty()),
        "--usage",
        usage(folder),
    ),
    "simulate": lambda folder: ("simulate", "--cluster", snapshot(folder, *half_empty())),
}
"""Report → the command that makes it, in a folder of its own."""
NAMES = tuple(COMMANDS)


def build_page(name: str, folder: Path) -> str:
    """The HTML of one report."""
    result = trimtab(*COMMANDS[name](folder), "-o", "html")
    assert result.exit_code == 0, result.output
    return result.stdout
