"""The image is shipped without what is never imported."""

import subprocess
import sys
from pathlib import Path

from deploy.image import prune

ROOT = Path(__file__).resolve().parents[2]

IMPORT_EVERYTHING = """
import importlib, importlib.abc, pkgutil, sys

UNUSED = set(sys.argv[1].split())

class Pruned(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in UNUSED:
            raise ModuleNotFoundError(f"{name} is pruned from the image", name=name)
        return None

sys.meta_path.insert(0, Pruned())
for package in ("trimtab", "webhook", "policies", "certs"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import exec_provider, incluster_config, kube_config
ApiClient(Configuration(host="http://127.0.0.1:1"))
print("imported")
"""


def test_everything_can_be_imported_without_what_is_pruned() -> None:
    command = [sys.executable, "-c", IMPORT_EVERYTHING, " ".join(prune.UNUSED_MODULES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "imported\n", done.stderr


def test_pruning_removes_the_folders_the_distributions_and_the_sources_alone(tmp_path: Path) -> None:
    for folder in (*prune.UNUSED_FOLDERS, "kubernetes/config", "yarl", "yarl-1.0.dist-info", "uvloop"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "yarl-1.0.dist-info/METADATA").write_text("Name: yarl\nVersion: 1.0\n")
    (tmp_path / "yarl-1.0.dist-info/RECORD").write_text("yarl/__init__.py,,\nyarl-1.0.dist-info/METADATA,,\n")
    for file in ("yarl/__init__.py", "kubernetes/config/__init__.py", "uvloop/loop.so", "uvloop/loop.c"):
        (tmp_path / file).write_text("x")
    prune.prune(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"kubernetes/client/models/__init__.py", "kubernetes/config/__init__.py", "uvloop/loop.so"}
