"""What the image's build does, done without a builder; the result as its user, on a root that cannot be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane import environ, ports
from tests.e2e.replicas import ROOT, _anything

USER = "65532"
LIKE_A_POD = """
python=$1 own=$2 hidden=$3; shift 3
mount --make-rprivate /
kept=$(mktemp -d)
mount --bind "$python" "$kept"
case $python in "$hidden"/*)  # where others may not look, Python may live all the same
    mount -t tmpfs -o mode=755 tmpfs "$hidden"
    mkdir -p "$python"
    mount --bind "$kept" "$python" ;;
esac
mount -t tmpfs -o uid=65532 tmpfs "$own"
mount -o remount,bind,ro /
exec setpriv --reuid 65532 --regid 65532 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


def python() -> Path:
    """The image's Python, where it is here."""
    results = [
        sys.executable,
        shutil.which("python3.13"),
        *map(str, Path.home().glob(".pyenv/versions/3.13*/bin/python3")),
    ]
    for one in filter(None, results):
        arguments = [one, "-c", "import sys; print(*sys.version_info[:2], sys.base_prefix)"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.stdout.startswith("3 13 "):
            return Path(done.stdout.split(" ", 2)[2].strip()) / "bin" / "python3"
    pytest.skip("the image's Python, 3.13, is not here")


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Where another user may look, too."""
    path = Path(tempfile.mkdtemp(prefix="trimtab-image-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def prefix(home: Path) -> Path:
    """Installed from what goes into the build, and nothing else."""
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("a C compiler is not here")
    source = home / "source"
    let_in = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
    for name in let_in:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, target)
    surroundings = {**os.environ, "PYTHON": str(python())}
    command = ["sh", str(source / "deploy/image/install.sh"), str(source), str(home / "trimtab")]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and "NewConnectionError" in done.stderr + done.stdout:
        pytest.skip("no network, and not everything is in pip's cache")
    assert done.returncode == 0, done.stderr
    return home / "trimtab"


def as_in_a_pod(prefix: Path, own: Path, *command: str) -> list[str]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("who may not make a mount namespace cannot play a pod")
    paths = map(str, (python().parents[1], own, Path.home()))
    return ["unshare", "--mount", "sh", "-euc", LIKE_A_POD, "sh", *paths, *command]


def said(prefix: Path, own: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own.mkdir(exist_ok=True)
    argv = as_in_a_pod(prefix, own, *command)
    return subprocess.run(argv, cwd="/", env=plain(), capture_output=True, text=True, timeout=120, check=False)


def plain() -> dict[str, str]:
    return {**environ.plain(), "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"}


def test_nothing_that_installs_or_compiles_is_in_it(prefix: Path) -> None:
    packages = {path.name.split("-")[0].lower() for path in prefix.glob("lib/python3.13/site-packages/*.dist-info")}
    assert "trimtab" in packages
    assert not packages & {"pip", "setuptools", "wheel", "hatchling", "pytest"}
    assert not [path for path in prefix.rglob("*") if path.suffix in (".o", ".key")]
    assert "gunicorn_h1c" in packages, "the parser in C was built"


def test_it_is_no_larger_than_it_says(prefix: Path) -> None:
    size = sum(path.stat().st_size for path in prefix.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 100e6, "docs/how-to/install-in-a-cluster.md states the size"


def test_as_its_user_on_a_read_only_root_it_works(prefix: Path, home: Path) -> None:
    version = said(prefix, home / "own", str(prefix / "bin" / "trimtab"), "--version")
    assert version.stdout.startswith("trimtab "), version.stderr
    tried = said(prefix, home / "own", "sh", "-c", f"id -u; touch /x {prefix}/x 2>/dev/null || echo cannot be written")
    assert tried.stdout.split("\n", 1) == [USER, "cannot be written\n"], tried.stderr


def test_the_webhook_serves_from_it(prefix: Path, home: Path) -> None:
    own, [port] = home / "served", ports.free(1)
    own.mkdir()
    trimtab = prefix / "bin" / "trimtab"
    serve = f"webhook --certs {own}/certs --listen 127.0.0.1:{port}"
    script = f"{trimtab} certs issue {own}/certs --name localhost && exec {trimtab} {serve}"
    process = subprocess.Popen(as_in_a_pod(prefix, own, "sh", "-euc", script), cwd="/", env=plain())
    try:
        assert ready(process, port)
    finally:
        process.terminate()
        assert process.wait(60) == 0


def ready(process: subprocess.Popen[bytes], port: int) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", timeout=5, context=_anything()) as answer:
                return bool(answer.status == 200)
        except OSError:
            time.sleep(0.1)
    return False
