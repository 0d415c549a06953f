"""What a release publishes has its version, its addresses and its notes."""

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.release import __main__ as release

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY, IMAGE = "https://code.example.com/team/trimtab", "registry.example.com/team/trimtab"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    release.main(["render", str(folder), "--version", "0.1.0", "--repository", REPOSITORY, "--image", IMAGE])
    return folder


def test_the_package_names_its_addresses(rendered: Path) -> None:
    project = tomllib.loads((rendered / "source/pyproject.toml").read_text())["project"]
    assert project["urls"]["Source"] == REPOSITORY
    assert all(project[name] for name in ("authors", "classifiers", "keywords"))


def test_the_package_is_built_from_its_own_folder(rendered: Path, tmp_path: Path) -> None:
    source = rendered / "source"
    (source / "trimtab/cli/catalog.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"trimtab/cli/catalog.json", "deploy/release/catalog_hook.py"} <= names
    assert not [name for name in names if name.startswith("docs/")]


def test_links_of_its_readme_are_addresses(rendered: Path) -> None:
    readme = (rendered / "source/README.md").read_text()
    assert f"]({REPOSITORY}/raw/v0.1.0/docs/pictures/demo.svg)" in readme
    assert f"]({REPOSITORY}/blob/v0.1.0/SECURITY.md)" in readme
    assert "](docs/" not in readme


def test_its_readme_names_where_to_clone_and_which_image(rendered: Path) -> None:
    readme = (rendered / "source/README.md").read_text()
    assert f"git clone {REPOSITORY} && cd trimtab\n" in readme
    assert f"--image {IMAGE}:0.1.0\n" in readme


def test_the_chart_names_image_and_home(rendered: Path) -> None:
    about = yaml.safe_load((rendered / "chart/Chart.yaml").read_text())
    assert (about["home"], about["sources"]) == (REPOSITORY, [REPOSITORY])
    assert yaml.safe_load(about["annotations"]["artifacthub.io/images"])[0]["image"] == f"{IMAGE}:0.1.0"
    assert yaml.safe_load((rendered / "chart/values.yaml").read_text())["image"]["repository"] == IMAGE


def test_krews_manifest_gets_the_archives_digest(rendered: Path, tmp_path: Path) -> None:
    (tmp_path / "trimtab-0.1.0.tar.gz").write_bytes(b"archive")
    release.main(["krew", str(rendered), "--version", "0.1.0", "--archives", str(tmp_path)])
    [platform] = yaml.safe_load((rendered / "krew.yaml").read_text())["spec"]["platforms"]
    assert len(platform["sha256"]) == 64
    assert platform["uri"] == f"{REPOSITORY}/releases/download/v0.1.0/trimtab-0.1.0.tar.gz"
    assert (rendered / "source/trimtab" / platform["bin"]).exists()


def test_the_plugin_is_a_plain_shells() -> None:
    assert subprocess.run(["sh", "-n", str(ROOT / "trimtab/kubectl-trimtab")], check=False).returncode == 0


def project(folder: Path, changelog: str) -> Path:
    (folder / "deploy/chart").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (folder / "deploy/chart/Chart.yaml").write_text("version: 1.2.0\n")
    (folder / "CHANGELOG.md").write_text(changelog)
    return folder


def test_notes_are_the_versions_section(tmp_path: Path) -> None:
    root = project(tmp_path, "# Changelog\n\n## 1.2.0 (2026-12-01)\n\n- new\n\n## 1.1.0\n\n- old\n")
    assert release.release_notes("1.2.0", root) == "- new"
    assert release.find_problems("1.2.0", root) == []


def test_what_is_of_another_version_is_named(tmp_path: Path) -> None:
    root = project(tmp_path, "# Changelog\n\n## Unreleased\n\n- new\n")
    assert release.find_problems("1.3.0", root) == [
        "pyproject.toml: expected version 1.3.0, got 1.2.0",
        "deploy/chart/Chart.yaml: expected version 1.3.0, got 1.2.0",
        "CHANGELOG.md: expected a section `## 1.3.0` with at least one line, got none",
    ]


def test_a_release_needs_its_date(tmp_path: Path) -> None:
    root = project(tmp_path, "# Changelog\n\n## 1.2.0 (unreleased)\n\n- new\n")
    [problem] = release.find_problems("1.2.0", root)
    assert problem.endswith("got (unreleased)")


def test_entries_are_without_the_headings_of_their_groups() -> None:
    notes = "Intro.\n\n### One\n\n- a\n  b\n- c\n\n### Two\n\n- d"
    assert release.list_entries(notes) == ["a b", "c", "d"]


def test_the_changelog_has_at_most_60_lines_for_each_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert versions[0] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert [each for each in versions if re.fullmatch(r"\d+\.\d+\.\d+", each) is None] == []
    assert [each for each in versions if len(release.release_notes(each).splitlines()) > 60] == []
    assert len(release.list_entries(release.release_notes(versions[0]))) > 1


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_forms_are_yaml(path: Path) -> None:
    assert yaml.safe_load(path.read_text())


def test_workflows_call_what_a_change_must_pass() -> None:
    for name in ("ci.yml", "release.yml"):
        assert "run: .ci/run" in (ROOT / ".github/workflows" / name).read_text()


WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))}
JOBS = {(name, job): steps for name, workflow in WORKFLOWS.items() for job, steps in workflow["jobs"].items()}
MOVABLE = {"pypa/gh-action-pypi-publish"}
"""Actions that are used by a branch, in a job whose only right is the one that this action needs."""
TOGETHER = ({"id-token", "attestations"}, {"packages", "id-token"})
"""Rights that one job needs at the same time: a signature is stored beside what it signs."""


def written_rights(job: dict[str, Any]) -> set[str]:
    return {right for right, access in job.get("permissions", {}).items() if access == "write"}


@pytest.mark.parametrize("job", JOBS, ids="/".join)
def test_a_job_has_one_right_to_write(job: tuple[str, str]) -> None:
    rights = written_rights(JOBS[job])
    assert len(rights) <= 1 or rights in TOGETHER


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_itself_may_only_read(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", JOBS, ids="/".join)
def test_actions_are_pinned_by_commit(job: tuple[str, str]) -> None:
    used = [step["uses"].split("@") for step in JOBS[job]["steps"] if "uses" in step]
    movable = [action for action, version in used if re.fullmatch("[0-9a-f]{40}", version) is None]
    assert set(movable) <= MOVABLE
    assert not movable or written_rights(JOBS[job]) == {"id-token"}


@pytest.mark.parametrize("job", JOBS, ids="/".join)
def test_a_job_that_builds_or_tests_cannot_sign(job: tuple[str, str]) -> None:
    runs = " ".join(step.get("run", "") for step in JOBS[job]["steps"])
    is_build = any(word in runs for word in (".ci/run", "pip install", "python -m"))
    assert not (is_build and written_rights(JOBS[job]))
