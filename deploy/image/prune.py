"""Remove from an installation what Trimtab never imports: `python prune.py PREFIX`.

Of the Kubernetes client only its configuration and its transport are used. The rest is its generated models and
operations, and a second, asynchronous client with the packages that only it needs. tests/deploy/test_prune.py holds
that nothing removed here is imported; tests/e2e/test_image.py runs what is left.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

UNUSED_FOLDERS = ("kubernetes/aio", "kubernetes/client/api", "kubernetes/client/apis", "kubernetes/client/models")
"""Below site-packages."""

UNUSED_DISTRIBUTIONS = (
    "aiohappyeyeballs", "aiohttp", "aiohttp-retry", "aiosignal", "attrs", "frozenlist", "multidict", "propcache",
    "yarl",
)  # fmt: skip
"""Needed by kubernetes.aio alone."""

UNUSED_MODULES = (
    *(folder.replace("/", ".") for folder in UNUSED_FOLDERS if folder != "kubernetes/client/models"),
    "aiohappyeyeballs", "aiohttp", "aiohttp_retry", "aiosignal", "attr", "attrs", "frozenlist", "multidict",
    "propcache", "yarl",
)  # fmt: skip
"""What can no longer be imported."""

UNUSED_SUFFIXES = (".c", ".pyx", ".pxd", ".h", ".pyi")
"""Sources that wheels carry along, and types."""


def main() -> None:
    """Prune the installation at the prefix that the command line names, and print its size before and after."""
    [site] = Path(sys.argv[1]).glob("lib/python3*/site-packages")
    before = folder_bytes(site)
    prune(site)
    print(f"site-packages: {before / 1e6:.0f} MB, pruned to {folder_bytes(site) / 1e6:.0f} MB")


def prune(site: Path) -> None:
    """Remove the unused parts of this site-packages folder. The client's models become an empty package: the client
    names it when it is imported."""
    for folder in UNUSED_FOLDERS:
        shutil.rmtree(site / folder)
    (site / "kubernetes/client/models").mkdir()
    (site / "kubernetes/client/models/__init__.py").touch()
    for distribution in distributions(path=[str(site)]):
        if distribution.metadata["Name"].lower().replace("_", "-") in UNUSED_DISTRIBUTIONS:
            _remove_distribution(distribution, site)
    for path in _source_files(site):
        path.unlink()


def _remove_distribution(distribution: Distribution, site: Path) -> None:
    tops = {Path(str(file)).parts[0] for file in distribution.files or () if ".." not in Path(str(file)).parts}
    for top in tops:
        path = site / top
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _source_files(site: Path) -> Iterator[Path]:
    for path in list(site.rglob("*")):
        if path.suffix in UNUSED_SUFFIXES and path.is_file():
            yield path


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    main()
