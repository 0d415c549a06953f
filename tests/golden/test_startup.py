"""What a command imports, which decides how fast it starts. Its seconds are printed (`-s`), and not judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.snapshots import NOW, load_snapshot

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "cryptography",
    "flask",
    "gunicorn",
    "jinja2",
    "kubernetes",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyspark",
    "requests",
    "rich",
    "textual",
    "urllib3",
    "yaml",
}
"""Packages that cost tens of milliseconds or more."""
_CLUSTER, _TIMED = ("--cluster", "cluster.json"), ("--now", NOW)
_PRINTED = {"rich", "yaml"}
BUDGETS: dict[str, tuple[tuple[str, ...], int, set[str]]] = {
    "--help": ((), 30, set()),
    "--version": ((), 30, set()),
    "explain": (("headroom",), 140, _PRINTED),
    "machines rank": ((*_CLUSTER, "--pool", "batch", "--region", "us-east-1"), 287, _PRINTED),
    "recommend": ((*_CLUSTER, "--usage", "usage.csv", *_TIMED), 332, _PRINTED),
    "lint": (_CLUSTER, 355, {*_PRINTED, "pydantic"}),
    "admit": (("-f", "manifests.yaml", "--policies", "policies.yaml", *_CLUSTER), 361, {*_PRINTED, "pydantic"}),
    "policies check": (("policies.yaml",), 432, {*_PRINTED, "pydantic"}),
    "plan": ((*_CLUSTER, *_TIMED), 460, {*_PRINTED, "pydantic"}),
    "simulate": ((*_CLUSTER, *_TIMED), 470, {*_PRINTED, "pydantic"}),
}
"""Command → its arguments, how many modules it may import beside those of Python, and which heavy packages. The cluster
has policies: they need pydantic."""
_SHARED = {"page", "reporting", "reports", "selection"}
"""The packages of `trimtab.cli` that belong to no verb."""
_COUNT = """\
import json, resource, sys
from trimtab.cli.main import main
try:
    main()
except SystemExit:
    pass
used = resource.getrusage(resource.RUSAGE_SELF)
beside = [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names]
print(json.dumps({"modules": beside, "seconds": used.ru_utime + used.ru_stime}), file=sys.stderr)
"""


def measure_start(folder: Path, *arguments: str) -> tuple[list[str], float]:
    """Returns the modules that a command has imported when it ends, and its CPU seconds."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    line = [sys.executable, "-c", _COUNT, *arguments]
    result = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    measured = json.loads(result.stderr.splitlines()[-1])
    return measured["modules"], measured["seconds"]


@pytest.mark.parametrize("words", BUDGETS)
def test_a_command_imports_no_more_than_it_needs(words: str, tmp_path: Path) -> None:
    load_snapshot("pools").write(tmp_path)
    arguments, limit, allowed = BUDGETS[words]
    modules, seconds = measure_start(tmp_path, *words.split(), *arguments)
    print(f"{words}: {len(modules)} modules, {seconds:.2f} s of CPU")
    assert HEAVY.intersection(modules) <= allowed
    assert len(modules) <= limit
    packages = {path.name for path in (ROOT / "trimtab/cli").iterdir() if (path / "__init__.py").exists()}
    own = {words.split()[0], *_SHARED}
    assert not {name.split(".")[2] for name in modules if name.startswith("trimtab.cli.")} & packages - own
