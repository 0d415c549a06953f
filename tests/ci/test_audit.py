"""The audit of dependencies fails for what is known and not accepted, and for nothing else."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.reasons import has_facts

ROOT = Path(__file__).resolve().parents[2]
TODAY = date(2030, 1, 15)
spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
assert spec is not None
assert spec.loader is not None
audit: Any = importlib.util.module_from_spec(spec)
sys.modules["audit"] = audit
spec.loader.exec_module(audit)


def found(*weaknesses: str, name: str = "Flask", aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    entries = [{"id": one, "aliases": list(aliases), "fix_versions": ["9.9"]} for one in weaknesses]
    return {"name": name, "version": "1.0", "vulns": entries}


SILENT = {"name": "click", "skip_reason": "Dependency not found on PyPI and could not be audited: click (8.5.1)"}


def judged(*dependencies: dict[str, Any], accepted: str = "") -> tuple[list[str], list[str]]:
    bad, message = audit.judged({"dependencies": list(dependencies)}, audit.accepted(accepted.splitlines()), TODAY)
    return bad, message


def test_nothing_known_is_well() -> None:
    assert judged(found()) == ([], ["1 packages audited"])


def test_a_known_weakness_fails_with_the_version_that_mends_it() -> None:
    [message] = judged(found("PYSEC-1"))[0]
    assert has_facts(message, "Flask 1.0", "PYSEC-1", "9.9")


@pytest.mark.parametrize("called", ["PYSEC-1", "CVE-2030-1"])
def test_an_accepted_one_is_told_with_its_reason(called: str) -> None:
    bad, message = judged(
        found("PYSEC-1", aliases=("CVE-2030-1",)), accepted=f"flask {called} until 2030-02-01: not reached"
    )
    assert bad == []
    assert has_facts(message[0], "accepted until 2030-02-01", "not reached")


def test_an_acceptance_ends() -> None:
    [message] = judged(found("X-1"), accepted="flask X-1 until 2030-01-14: soon")[0]
    assert has_facts(message, "Flask 1.0", "X-1", "9.9", "accepted until 2030-01-14")


def test_an_acceptance_of_what_is_gone_has_to_go_but_only_where_everybody_answered() -> None:
    line = "flask X-1 until 2031-01-01: soon"
    [message] = judged(found(), accepted=line)[0]
    assert has_facts(message, "flask", "X-1", "accepted", "no longer")
    assert judged(found(), SILENT, accepted=line)[0] == []


def test_where_nobody_answers_nothing_fails_and_it_says_so() -> None:
    problems, [note] = judged(SILENT)
    assert problems == []
    assert has_facts(note, "not audited", "1 of 1")


@pytest.mark.parametrize("line", ["flask X-1: soon", "flask X-1 until then: soon", "flask X-1 until 2030-01-01:"])
def test_an_acceptance_without_an_end_or_a_reason_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"accepted\.txt"):
        audit.accepted([line])


def test_what_is_accepted_now_can_be_read() -> None:
    audit.accepted((ROOT / ".ci" / "accepted.txt").read_text().splitlines())


def test_without_the_tool_it_says_not_audited_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "pip_audit.py").write_text("import sys; sys.exit('cannot reach the index')")
    done = subprocess.run(
        [sys.executable, str(ROOT / ".ci" / "audit.py")],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert has_facts(done.stdout, "not audited", "index")
