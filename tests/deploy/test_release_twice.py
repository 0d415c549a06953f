"""`make release` from one commit gives the same bytes, in whatever folder; its parts are what tools expect."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from deploy.image.lock import PYTHON
from deploy.release.archives import digest_of, pack_folder
from deploy.release.build import find_python
from deploy.release.image_files import CannotBuildImage, unpack_wheel
from deploy.release.oci_layout import ImageSettings, write_layout
from deploy.release.statements import Origin, bill_of_materials, locked_packages, provenance

ROOT = Path(__file__).resolve().parents[2]
ORIGIN = Origin("0.1.0", "https://code.example.com/trimtab", "a" * 40, 1_700_000_000)


def write_files(folder: Path, names: list[str]) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    first = write_files(tmp_path / "first", ["a/x", "b"])
    second = write_files(tmp_path / "second", ["b", "a/x"])
    (second / "b").chmod(0o600)
    os.utime(second / "a/x", (1, 1))
    assert pack_folder(first, 5) == pack_folder(second, 5)
    (second / "b").chmod(0o700)
    assert pack_folder(first, 5) != pack_folder(second, 5)


def test_every_entry_belongs_to_root(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "folder", ["a"])
    (folder / "link").symlink_to("a")
    with tarfile.open(fileobj=io.BytesIO(pack_folder(folder, 5, prefix="chart/"))) as archive:
        entries = {entry.name: (entry.uid, entry.gid, entry.mtime) for entry in archive}
    assert entries == {"chart/a": (0, 0, 5), "chart/link": (0, 0, 5)}


def test_a_layout_names_everything_by_its_digest(tmp_path: Path) -> None:
    layer = pack_folder(write_files(tmp_path / "layer", ["opt/a"]), 5)
    settings = ImageSettings("registry.example.com/trimtab:0.1.0", "amd64", 5, {"User": "65532:65532"})
    digest = write_layout(tmp_path / "layout", [layer], settings)
    blobs = tmp_path / "layout/blobs/sha256"
    assert all(path.name == digest_of(path.read_bytes()) for path in blobs.iterdir())
    manifest = json.loads((blobs / digest.removeprefix("sha256:")).read_text())
    config = json.loads((blobs / manifest["config"]["digest"].removeprefix("sha256:")).read_text())
    [stored] = manifest["layers"]
    content = gzip.decompress((blobs / stored["digest"].removeprefix("sha256:")).read_bytes())
    assert config["rootfs"]["diff_ids"] == [f"sha256:{digest_of(content)}"]
    assert config["config"] == {"User": "65532:65532"}


def test_a_wheel_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("../outside", "x")
    with pytest.raises(ValueError, match="outside"):
        unpack_wheel(tmp_path / "a.whl", tmp_path / "site")


def test_a_wheels_scripts_are_left_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name in ("a/__init__.py", "a-1.data/purelib/b.py", "a-1.data/scripts/tool"):
            archive.writestr(name, "")
    unpack_wheel(tmp_path / "a.whl", tmp_path / "site")
    written = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.py")}
    assert written == {"a/__init__.py", "b.py"}


def test_the_bill_has_every_package_of_the_image_once() -> None:
    requirements = (ROOT / "deploy/image/requirements.txt").read_text()
    bill = bill_of_materials(ORIGIN, requirements, {"libc.so.6": "b" * 64}, "3.13.1")
    names = [package["name"] for package in bill["packages"]]
    locked = [name for name, _, _ in locked_packages(requirements)]
    assert sorted(names) == sorted(["trimtab", "python", "libc.so.6", *locked])
    assert len({package["SPDXID"] for package in bill["packages"]}) == len(names)


def test_the_provenance_names_commit_and_files() -> None:
    statement = provenance(ORIGIN, {"b": "2", "a": "1"}, "registry.example.com/trimtab")
    assert [subject["name"] for subject in statement["subject"]] == ["a", "b"]
    [source] = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": ORIGIN.commit}


def test_a_folder_that_holds_no_release_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    command = [sys.executable, "-m", "deploy.release", "build", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert (tmp_path / "mine").exists()


def make_release(folder: Path, has_image: bool) -> dict[str, str]:
    """Returns file → SHA-256 of a release that a copy of the source in the folder makes."""
    source = folder / "source"
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "deploy.release", "build", str(folder / "dist")]
    command += [] if has_image else ["--without-image"]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if "NewConnectionError" in done.stderr:
        pytest.skip("no network, and not everything is in pip's cache")
    assert done.returncode == 0, done.stderr
    lines = (folder / "dist/SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def can_build_image() -> bool:
    try:
        find_python()
    except CannotBuildImage:
        return False
    return shutil.which("cc") is not None


@pytest.mark.slow
def test_a_release_is_the_same_bytes_in_two_folders(tmp_path: Path) -> None:
    has_image = can_build_image()
    first = make_release(tmp_path / "first", has_image)
    second = make_release(tmp_path / "second-with-a-longer-name", has_image)
    assert first == second
    kinds = {".whl", ".tgz", ".spdx.json", ".provenance.json", "krew.yaml", "artifacthub-repo.yml", ".schema.json"}
    assert not [kind for kind in kinds if not any(name.endswith(kind) for name in first)]
    if not has_image:
        pytest.skip(f"the image was left out: no Python {PYTHON}, or no C compiler")
    [archive] = (tmp_path / "first/dist").glob("*.oci.tar")
    assert_image_runs(tmp_path, archive)


def assert_image_runs(folder: Path, archive: Path) -> None:
    """Unpacks the layers of the image and runs its entry point in them, where nothing else is."""
    layout, root = folder / "layout", folder / "root"
    root.mkdir()
    with tarfile.open(archive) as files:
        files.extractall(layout, filter="data")
    [entry] = json.loads((layout / "index.json").read_text())["manifests"]
    blobs = layout / "blobs/sha256"
    manifest = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_text())
    for layer in manifest["layers"]:
        with tarfile.open(blobs / layer["digest"].removeprefix("sha256:")) as files:
            files.extractall(root, filter="tar")
    if os.geteuid() != 0:
        pytest.skip("only root may change the root folder")
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin") or pytest.skip("chroot is not here")
    command = [chroot, "--userspec=65532:65532", str(root), "/opt/trimtab/bin/trimtab", "--version"]
    done = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "trimtab 0.1.0\n"), done.stderr
