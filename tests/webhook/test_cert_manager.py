"""Replicas that share a pair: one pair, known everywhere before it is served, whoever comes first."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certs
from tests.webhook.replicas import NAMES, Replica, World, configuration
from trimtab.kube import certificate_rotation
from trimtab.kube.certificate_rotation import CertificateRotator, NoSecret
from trimtab.kube.errors import ApiStatus, NotAllowed
from trimtab.runtime import log
from webhook import cert_manager

FUZZ = "FUZZ_LONGER" in os.environ
"""`make fuzz`: the same laws with more throws."""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def replica(world: World, tmp_path: Path) -> Replica:
    return Replica(world, tmp_path / "a")


def test_the_first_replica_makes_the_pair_and_tells_both_configurations(world: World, replica: Replica) -> None:
    replica.steps(5)
    assert world.written == ["Secret", *cert_manager.CONFIGURATIONS]
    assert world.places == [world.store.bundle] * 2
    assert certs.read_status(replica.folder, world.now).names == NAMES


def test_nothing_is_served_before_both_configurations_know_it(world: World, replica: Replica) -> None:
    for _ in range(3):
        replica.keeper.run_step()
        assert not replica.folder.exists()
    replica.keeper.run_step()
    assert replica.keeper.read_serving_files() is not None


def test_the_authoritys_key_stays_in_the_secret(replica: Replica) -> None:
    replica.steps()
    assert not (replica.folder / certs.CA_KEY).exists()


def test_two_that_race_end_with_one_pair(world: World, tmp_path: Path) -> None:
    both = [Replica(world, tmp_path / name) for name in "ab"]
    for _ in range(20):
        for one in both:
            one.turn()
    assert both[0].keeper.read_serving_files() == both[1].keeper.read_serving_files() is not None
    assert world.written == ["Secret", *cert_manager.CONFIGURATIONS]


def test_a_ca_bundle_that_somebody_changed_is_put_back(world: World, replica: Replica) -> None:
    replica.steps()
    world.set(certificate_rotation.with_ca_bundle(configuration(cert_manager.CONFIGURATIONS[1]), b"something else"))
    replica.steps(2)
    assert world.places == [world.store.bundle] * 2


def test_what_else_stands_in_a_configuration_stays(world: World, replica: Replica) -> None:
    replica.steps()
    hook = world.objects[cert_manager.CONFIGURATIONS[0]]["webhooks"][0]
    assert (hook["timeoutSeconds"], hook["clientConfig"]["service"]) == (3, {"name": "trimtab-webhook"})


@pytest.mark.parametrize("annotation", certificate_rotation.INJECTION_ANNOTATIONS)
def test_cert_managers_configuration_is_left_alone(world: World, replica: Replica, annotation: str) -> None:
    world.set(configuration(cert_manager.CONFIGURATIONS[0], **{annotation: "trimtab-system/trimtab-webhook"}))
    replica.steps()
    assert world.places == [b"", world.store.bundle]


def test_a_pair_is_renewed_at_two_thirds_and_taken_over_by_all(world: World, tmp_path: Path) -> None:
    both = [Replica(world, tmp_path / name) for name in "ab"]
    [one.steps() for one in both]
    before = world.store
    world.pass_(61)
    [one.steps() for one in both]
    assert world.store.pair != before.pair
    assert {one.keeper.read_serving_files().pair.certificate for one in both} == {world.store.pair.certificate}
    assert world.written.count("Secret") == 2


def test_a_new_authority_signs_after_as_many_looks_as_were_asked(world: World, tmp_path: Path) -> None:
    replica = Replica(world, tmp_path / "a", looks=3)
    replica.steps()
    world.rotate(authority=True)
    replica.steps(2)  # both configurations are told
    begun = world.store
    replica.steps(3)
    assert world.store == begun
    replica.steps(1)
    assert world.store.pair != begun.pair


def test_an_emptied_secret_is_filled_again_without_a_gap(world: World, replica: Replica) -> None:
    replica.steps()
    world.set({"kind": "Secret", "metadata": {"name": "trimtab-webhook-tls"}})
    for _ in range(12):
        replica.keeper.run_step()
        assert replica.trusted
    assert certs.is_usable(world.store, world.now)


def test_a_secret_that_is_gone_is_told_and_not_made(world: World, replica: Replica) -> None:
    del world.objects["Secret"]
    with pytest.raises(NoSecret, match="trimtab install"):
        replica.keeper.run_step()


@pytest.mark.parametrize("data", [{"tls.crt": "%%%", "tls.key": "bm9uc2Vuc2U="}, {"tls.crt": "bm9uc2Vuc2U="}, {}])
def test_nonsense_in_the_secret_is_replaced(world: World, replica: Replica, data: dict[str, str]) -> None:
    world.set({"kind": "Secret", "metadata": {"name": "trimtab-webhook-tls"}, "data": data})
    replica.steps()
    assert replica.keeper.read_serving_files() is not None


@pytest.mark.parametrize("error", [NotAllowed("read", 403, ApiStatus(code=403, reason="Forbidden")), KeyError("a bug")])
def test_trouble_is_told_once_and_the_loop_goes_on(tmp_path: Path, error: Exception) -> None:
    actual_seconds: list[float] = []

    class Shut:
        def get_object(self, kind: str) -> None:
            raise error

        put_object = get_object

    def stop(seconds: float) -> bool:
        actual_seconds.append(seconds)
        return len(actual_seconds) == 3

    keeper = CertificateRotator(
        Shut(),
        tmp_path,
        NAMES,
        log.build_logger("error"),
        lambda: World().now,
        looks=0,
        kinds=cert_manager.CONFIGURATIONS,
    )  # type: ignore[arg-type]
    keeper.run_until_stopped(stop, 10.0)
    assert actual_seconds == [10.0] * 3


def test_somebody_who_always_writes_against_us_does_not_make_us_hurry(world: World, replica: Replica) -> None:
    actual_seconds: list[float] = []

    def stop(seconds: float) -> bool:
        world.set(configuration(cert_manager.CONFIGURATIONS[0]))
        actual_seconds.append(seconds)
        return len(actual_seconds) == 40

    replica.keeper.run_until_stopped(stop, 10.0)
    assert set(actual_seconds[10:]) == {10.0}


BURST = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from([1, 1, 2, 3, 5, 8, 21]))
"""A replica's turns in a row: one may sleep between any two of its own while the other goes through a rotation."""
EVENT = st.sampled_from(
    [("rotate", True), ("rotate", True), ("rotate", False), ("days", 40), ("days", 400), ("die", 0)]
)


@given(st.lists(st.tuples(BURST, BURST, EVENT), max_size=12))
@settings(max_examples=60 if FUZZ else 8, deadline=None)
def test_at_every_moment_every_bundle_holds_the_authority_of_every_pair_in_use(story):
    with tempfile.TemporaryDirectory() as home:
        world = World()
        both = {name: Replica(world, Path(home, name)) for name in "ab"}
        both["a"].steps(5)
        for *bursts, (what, value) in story:
            for name, turns in bursts:
                for _ in range(turns):
                    both[name].turn()
                    assert all(one.trusted for one in both.values())
            if what == "rotate":
                world.rotate(authority=value)
            elif what == "days":
                world.pass_(value)
            else:
                both["b"] = Replica(world, both["b"].folder)
            assert all(one.trusted for one in both.values())
        for _ in range(30):
            for one in both.values():
                one.turn()
                assert all(other.trusted for other in both.values())
        assert both["a"].keeper.read_serving_files() == both["b"].keeper.read_serving_files() is not None
        assert world.places == [world.store.bundle] * 2
