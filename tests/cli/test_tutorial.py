"""The tutorial's commands, run from a clean folder as a reader would."""

import re
import shlex
from importlib import resources
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.reasons import has_facts
from trimtab.cli.main import cli

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "first-policy.md").read_text()
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^    (\.venv/bin/trimtab .*)$", PAGE, re.MULTILINE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the reader has: manifests of their own, the policy of step 3, the snapshot of step 4."""
    demo = resources.files("trimtab.cli.demo")
    (tmp_path / "your-manifests.yaml").write_bytes((demo / "shop.yaml").read_bytes())
    (tmp_path / "cluster.yaml").write_bytes((demo / "world.yaml").read_bytes())
    (tmp_path / "mine.yaml").write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorial_has_commands() -> None:
    assert len(COMMANDS) == 4


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_of_the_tutorial_does_what_it_says(folder: Path, command: list[str]) -> None:
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == 0, result.output


def test_the_policy_of_the_tutorial_only_warns_at_first(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["admit", "-f", "your-manifests.yaml", "--policies", "mine.yaml"])
    assert has_facts(result.output, "0 of 7", "pods changed")
    assert has_facts(result.output, "does not get this")
