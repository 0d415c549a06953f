"""A name in a finding of `trimtab lint` begins no line, and SARIF reads no link and no placeholder in it."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.snapshots import trimtab
from trimtab.cli.lint.ci_formats import sarif_message

FORGED = "[resume](https://evil.example/fix) {0}\n::error file=x::forged\n::stop-commands::z"
SCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": f"h{FORGED}", "namespace": "a"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"web{FORGED}"},
        "minReplicas": 1,
        "maxReplicas": 1,
    },
}


def report(folder: Path, form: str) -> str:
    (folder / "hpa.json").write_text(json.dumps(SCALER))
    return trimtab("lint", "-f", str(folder / "hpa.json"), "-o", form).stdout


@pytest.mark.parametrize("form", ["table", "junit", "sarif", "yaml"])
def test_no_line_is_a_command_of_a_workflow(tmp_path: Path, form: str) -> None:
    assert [line for line in report(tmp_path, form).splitlines() if line.strip().startswith("::")] == []


def test_every_finding_of_the_table_is_one_line(tmp_path: Path) -> None:
    assert not re.search(r"^\W*(error file=x|stop-commands)", report(tmp_path, "table"), re.MULTILINE)


def test_a_message_of_sarif_has_no_link_and_no_placeholder(tmp_path: Path) -> None:
    [run] = json.loads(report(tmp_path, "sarif"))["runs"]
    texts = [result["message"]["text"] for result in run["results"]]
    assert any("resume" in text for text in texts)
    assert [text for text in texts if re.search(r"(?<!\\)[\[\]]|(?<!\{)\{(?!\{)|\n", text)] == []


def test_a_message_of_sarif_reads_as_the_text() -> None:
    assert sarif_message("a[b](c) {0} d\\") == {"text": "a\\[b\\](c) {{0}} d\\\\"}
