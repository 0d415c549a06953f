"""The files of the image that is built without a container builder: Python with the libraries it loads, and Trimtab.

The base is no image of a registry: it is the Python 3.13 of the machine that builds, its standard library and the
shared libraries that the dynamic linker names, and the machine's root certificates. There is no shell in it.
"""

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable
from pathlib import Path

from deploy.image.prune import prune

_LEFT_OUT = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "__pycache__")
"""Parts of the standard library that no process of Trimtab imports."""
_LEFT_OUT_PATTERNS = ("config-*", "_tkinter*.so", "_test*.so", "_ctypes_test*.so", "_xxtestfuzz*.so", "*.a", "*.pyc")
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_SCRIPT = "#!/usr/local/bin/{python}\nfrom trimtab.cli import main\n\nmain()\n"
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\ntrimtab:x:65532:65532:trimtab:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\ntrimtab:x:65532:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


class CannotBuildImage(Exception):
    """The machine lacks something that the image is built from."""


def build_python_layer(root: Path, python: Path, epoch_seconds: int) -> tuple[Path, ...]:
    """Write Python, its standard library, its shared libraries and the certificates below the root.

    Returns the shared libraries of the machine that were copied. Raises CannotBuildImage if the linker does not find
    one of them.
    """
    prefix, version = _ask(python, "import sys; print(sys.base_prefix); print('%d.%d' % sys.version_info[:2])").split()
    name = f"python{version}"
    library = root / "usr/local/lib" / name
    ignore = shutil.ignore_patterns(*_LEFT_OUT, *_LEFT_OUT_PATTERNS)
    shutil.copytree(Path(prefix) / "lib" / name, library, ignore=ignore, symlinks=True)
    (library / "site-packages").mkdir()
    binary = root / "usr/local/bin" / name
    binary.parent.mkdir(parents=True)
    shutil.copy(Path(prefix, "bin", name).resolve(), binary)
    libraries = copy_libraries(root, [Path(prefix, "bin", name), *sorted(library.rglob("*.so"))])
    for path, text in _ACCOUNTS.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "tmp").mkdir(mode=0o1777)
    (root / "tmp").chmod(0o1777)
    if Path("/", _CERTIFICATES).exists():
        (root / _CERTIFICATES).parent.mkdir(parents=True)
        shutil.copy(Path("/", _CERTIFICATES), root / _CERTIFICATES)
    _compile(python, root, library, epoch_seconds)
    return libraries


def build_product_layer(root: Path, python: Path, wheels: Iterable[Path], epoch_seconds: int) -> None:
    """Unpack the wheels into site-packages below the root, remove what is never imported, and write the command."""
    name = "python" + _ask(python, "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    site = root / "usr/local/lib" / name / "site-packages"
    site.mkdir(parents=True)
    for wheel in sorted(wheels):
        unpack_wheel(wheel, site)
    prune(site)
    command = root / "opt/trimtab/bin/trimtab"
    command.parent.mkdir(parents=True)
    command.write_text(_SCRIPT.format(python=name))
    command.chmod(0o755)
    copy_libraries(root, sorted(site.rglob("*.so")))
    _compile(python, root, site, epoch_seconds)


def unpack_wheel(wheel: Path, site: Path) -> None:
    """Write the modules of the wheel into the folder; its scripts, headers and data are left out."""
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            name = re.sub(r"^[^/]+\.data/(?:purelib|platlib)/", "", entry.filename)
            if entry.is_dir() or re.match(r"[^/]+\.data/", name):
                continue
            target = site / name
            if ".." in target.relative_to(site).parts:
                raise ValueError(f"{wheel.name}: the entry {entry.filename} is outside of the wheel")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(entry))


def fetch_wheels(source: Path, python: Path, work: Path, epoch_seconds: int) -> list[Path]:
    """Download or build every package of deploy/image/requirements.txt by its hash, and return the wheels.

    What has no wheel is compiled without debugging information, which would hold the name of the folder.
    """
    image, tools, wheels = source / "deploy/image", work / "tools", work / "wheels"
    environment = {
        **os.environ,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "PIP_FIND_LINKS": "",
        "SOURCE_DATE_EPOCH": str(epoch_seconds),
        "CFLAGS": "-O2 -g0",
        "LDFLAGS": "-Wl,--build-id=none -Wl,--strip-debug",
    }
    subprocess.run([str(python), "-m", "venv", str(tools)], check=True)
    pip = [str(tools / "bin/python"), "-m", "pip", "--quiet"]
    by_hash = ["--require-hashes", "--no-deps", "--requirement"]
    subprocess.run([*pip, "install", *by_hash, str(image / "tools.txt")], check=True, env=environment)
    command = [*pip, "wheel", "--no-build-isolation", "--wheel-dir", str(wheels), *by_hash]
    subprocess.run([*command, str(image / "requirements.txt")], check=True, env=environment)
    return sorted(wheels.glob("*.whl"))


def copy_libraries(root: Path, binaries: Iterable[Path]) -> tuple[Path, ...]:
    """Copy the shared libraries that the dynamic linker loads for these binaries, unless they are below the root.

    The linker itself keeps its path, which the binaries name; libraries are found in /usr/lib. Returns what was copied.
    """
    copied = []
    for binary in binaries:
        done = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            linked = re.match(r"\s*(?:(\S+) => )?(/\S+|not found)", line)
            if linked is None:
                continue
            soname, path = linked[1], Path(linked[2])
            if linked[2] == "not found":
                raise CannotBuildImage(f"{binary} needs the library {soname}, which is not on this machine")
            if path.is_relative_to(root):
                continue
            target = root / "usr/lib" / soname if soname else root / str(path).lstrip("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path.resolve(), target)
                copied.append(path.resolve())
    return tuple(copied)


def _compile(python: Path, root: Path, folder: Path, epoch_seconds: int) -> None:
    """Write bytecode that is checked against nothing: the files of an image never change."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"SOURCE_DATE_EPOCH": str(epoch_seconds), "PYTHONHASHSEED": "0"}
    command = [str(python), "-m", "compileall", "-q", "-s", str(root), "-p", "/"]
    done = subprocess.run(
        [*command, "--invalidation-mode", "unchecked-hash", str(folder)], check=False, env=environment
    )
    # Templates with a name that ends in .py, which a few packages carry, do not compile; nothing imports them.
    if done.returncode not in (0, 1):
        raise CannotBuildImage(f"compileall ended with {done.returncode}")


def _ask(python: Path, question: str) -> str:
    return subprocess.run([str(python), "-I", "-c", question], capture_output=True, text=True, check=True).stdout
