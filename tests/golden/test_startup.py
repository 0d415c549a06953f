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
    "kubernetes",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "requests",
    "rich",
    "textual",
    "yaml",
}
"""Packages that cost tens of milliseconds or more."""
LIMITS: dict[str, tuple[int, set[str]]] = {"--help": (50, set()), "plan": (420, {"rich", "yaml"})}
"""Command → how many modules it may import beside those of Python, and which heavy packages."""
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


@pytest.mark.parametrize("words", LIMITS)
def test_a_command_imports_no_more_than_it_needs(words: str, tmp_path: Path) -> None:
    arguments = ["--help"]
    if words == "plan":
        load_snapshot("pools").write(tmp_path)
        arguments = ["plan", "--cluster", "cluster.json", "--now", NOW]
    modules, seconds = measure_start(tmp_path, *arguments)
    print(f"{words}: {len(modules)} modules, {seconds:.2f} s of CPU")
    limit, allowed = LIMITS[words]
    assert HEAVY.intersection(modules) <= allowed
    assert len(modules) <= limit
