"""Every JSON report keeps to the schema that is published for it."""

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from tests.cli.snapshots import half_empty, snapshot
from tests.cli.worlds import DEPLOYMENT, LIMIT_RANGE, POLICY, write
from trimtab.cli.main import cli

SCHEMAS = Path(__file__).resolve().parents[2] / "deploy" / "schemas"


def report(*arguments: str | Path) -> dict:  # type: ignore[type-arg]
    result = CliRunner().invoke(cli, [*map(str, arguments), "-o", "json"])
    document: dict = json.loads(result.stdout)  # type: ignore[type-arg]
    return document


@pytest.fixture(params=["admit", "policies", "certs", "plan", "simulate", "recommend"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict, str]:  # type: ignore[type-arg]
    deployment, policy = write(tmp_path, DEPLOYMENT + "---\n" + LIMIT_RANGE), write(tmp_path, POLICY)
    if request.param == "admit":
        return report("admit", "-f", deployment, "--policies", policy), "admit-report"
    if request.param == "policies":
        return report("policies", "check", policy), "policies-report"
    if request.param in ("plan", "simulate"):
        return report(request.param, "--cluster", snapshot(tmp_path, *half_empty())), f"{request.param}-report"
    if request.param == "recommend":
        rows = "".join(f"{1767571200 + n * 600},web-0,app,0.{n % 9 + 1}\n" for n in range(200))
        usage = write(tmp_path, "timestamp,pod,container,cpu\n" + rows)
        return report("recommend", "--usage", usage, "--cluster", snapshot(tmp_path, *half_empty())), "recommend-report"
    CliRunner().invoke(cli, ["certs", "issue", str(tmp_path / "certs")])
    return report("certs", "status", tmp_path / "certs"), "certs-report"


def test_a_report_keeps_to_its_schema(published: tuple[dict, str]) -> None:  # type: ignore[type-arg]
    result, name = published
    jsonschema.validate(result, json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


def test_a_report_says_what_it_is(published: tuple[dict, str]) -> None:  # type: ignore[type-arg]
    result, _ = published
    assert result["apiVersion"] == "trimtab.dev/v1alpha1"
    assert result["kind"].endswith("Report")
