"""`trimtab install` as its users call it."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.reasons import has_facts
from trimtab.cli.install.apply import describe_removal
from trimtab.cli.install.command import describe_failure
from trimtab.cli.main import cli
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues
from trimtab.kube.errors import ApiStatus, KubeFault, refusal_of_status


def trimtab(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["install", *map(str, arguments)])


def test_without_more_it_prints_what_it_would_apply() -> None:
    result = trimtab()
    assert result.exit_code == 0
    assert tuple(yaml.safe_load_all(result.stdout)) == render_manifests(InstallValues())


def test_json_is_a_list_that_kubectl_takes() -> None:
    document = json.loads(trimtab("-o", "json", "--image", "registry/trimtab:2", "--replicas", "3").stdout)
    assert document["kind"] == "List"
    assert document["items"] == list(render_manifests(InstallValues(image="registry/trimtab:2", replicas=3)))


def test_it_goes_into_a_file(tmp_path: Path) -> None:
    trimtab("--output-file", tmp_path / "install.yaml")
    assert len(list(yaml.safe_load_all((tmp_path / "install.yaml").read_text()))) == len(
        render_manifests(InstallValues())
    )


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        (["--apply", "--remove"], "both"),
        (["--everything"], "--everything without --remove"),
        (["--dry-run"], "--dry-run or a login option without either"),
        (["--traces"], "--traces without --remove"),
        (["--keep-usage"], "--keep-usage without --remove"),
        (["--remove", "--everything", "--traces"], "both"),
        (["--kubeconfig", "x"], "--dry-run or a login option without either"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], got: str) -> None:
    result = trimtab(*arguments)
    assert result.exit_code == 2
    assert got in result.stderr


def test_without_a_cluster_it_says_so(tmp_path: Path) -> None:
    result = trimtab("--apply", "--kubeconfig", tmp_path / "none")
    assert result.exit_code == 2
    assert has_facts(result.stderr, "no such file")


def test_a_namespace_that_is_being_deleted_is_not_called_removed() -> None:
    assert has_facts(describe_removal("Namespace", is_deleted=True), "being deleted", "wait")
    assert describe_removal("Service", is_deleted=True) == "removed"
    assert describe_removal("Namespace", is_deleted=False) == "did not exist"


NO_NAMESPACE = refusal_of_status(
    "apply Secret trimtab-system/x",
    404,
    ApiStatus(code=404, reason="NotFound", message='namespaces "trimtab-system" not found'),
)


@pytest.mark.parametrize(
    ("error", "dry_run", "end"),
    [
        (NO_NAMESPACE, True, "create the namespace first: kubectl create namespace trimtab-system"),
        (KubeFault("the connection broke"), True, "nothing was changed."),
        (KubeFault("the connection broke"), False, "The steps above are done; run the same command again to continue."),
    ],
)
def test_a_failure_says_what_to_do_next(error: KubeFault, dry_run: bool, end: str) -> None:
    message = describe_failure(error, "trimtab-system", dry_run=dry_run)
    assert message.startswith(str(error))
    assert message.endswith(end)
    assert not dry_run or "are done" not in message
