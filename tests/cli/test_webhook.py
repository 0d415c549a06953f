"""`trimtab webhook` refuses what it cannot serve with, where it was said."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.reasons import has_facts
from trimtab.cli.main import cli


def test_a_listen_that_makes_no_sense_is_told_as_the_option_it_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["webhook", "--listen", "nonsense", "--certs", str(tmp_path)])
    assert result.exit_code == 2
    assert has_facts(result.stderr, "--listen", "HOST:PORT")
    assert "TRIMTAB_WEBHOOK_LISTEN" not in result.stderr


def test_the_same_in_the_environment_is_told_as_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_WEBHOOK_LISTEN", "nonsense")
    assert "environment: TRIMTAB_WEBHOOK_LISTEN: expected HOST:PORT" in CliRunner().invoke(cli, ["webhook"]).stderr


def test_a_secret_without_a_cluster_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIMTAB_WEBHOOK_CERTS_SECRET", "trimtab-webhook-tls")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = CliRunner().invoke(cli, ["webhook", "--certs", str(tmp_path / "certs")])
    assert result.exit_code == 2
    assert "kubeconfig" in result.stderr


@pytest.mark.parametrize(
    "verb", [["status", "--live"], ["rotate"], ["rotate", "--authority"], ["rotate-signing-key", "webhook"]]
)
def test_the_clusters_pair_needs_a_cluster(verb: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["certs", *verb, "--kubeconfig", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert has_facts(result.stderr, "no such file")
