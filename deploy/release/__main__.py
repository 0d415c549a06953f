"""The parts of a release that no other tool makes: `python -m deploy.release COMMAND`.

    check VERSION                             is everything of this version?
    notes VERSION                             its section of the changelog
    render FOLDER --version --repository --image   source, chart and manifests with addresses
    krew FOLDER --version --archives DIST     krew's manifest with the digest of the source archive
    build FOLDER [--repository] [--image] [--without-image]   all files of the release: what `make release` calls

The addresses of the repository and of the image stand nowhere in the source: whoever releases gives them.
"""

import argparse
import hashlib
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import yaml

from deploy.release.archives import digest_of
from deploy.release.build import build_wheel_and_source, complete_release, has_local_changes, read_origin

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (
    "trimtab",
    "webhook",
    "policies",
    "certs",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "deploy/release/catalog_hook.py",
    "deploy/observe",
    "docs",
)
"""What the published archives are built from. The last three are what `trimtab/cli/catalog.json` is generated from."""
EXAMPLE_REPOSITORY = "https://code.example.com/trimtab"
EXAMPLE_IMAGE = "registry.example.com/trimtab"
_RELATIVE_LINK = re.compile(r"(!?\[[^\]]*\]\()(?![a-z]+:|#)([^)]+\))")


def main(arguments: list[str] | None = None) -> None:
    """Run the command; problems go to standard error with exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "notes"):
        commands.add_parser(name).add_argument("version")
    for name, options in (("render", ("--version", "--repository", "--image")), ("krew", ("--version", "--archives"))):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        for option in options:
            command.add_argument(option, required=True)
    build = commands.add_parser("build")
    build.add_argument("folder", type=Path)
    build.add_argument("--repository", default=EXAMPLE_REPOSITORY)
    build.add_argument("--image", default=EXAMPLE_IMAGE)
    build.add_argument("--without-image", action="store_true")
    given = parser.parse_args(arguments)
    if given.command == "check":
        if problems := find_problems(given.version):
            sys.exit("\n".join(problems))
    elif given.command == "notes":
        print(release_notes(given.version))
    elif given.command == "build":
        image = re.sub(r":[^:/]+$", "", given.image)
        build_release(given.folder, given.repository.rstrip("/"), image, not given.without_image)
    elif given.command == "render":
        render(given.folder, given.version, given.repository.rstrip("/"), given.image)
    else:
        [archive] = Path(given.archives).glob(f"trimtab-{given.version}.tar.gz")
        pin_krew(given.folder, hashlib.sha256(archive.read_bytes()).hexdigest())


def build_release(target: Path, repository: str, image: str, has_image: bool) -> None:
    """Write all files of a release of this version into the folder, and print their names.

    A release that is there already is replaced; of any other folder nothing is removed.
    """
    if target.exists() and any(target.iterdir()) and not (target / "SHA256SUMS").exists():
        sys.exit(f"{target} is not empty and holds no release: remove it, or name another folder")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        rendered = Path(folder)
        render(rendered, version, repository, image)
        origin = read_origin(version, repository)
        build_wheel_and_source(rendered / "source", target, origin.epoch_seconds)
        pin_krew(rendered, digest_of((target / f"trimtab-{version}.tar.gz").read_bytes()))
        print("\n".join(complete_release(target, rendered, origin, image, has_image)))
    if has_local_changes():
        print("The source has changes that are in no commit: the provenance names the commit below them.")
    if repository == EXAMPLE_REPOSITORY:
        print(
            "The addresses are examples. Name yours: make release REPOSITORY=https://… IMAGE=registry.example.com/name"
        )


def find_problems(version: str, root: Path = ROOT) -> list[str]:
    """Return one line for each file that is not of this version."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((root / "deploy/chart/Chart.yaml").read_text())["version"]
    found = [
        f"{name}: expected version {version}, got {got}"
        for name, got in (("pyproject.toml", project), ("deploy/chart/Chart.yaml", chart))
        if got != version
    ]
    if not release_notes(version, root):
        found.append(f"CHANGELOG.md: expected a section `## {version}` with at least one line, got none")
    elif f"\n## {version} (unreleased)\n" in (root / "CHANGELOG.md").read_text():
        found.append(f"CHANGELOG.md: expected the date of the release after `## {version}`, got (unreleased)")
    return found


def release_notes(version: str, root: Path = ROOT) -> str:
    """Return the text of this version's section of the changelog; empty if there is none."""
    text = (root / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return section[1].strip() if section else ""


def list_entries(notes: str) -> list[str]:
    """Return the entries of a section of the changelog, each on one line, without the headings of their groups."""
    return [" ".join(entry.split()) for entry in re.findall(r"^- (.*(?:\n  .*)*)", notes, re.MULTILINE)]


def render(folder: Path, version: str, repository: str, image: str) -> None:
    """Write into the folder: `source` for the package index, `chart`, krew's manifest, Artifact Hub's file."""
    source, chart = folder / "source", folder / "chart"
    for name in SOURCE:
        origin, target = ROOT / name, source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, target)
    project = source / "pyproject.toml"
    project.write_text(project.read_text() + _urls(repository))
    readme = source / "README.md"
    text = readme.read_text().replace(EXAMPLE_REPOSITORY, repository).replace(EXAMPLE_IMAGE, image)
    readme.write_text(absolute_links(text, repository, version))
    shutil.copytree(ROOT / "deploy/chart", chart)
    _render_chart(chart, version, repository, image)
    (folder / "krew.yaml").write_text(_dump(krew_manifest(version, repository)))
    (folder / "artifacthub-repo.yml").write_text(_dump({"repositoryID": "", "owners": []}))


def absolute_links(text: str, repository: str, version: str) -> str:
    """Return Markdown whose links into the repository are addresses: a package index shows no relative ones."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found[1].startswith("!") else "blob"
        return f"{found[1]}{repository}/{kind}/v{version}/{found[2]}"

    return _RELATIVE_LINK.sub(link, text)


def _urls(repository: str) -> str:
    links = {"Homepage": "", "Documentation": "/tree/main/docs", "Changelog": "/blob/main/CHANGELOG.md",
             "Issues": "/issues", "Security": "/security/advisories/new", "Source": ""}  # fmt: skip
    lines = [f'{name} = "{repository}{path}"' for name, path in links.items()]
    return "\n[project.urls]\n" + "\n".join(lines) + "\n"


def _render_chart(chart: Path, version: str, repository: str, image: str) -> None:
    file = chart / "Chart.yaml"
    about: dict[str, Any] = yaml.safe_load(file.read_text())
    annotations = about.setdefault("annotations", {})
    annotations["artifacthub.io/images"] = _dump([{"name": "trimtab", "image": f"{image}:{version}"}])
    annotations["artifacthub.io/changes"] = _dump([
        {"kind": "added", "description": entry} for entry in list_entries(release_notes(version))
    ])  # fmt: skip
    annotations["artifacthub.io/links"] = _dump([{"name": "documentation", "url": f"{repository}/tree/main/docs"}])
    file.write_text(_dump({**about, "home": repository, "sources": [repository]}))
    values = chart / "values.yaml"
    text, count = re.subn(r"(?m)^(image:\n(?:  .*\n)*?  repository: ).*$", rf"\g<1>{image}", values.read_text())
    if count != 1:
        raise ValueError("values.yaml: expected one image.repository")
    values.write_text(text)


def krew_manifest(version: str, repository: str) -> dict[str, Any]:
    """Return the manifest of the kubectl plugin: a script that runs Trimtab with pipx, from the released source."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
        "metadata": {"name": "trimtab"},
        "spec": {
            "version": f"v{version}", "homepage": repository,
            "shortDescription": "Right-size pods, and plan which nodes to drain",
            "description": "Shows what Trimtab's policies would change in pods, which nodes can be drained, and why.",
            "caveats": "It needs Python 3.11 or newer with the packages of Trimtab: run `pipx install trimtab`.",
            "platforms": [{
                "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]},
                "uri": f"{repository}/releases/download/v{version}/trimtab-{version}.tar.gz",
                "sha256": "", "bin": "kubectl-trimtab",
                "files": [{"from": f"trimtab-{version}/trimtab/kubectl-trimtab", "to": "."}],
            }],
        },
    }  # fmt: skip


def pin_krew(folder: Path, digest: str) -> None:
    """Write the digest of the archive into krew's manifest."""
    file = folder / "krew.yaml"
    manifest = yaml.safe_load(file.read_text())
    manifest["spec"]["platforms"][0]["sha256"] = digest
    file.write_text(_dump(manifest))


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    main()
