"""What decisions rest on at the start."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.build import policy
from trimtab.cli.main import EXIT_USAGE, cli
from trimtab.policy.cluster_facts import NO_FACTS
from trimtab.runtime.files import InvalidPolicyFiles
from trimtab.runtime.settings import LIVE_CLUSTER, Settings
from webhook.policy_state import from_files


def test_of_a_live_cluster_nothing_is_known_yet_and_no_policy_is_in_force() -> None:
    policy_state = from_files(Settings(cluster=LIVE_CLUSTER))
    assert policy_state.facts is NO_FACTS
    assert policy_state.policies.all == ()


def test_a_folder_of_policies_is_in_force_from_the_start_beside_a_live_cluster(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(policy("{limits: {cpu: remove}}", name="a"))
    assert [p.name for p in from_files(Settings(cluster=LIVE_CLUSTER, policies=(tmp_path,))).policies.all] == ["a"]


def test_without_a_cluster_the_shipped_policies_are_in_force() -> None:
    assert from_files(Settings()).policies.all


def test_broken_policies_are_refused_before_anything_listens(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(policy("{limits: {cpu: remoev}}"))
    with pytest.raises(InvalidPolicyFiles, match="remoev"):
        from_files(Settings(policies=(tmp_path,)))


def test_live_without_a_cluster_to_log_in_to_is_told_before_anything_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    done = CliRunner().invoke(cli, ["webhook", "--cluster", "live"])
    assert done.exit_code == EXIT_USAGE
    assert "kubeconfig" in done.output
