"""What can be known of the image without building it."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import tomllib
from pathlib import Path

from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

ROOT = Path(__file__).resolve().parents[2]
IMAGE = ROOT / "deploy" / "image"
_JOINED = re.compile(r"\\\n\s*")


def instructions() -> list[tuple[str, str]]:
    """(instruction, its argument), continued lines joined."""
    text = "\n".join(line for line in (IMAGE / "Containerfile").read_text().splitlines() if not line.startswith("#"))
    lines = [line for line in _JOINED.sub("", text).splitlines() if line.strip()]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def final() -> dict[str, str]:
    """The last stage: instruction → argument."""
    actual_instructions = instructions()
    begins = max(index for index, (word, _) in enumerate(actual_instructions) if word == "FROM")
    return dict(actual_instructions[begins:])


def test_there_are_two_stages_and_the_last_installs_nothing() -> None:
    assert sum(word == "FROM" for word, _ in instructions()) == 2
    assert "RUN" not in final()
    assert final()["COPY"] == "--from=build /opt/trimtab /opt/trimtab"


def test_it_runs_as_the_user_that_the_deployments_name() -> None:
    users = {
        item["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        for item in render_manifests(InstallValues())
        if item["kind"] == "Deployment"
    }
    assert {final()["USER"]} == {f"{user}:{user}" for user in users}
    assert "0" not in final()["USER"].split(":")


def test_its_entry_point_takes_the_deployments_arguments() -> None:
    assert final()["ENTRYPOINT"] == '["/opt/trimtab/bin/trimtab"]'
    for item in render_manifests(InstallValues()):
        if item["kind"] == "Deployment":
            [container] = item["spec"]["template"]["spec"]["containers"]
            assert "command" not in container


def test_base_images_are_variables_with_a_version() -> None:
    named = {word: rest for word, rest in instructions() if word == "FROM"}
    assert all(rest.startswith("${") for rest in named.values())
    bases = [rest.partition("=")[2] for word, rest in instructions() if word == "ARG"]
    assert len(bases) == 2
    for base in bases:
        tag = base.rpartition(":")[2]
        assert re.match(r"3\.13-", tag), f"{base}: a version, and never `latest`"


def pinned(file: str) -> dict[str, str]:
    """name → version; every one has a hash."""
    lines = _JOINED.sub(" ", (IMAGE / file).read_text()).splitlines()
    results = [line.split() for line in lines if line and not line.startswith("#")]
    assert all(len(words) > 1 and all(w.startswith("--hash=sha256:") for w in words[1:]) for words in results)
    return dict(words[0].split("==") for words in results)


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {_plain(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_installed_is_what_is_tested() -> None:
    tested = constraints()
    for file in ("requirements.txt", "tools.txt"):
        for name, version in pinned(file).items():
            assert tested.get(_plain(name), version) == version, "run `python -m deploy.image.lock`"


def test_everything_we_ask_for_is_installed() -> None:
    expected_dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {_plain(re.split(r"[<>=\[]", one)[0]) for one in expected_dependencies}
    assert names <= {_plain(name) for name in pinned("requirements.txt")}


def test_nothing_names_an_index() -> None:
    for file in ("requirements.txt", "tools.txt", "install.sh"):
        assert "://" not in (IMAGE / file).read_text()


def test_only_what_the_wheel_is_made_of_goes_into_the_build() -> None:
    lines = [line for line in (ROOT / ".containerignore").read_text().splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    let_in = [line[1:] for line in lines if line.startswith("!")]
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]
    assert {*packages, "pyproject.toml", "deploy/image", "README.md", "LICENSE"} <= {*let_in}
    assert not [line for line in let_in if fnmatch.fnmatch("tests", line) or fnmatch.fnmatch(".git", line)]


def test_the_install_script_is_a_plain_shells() -> None:
    assert subprocess.run(["sh", "-n", str(IMAGE / "install.sh")], check=False).returncode == 0
