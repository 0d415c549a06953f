"""Runs verbs of `trimtab` in this process, and reads the reports that they print."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from trimtab.cli.main import cli


def run_verb(*arguments: str | Path) -> Result:
    """Returns what `trimtab` with these arguments does."""
    return CliRunner().invoke(cli, [*map(str, arguments)])


def read_report(*arguments: str | Path) -> Any:
    """Returns the report of a run that must succeed."""
    result = run_verb(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
