"""The next safe step, as a table: what is seen, and what is done about it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import certs
from certs.rotation import OVERLAP, SHARED_LIFETIME

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ("trimtab-webhook.trimtab-system.svc",)
DAY = timedelta(days=1)

FRESH = certs.issue(NAMES, now=NOW, life=SHARED_LIFETIME)
OTHER = certs.issue(NAMES, now=NOW, life=SHARED_LIFETIME)
BEGUN = certs.next_pair(FRESH, now=NOW + DAY)
"""A new authority stands in front; the pair is still of the old one."""
DONE = certs.reissued_pair(BEGUN, NAMES, now=NOW + DAY)
BROKEN = replace(FRESH, pair=replace(FRESH.pair, key=OTHER.pair.key))


def step(
    store: certs.CertificateFiles | None, *places: bytes, now: datetime = NOW + DAY, **more: object
) -> certs.RotationStep:
    return certs.next_step(certs.RotationState(store=store, places=places, **more), NAMES, now=now)  # type: ignore[arg-type]


def codes(rotation: certs.RotationStep) -> list[str]:
    assert isinstance(rotation, certs.WriteSecret)
    return [reason.code for reason in rotation.reasons]


def test_an_empty_store_gets_a_pair_of_90_days() -> None:
    rotation = step(None)
    assert codes(rotation) == ["empty"]
    assert isinstance(rotation, certs.WriteSecret)
    assert rotation.folder.pair.read_leaf().not_valid_after_utc == NOW + DAY + SHARED_LIFETIME
    assert certs.is_usable(rotation.folder, NOW + DAY)


def test_a_store_that_somebody_emptied_gets_the_pair_we_serve_under_a_new_authority_beside_the_old() -> None:
    rotation = step(None, serving=replace(FRESH, authority_key=None))
    assert isinstance(rotation, certs.WriteSecret)
    assert rotation.folder.pair == FRESH.pair
    assert rotation.folder.bundle.endswith(FRESH.bundle)
    assert rotation.folder.bundle != FRESH.bundle


@pytest.mark.parametrize("place", [b"", b"nonsense", OTHER.bundle, FRESH.bundle + OTHER.bundle])
def test_a_place_with_another_bundle_gets_the_stores(place: bytes) -> None:
    assert step(FRESH, FRESH.bundle, place) == certs.PatchCABundle(FRESH.bundle)


@pytest.mark.parametrize("places", [(), (FRESH.bundle,), (FRESH.bundle, FRESH.bundle)])
def test_where_all_is_well_nothing_is_done(places: tuple[bytes, ...]) -> None:
    assert step(FRESH, *places) == certs.WaitUntil()


def test_a_pair_past_two_thirds_is_signed_anew_by_the_same_authority() -> None:
    rotation = step(FRESH, FRESH.bundle, now=NOW + 61 * DAY, settled=True)
    assert codes(rotation) == ["two-thirds"]
    assert isinstance(rotation, certs.WriteSecret)
    assert rotation.folder.bundle == FRESH.bundle


def test_a_pair_without_our_names_is_signed_anew() -> None:
    assert codes(step(certs.issue(["elsewhere"], now=NOW), settled=True)) == ["names-missing"]


def test_a_pair_that_cannot_be_served_waits_for_nobody() -> None:
    assert codes(step(BROKEN, BROKEN.bundle)) == ["key-mismatch"]


@pytest.mark.parametrize("bundle", [b"", b"nonsense"])
def test_a_lost_authority_is_replaced_and_the_pair_stays(bundle: bytes) -> None:
    rotation = step(replace(FRESH, bundle=bundle))
    assert codes(rotation) == ["no-certificate"]
    assert isinstance(rotation, certs.WriteSecret)
    assert rotation.folder.pair == FRESH.pair


def test_an_authority_whose_key_is_lost_gets_a_successor() -> None:
    rotation = step(replace(FRESH, authority_key=None))
    assert codes(rotation) == ["no-ca-key"]
    assert isinstance(rotation, certs.WriteSecret)
    assert (rotation.folder.pair, rotation.folder.bundle.endswith(FRESH.bundle)) == (FRESH.pair, True)


def test_a_new_authority_is_told_everywhere_before_it_signs() -> None:
    assert step(BEGUN, FRESH.bundle, FRESH.bundle) == certs.PatchCABundle(BEGUN.bundle)
    assert step(BEGUN, BEGUN.bundle, FRESH.bundle) == certs.PatchCABundle(BEGUN.bundle)


def test_a_new_authority_signs_only_when_everybody_has_noticed() -> None:
    waiting = step(BEGUN, BEGUN.bundle)
    assert isinstance(waiting, certs.WaitUntil)
    assert [reason.code for reason in waiting.waiting] == ["ca-superseded"]
    rotation = step(BEGUN, BEGUN.bundle, settled=True)
    assert codes(rotation) == ["ca-superseded"]
    assert isinstance(rotation, certs.WriteSecret)
    assert rotation.folder.bundle == BEGUN.bundle


def test_the_old_authority_leaves_when_nothing_it_signed_can_be_valid() -> None:
    late = NOW + 2 * DAY + OVERLAP
    alive = certs.reissued_pair(DONE, NAMES, now=late)
    assert step(DONE, DONE.bundle, now=NOW + 2 * DAY) == certs.WaitUntil()
    rotation = step(alive, alive.bundle, now=late)
    assert codes(rotation) == ["ca-unused"]
    assert isinstance(rotation, certs.WriteSecret)
    assert rotation.folder.bundle == DONE.bundle.removesuffix(FRESH.bundle)


def test_an_old_authority_past_its_own_end_does_not_come_along() -> None:
    assert certs.next_pair(FRESH, now=NOW + 4000 * DAY).bundle.count(b"BEGIN") == 1


@pytest.mark.parametrize(
    ("places", "trusted"),
    [
        ((), True),
        ((FRESH.bundle,), True),
        ((DONE.bundle, FRESH.bundle), True),
        ((OTHER.bundle,), False),
        ((b"",), False),
    ],
)
def test_a_pair_may_be_served_where_every_place_knows_its_authority(places: tuple[bytes, ...], trusted: bool) -> None:
    assert certs.may_serve(FRESH, places) is trusted
