"""The steps of `action.yml`, run in a repository with a pull request, against a stand-in for GitHub's command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.action.comment import MARK, write_comment

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
GH = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in *--jq*) cat "$COMMENTS" ;; esac
"""


def deployment(cpu: str, name: str = "web") -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: "{name}", namespace: shop}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1
          resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}}}
"""


@dataclass
class PullRequest:
    """A repository whose last commit is the pull request and whose first one is its base, and a runner."""

    folder: Path
    base: str

    def run_step(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder / "runner"),
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_REPOSITORY": "team/shop",
            "CALLS": str(self.folder / "calls"),
            "COMMENTS": str(self.folder / "comments"),
            "PYTHONPATH": str(ROOT),
            "FILES": "manifests",
            "POLICIES": "",
            "BASE": self.base,
            "NUMBER": "7",
            "STRICT": "false",
            **inputs,
        }
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
            cwd=self.folder / "repository",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    @property
    def comment(self) -> str:
        return (self.folder / "runner/trimtab-reports/comment.md").read_text()

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def pull_request(tmp_path: Path) -> PullRequest:
    repository, executables = tmp_path / "repository", tmp_path / "runner/trimtab/bin"
    (repository / "manifests").mkdir(parents=True)
    executables.mkdir(parents=True)
    (executables / "trimtab").write_text(f'#!/bin/sh\nexec {sys.executable} -m trimtab "$@"\n')
    (executables / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gh").write_text(GH)
    for script in (*executables.iterdir(), tmp_path / "bin/gh"):
        script.chmod(0o755)
    (tmp_path / "comments").touch()

    def git(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *words], cwd=repository, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    (repository / "manifests/web.yaml").write_text(deployment("500m"))
    git("add", ".")
    git("commit", "--quiet", "-m", "base")
    base = git("rev-parse", "HEAD")
    (repository / "manifests/web.yaml").write_text(deployment("2"))
    (repository / "manifests/new.yaml").write_text(deployment("1", name="cart"))
    git("add", ".")
    git("commit", "--quiet", "-m", "change")
    return PullRequest(tmp_path, base)


def test_the_comment_has_cost_changes_and_only_new_findings(pull_request: PullRequest) -> None:
    done = pull_request.run_step("Report")
    assert done.returncode == 0, done.stderr
    first, headline, *_ = pull_request.comment.splitlines()
    assert first == MARK
    # 4 replicas with 500m and 1 GiB before; 4 with 2 and 1 GiB, and 4 with 1 and 1 GiB now.
    before, now = (float(amount) for amount in re.findall(r"\$([\d.]+) (?:before|now)", headline))
    assert before == pytest.approx(4 * (0.5 + 1 / 7.5) * 0.096 / (2 + 8 / 7.5) * 730, abs=0.01)
    assert now == pytest.approx(4 * (3 + 2 / 7.5) * 0.096 / (2 + 8 / 7.5) * 730, abs=0.01)
    findings = pull_request.comment.split("### New findings")[1]
    assert "Deployment/shop/cart" in findings
    assert "Deployment/shop/web" not in findings
    assert (pull_request.folder / "summary.md").read_text() == pull_request.comment


def test_policies_are_those_of_the_base(pull_request: PullRequest) -> None:
    done = pull_request.run_step("Report", POLICIES="own.yaml")
    assert done.returncode != 0
    assert "trimtab-reports/base/own.yaml" in done.stderr


def test_a_path_that_is_nowhere_is_an_empty_report(pull_request: PullRequest) -> None:
    assert pull_request.run_step("Report", FILES="charts").returncode == 0
    assert "$0.00" in pull_request.comment


def test_an_input_is_never_a_command(pull_request: PullRequest) -> None:
    pull_request.run_step("Report", FILES="manifests $(touch stolen) ;touch stolen", BASE=pull_request.base)
    assert not (pull_request.folder / "repository/stolen").exists()
    assert "${{" not in "".join(step["run"] for step in STEPS.values())


def test_the_comment_is_written_once_and_then_changed(pull_request: PullRequest) -> None:
    pull_request.run_step("Report")
    assert pull_request.run_step("Comment").returncode == 0
    (pull_request.folder / "comments").write_text("41\n")
    assert pull_request.run_step("Comment").returncode == 0
    first, second = (call for call in pull_request.calls if "--method" in call)
    assert first.startswith("api --method POST repos/team/shop/issues/7/comments ")
    assert second.startswith("api --method PATCH repos/team/shop/issues/comments/41 ")
    assert all("body=@" in call for call in (first, second))


def test_a_pull_request_from_a_fork_is_not_commented() -> None:
    assert STEPS["Comment"]["if"] == "github.event.pull_request.head.repo.full_name == github.repository"


@pytest.mark.parametrize(("strict", "code"), [("true", 1), ("false", 0)])
def test_findings_fail_the_step_only_if_asked(pull_request: PullRequest, strict: str, code: int) -> None:
    pull_request.run_step("Report")
    assert pull_request.run_step("Result", STRICT=strict).returncode == code


def test_texts_of_manifests_are_shown_as_they_are() -> None:
    finding = {
        "rule": "L1",
        "kind": "Pod",
        "namespace": "a",
        "name": "|@everyone<img src=x>",
        "sentence": "[link](https://example.com)\n# title",
        "fix": "`code`",
    }
    comment = write_comment({}, {}, {"findings": [finding]})
    assert not set("@<`[") & set(comment.split("---|")[-1])
    assert len(comment.splitlines()) == 8
