"""The keeper in a process: the first pair, and no cluster where none is asked for."""

from pathlib import Path

import pytest

from tests.webhook.replicas import NAMES, Replica, World
from trimtab.kube.certificate_rotation import certificate_names, step_until_pair
from trimtab.runtime import log
from trimtab.runtime.files import MissingKeyPair
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.settings import Settings
from webhook.cert_manager import start_certificate_rotation, wait_for_first_pair


def test_the_pair_carries_what_api_servers_call_first() -> None:
    assert certificate_names("trimtab-webhook", "trimtab-system")[0] == NAMES[0]


def test_a_folder_of_somebody_elses_needs_no_cluster(tmp_path: Path) -> None:
    settings = Settings(certs_folder=tmp_path)
    wait_for_first_pair(settings, log.build_logger("error"))
    assert start_certificate_rotation(settings, GracefulShutdown(), log.build_logger("error")) is None
    assert not list(tmp_path.iterdir())


def test_the_first_pair_is_there_when_the_wait_for_it_ends(tmp_path: Path) -> None:
    replica = Replica(World(), tmp_path / "certs")
    step_until_pair(replica.keeper, log.build_logger("error"))
    assert replica.keeper.read_serving_files() is not None
    assert replica.trusted


def test_a_pair_that_is_there_already_is_served_at_once(tmp_path: Path) -> None:
    replica = Replica(World(), tmp_path / "certs")
    replica.steps()
    replica.world.written.clear()
    step_until_pair(replica.keeper, log.build_logger("error"))
    assert replica.world.written == []


def test_a_wait_that_takes_too_long_ends_with_what_was_in_the_way(tmp_path: Path) -> None:
    world = World()
    del world.objects["Secret"]
    with pytest.raises(MissingKeyPair, match="after 0 s: the Secret for the certificate does not exist"):
        step_until_pair(Replica(world, tmp_path / "certs").keeper, log.build_logger("error"), patience=0.0)
