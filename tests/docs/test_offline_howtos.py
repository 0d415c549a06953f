"""The commands of how-tos that need no cluster, run in the order of their pages."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.console import Shell, steps
from trimtab.cli.demo import sample_pool
from trimtab.cli.main import cli

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "commands"),
    [("check-autoscaling", 5), ("replace-by-cheaper-machines", 1), ("make-room-for-large-pods", 2)],
)
def test_the_commands_of_a_page_do_what_is_shown(tmp_path: Path, page: str, commands: int) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "pool.json").write_bytes(sample_pool.build_pool_list())
    here = [
        step
        for step in steps((DOCS / "how-to" / f"{page}.md").read_text(encoding="utf-8"))
        if not step.how.startswith("not here")
    ]
    assert sum(not step.how for step in here) == commands
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with Shell(tmp_path, {"PATH": path, "COLUMNS": "120", "NO_COLOR": "1"}) as shell:
        for step in here:
            # It exits with 1 where it finds an error, and the page shows one.
            ends = f"{step.command} || test $? -eq 1" if step.command.startswith("trimtab lint") else step.command
            shell.do(replace(step, command=ends))


@pytest.mark.parametrize(
    ("page", "commands"), [("how-to/find-what-is-idle.md", 3), ("reference/use-the-command.md", 1)]
)
def test_a_command_that_reads_nothing_of_a_cluster_ends_well(page: str, commands: int) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    shown = [
        shlex.split(line)
        for line in re.findall(r"^(?:    )?trimtab ((?:reserved formula|explain) .*)$", text, re.MULTILINE)
        if "--cluster" not in line
    ]
    assert len(shown) == commands
    for command in shown:
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
