"""All files of a release in one folder: what `make release` does. The same commit gives the same bytes."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from deploy.image.lock import PYTHON
from deploy.release.archives import compress, digest_of, pack_folder
from deploy.release.image_files import (
    CannotBuildImage,
    build_product_layer,
    build_python_layer,
    fetch_wheels,
)
from deploy.release.oci_layout import ImageSettings, write_layout
from deploy.release.statements import Origin, bill_of_materials, pretty_json, provenance

ROOT = Path(__file__).resolve().parents[2]
EARLIEST_SECONDS = 315_532_800
"""The first second of 1980: a wheel is a zip archive, which holds no earlier time. It is the time of a source without
a commit."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def read_origin(version: str, repository: str, root: Path = ROOT) -> Origin:
    """Return the commit of the source and its time; without git, an origin without a commit."""
    done = subprocess.run(
        ["git", "-C", str(root), "log", "-1", "--format=%H %ct"], capture_output=True, text=True, check=False
    )
    commit, _, seconds = done.stdout.strip().partition(" ") if done.returncode == 0 else ("", "", "")
    return Origin(version, repository, commit, int(seconds or EARLIEST_SECONDS))


def has_local_changes(root: Path = ROOT) -> bool:
    """Return whether files of the source differ from its commit. Without git, False."""
    command = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and bool(done.stdout.strip())


def build_wheel_and_source(source: Path, target: Path, epoch_seconds: int) -> None:
    """Build the wheel and the sdist of the rendered source into the folder."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_seconds), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")


def find_python() -> Path:
    """Return the Python of the image on this machine. Raises CannotBuildImage if it is not here."""
    candidates = [sys.executable, shutil.which(f"python{PYTHON}")]
    candidates += [str(path) for path in Path.home().glob(f".pyenv/versions/{PYTHON}*/bin/python3")]
    for candidate in filter(None, candidates):
        question = "import sys; print('%d.%d' % sys.version_info[:2], sys.base_prefix)"
        done = subprocess.run([candidate, "-c", question], capture_output=True, text=True, check=False)
        version, _, prefix = done.stdout.strip().partition(" ")
        if version == PYTHON:
            return Path(prefix) / "bin" / f"python{PYTHON}"
    raise CannotBuildImage(f"the image needs Python {PYTHON}, which is not on this machine")


def build_image(target: Path, wheel: Path, origin: Origin, image: str) -> tuple[str, dict[str, str], str]:
    """Write the image of this machine's architecture into the folder, as an archive of an OCI layout.

    Returns the digest of the image, the SHA-256 of each shared library of the machine in it, and its Python's version.
    """
    python = find_python()
    version = subprocess.run([str(python), "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        wheels = [*fetch_wheels(ROOT, python, work, origin.epoch_seconds), wheel]
        base, product, layout = work / "base", work / "product", work / "layout"
        libraries = build_python_layer(base, python, origin.epoch_seconds)
        build_product_layer(product, python, wheels, origin.epoch_seconds)
        settings = ImageSettings(
            f"{image}:{origin.version}",
            _ARCHITECTURES[platform.machine()],
            origin.epoch_seconds,
            {
                "User": "65532:65532",
                "Env": ["PATH=/opt/trimtab/bin:/usr/local/bin", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"],
                "Entrypoint": ["/opt/trimtab/bin/trimtab"],
                "Cmd": ["--help"],
                "WorkingDir": "/",
                "ExposedPorts": {"8443/tcp": {}, "9090/tcp": {}},
                "Labels": {
                    "org.opencontainers.image.title": "trimtab",
                    "org.opencontainers.image.version": origin.version,
                    "org.opencontainers.image.revision": origin.commit,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
        )
        layers = [pack_folder(base, origin.epoch_seconds), pack_folder(product, origin.epoch_seconds)]
        digest = write_layout(layout, layers, settings)
        name = f"trimtab-{origin.version}-linux-{settings.architecture}.oci.tar"
        (target / name).write_bytes(pack_folder(layout, origin.epoch_seconds))
    return digest, {path.name: digest_of(path.read_bytes()) for path in libraries}, version


def complete_release(target: Path, rendered: Path, origin: Origin, image: str, has_image: bool) -> list[str]:
    """Write the other files of the release into the folder, which has wheel and sdist. Returns one line for each file.

    Without an image, only its digest and its archive are missing.
    """
    [wheel] = target.glob("*.whl")
    version = origin.version
    chart = compress(pack_folder(rendered / "chart", origin.epoch_seconds, prefix="trimtab/"))
    (target / f"trimtab-chart-{version}.tgz").write_bytes(chart)
    schemas = compress(pack_folder(ROOT / "deploy/schemas", origin.epoch_seconds, prefix="schemas/"))
    (target / f"trimtab-schemas-{version}.tar.gz").write_bytes(schemas)
    shutil.copy(ROOT / "deploy/schemas/podpolicy.schema.json", target)
    for name in ("krew.yaml", "artifacthub-repo.yml"):
        shutil.copy(rendered / name, target)
    libraries: dict[str, str] = {}
    python_version = None
    if has_image:
        digest, libraries, python_version = build_image(target, wheel, origin, image)
        (target / "image-digest.txt").write_text(f"{digest}\n")
    requirements = (ROOT / "deploy/image/requirements.txt").read_text()
    materials = bill_of_materials(origin, requirements, libraries, python_version)
    (target / f"trimtab-{version}.spdx.json").write_text(pretty_json(materials))
    digests = {path.name: digest_of(path.read_bytes()) for path in sorted(target.iterdir())}
    statement = pretty_json(provenance(origin, digests, image))
    (target / f"trimtab-{version}.provenance.json").write_text(statement)
    digests = {path.name: digest_of(path.read_bytes()) for path in sorted(target.iterdir())}
    lines = [f"{digest}  {name}" for name, digest in sorted(digests.items())]
    (target / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    return lines
