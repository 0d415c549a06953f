"""The commands of docs/how-to/plan-a-pool.md, run as a reader would."""

import re
import shlex
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.docs.console import steps
from trimtab.cli.demo import sample_pool
from trimtab.cli.main import cli

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "plan-a-pool.md").read_text()
COMMANDS = [
    shlex.split(line)[1:] for line in re.findall(r"^\$ (trimtab (?:plan|simulate|why) .*)$", PAGE, re.MULTILINE)
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `trimtab demo --keep demo` leaves."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "pool.json").write_bytes(sample_pool.build_pool_list())
    for step in steps(PAGE):
        if step.how.startswith("file "):
            (tmp_path / step.how.removeprefix("file ")).write_text(step.command)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 12


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_of_the_page_does_what_it_says(folder: Path, command: list[str]) -> None:
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output


def test_the_pool_of_the_demo_is_compacted_within_a_screen() -> None:
    console = Console(width=120, file=StringIO())
    sample_pool.draw_sample_pool(console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) <= 20
    assert any("9 nodes → 4" in line for line in lines)
    assert any("shop/debug-shell" in line for line in lines)
