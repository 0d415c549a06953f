"""The floor plan is held by tools; here each of them is seen to fail on a planted violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the house to break."""
    for name in ("trimtab", "webhook", "policies", "certs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(house: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=house, capture_output=True, text=True, timeout=120, check=False)


def contracts(house: Path) -> "subprocess.CompletedProcess[str]":
    return run(house, str(BIN / "lint-imports"), "--no-cache")


def plant(house: Path, file: str, line: str) -> None:
    path = house / file
    path.write_text(path.read_text() + f"\n{line}\n")


def test_the_house_as_it_stands_keeps_its_contracts(house: Path) -> None:
    assert contracts(house).returncode == 0


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("trimtab/cluster/quantity.py", "import trimtab.policy.decide", "arrows point down"),
        ("trimtab/policy/decide.py", "import trimtab.admission.json_patch", "arrows point down"),
        ("trimtab/runtime/clock.py", "import webhook.app", "arrows point down"),
        ("trimtab/admission/json_patch.py", "import kubernetes", "nothing pure sees a door"),
        ("trimtab/policy/match.py", "import os", "nothing pure sees a door"),
        ("trimtab/sizing/cost.py", "import trimtab.compaction.plan", "arrows point down"),
        ("trimtab/histogram/daily_window.py", "import time", "nothing pure sees a door"),
        ("trimtab/runtime/files.py", "import trimtab.policy.decide", "doors import nothing pure"),
        (
            "trimtab/compaction/search/drain_order.py",
            "import trimtab.compaction.drain.start",
            "a search knows of no drain",
        ),
        ("certs/pem_files.py", "import trimtab.cluster.quantity", "certs is a leaf"),
        ("policies/__init__.py", "import certs", "policies holds documents"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(house: Path, file: str, line: str, contract: str) -> None:
    plant(house, file, line)
    process = contracts(house)
    broken = [row for row in process.stdout.splitlines() if row.endswith("BROKEN")]
    assert process.returncode != 0
    assert any(contract in row for row in broken), process.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("trimtab/policy/match.py", "import time"),
        ("trimtab/cluster/owner.py", "from datetime import datetime\nNOW = datetime.now()"),
        ("trimtab/admission/json_patch.py", "import socket"),
        ("trimtab/policy/decide.py", "import random"),
    ],
)
def test_a_clock_or_a_socket_in_a_pure_room_is_refused(house: Path, file: str, line: str) -> None:
    plant(house, file, line)
    process = run(house, str(BIN / "ruff"), "check", "--select", "TID251", "--no-cache", file)
    assert process.returncode == 1
    assert "TID251" in process.stdout


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("def untyped(x):\n    return x", "no-untyped-def"),
        ("def total(parts: list[float]) -> float:\n    return round(sum(part for part in parts), 2)", "float-sum"),
        ("def total(parts: dict[str, float]) -> float:\n    return max(0, sum(parts.values()))", "float-sum"),
    ],
)
def test_a_function_without_types_and_a_sum_of_floats_are_refused(house: Path, line: str, code: str) -> None:
    plugin = Path("tests/architecture/float_sums.py")
    (house / plugin).parent.mkdir(parents=True)
    shutil.copy(ROOT / plugin, house / plugin)
    plant(house, "trimtab/cluster/owner.py", line)
    process = run(house, sys.executable, "-m", "mypy", "--no-incremental", "trimtab/cluster/owner.py")
    assert process.returncode == 1
    assert code in process.stdout
