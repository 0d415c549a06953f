"""When a pair is replaced, and that nobody who trusted us stops."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import certs
from certs.expiry import authority_due, chain_problems
from certs.pem_files import names_of, read_chain
from tests.certs.test_ca import shake_hands

NOW = datetime(2030, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)


def codes(problems: tuple[certs.Problem, ...]) -> list[str]:
    return [problem.code for problem in problems]


@pytest.mark.parametrize(
    ("days", "expected"), [(-1, ["not-yet-valid"]), (0, []), (59, []), (61, ["two-thirds"]), (90, ["expired"])]
)
def test_a_pair_is_due_at_two_thirds_of_its_life(days: int, expected: list[str]) -> None:
    folder = certs.issue(["a"], now=NOW, life=timedelta(days=90))
    assert codes(certs.is_certificate_due(folder.pair, NOW + timedelta(days=days))) == expected


def test_a_name_it_does_not_carry_makes_it_due() -> None:
    pair = certs.issue(["a"], now=NOW).pair
    assert codes(certs.is_certificate_due(pair, NOW, names=["a", "b"])) == ["names-missing"]


def test_a_key_of_another_pair_makes_it_due() -> None:
    mixed = replace(certs.issue(["a"], now=NOW).pair, key=certs.issue(["a"], now=NOW).pair.key)
    assert codes(certs.is_certificate_due(mixed, NOW)) == ["key-mismatch"]


def test_nonsense_makes_it_due_and_is_not_raised() -> None:
    assert codes(certs.is_certificate_due(certs.KeyPair(certificate=b"x", key=b"y"), NOW)) == ["no-certificate"]


def test_a_pair_of_another_authority_makes_the_folder_due() -> None:
    mixed = replace(certs.issue(["a"], now=NOW), pair=certs.issue(["a"], now=NOW).pair)
    assert codes(certs.is_folder_due(mixed, NOW)) == ["ca-mismatch"]


def test_a_fresh_folder_is_left_alone() -> None:
    folder = certs.issue(["a"], now=NOW)
    assert certs.renew_if_due(folder, ["a"], now=NOW) == (folder, ())


def test_renewal_keeps_an_authority_that_is_not_due() -> None:
    folder = certs.issue(["a"], now=NOW)
    renewed, reasons = certs.renew_if_due(folder, ["a"], now=NOW + YEAR * 0.7)
    assert codes(reasons) == ["two-thirds"]
    assert renewed.bundle == folder.bundle
    assert not certs.is_folder_due(renewed, NOW + YEAR * 0.7)


def test_a_new_authority_keeps_the_old_one_in_the_bundle() -> None:
    folder = certs.issue(["a"], now=NOW)
    later = NOW + 7 * YEAR
    renewed = certs.renew(folder, ["a"], now=later)
    first, second = read_chain(renewed.bundle, "ca.crt")
    assert second == read_chain(folder.bundle, "ca.crt")[0]
    assert first.subject != second.subject
    assert not certs.is_folder_due(renewed, later)


def test_an_authority_that_ended_leaves_the_bundle() -> None:
    folder = certs.issue(["a"], now=NOW)
    assert len(read_chain(certs.renew(folder, ["a"], now=NOW + 11 * YEAR).bundle, "ca.crt")) == 1


@pytest.mark.parametrize("trusted", ["old", "new"])
def test_a_client_with_either_bundle_accepts_the_first_pair_of_a_new_authority(tmp_path, trusted: str) -> None:
    now = datetime.now(UTC)
    old = certs.issue(["a"], now=now - timedelta(days=80), authority_life=timedelta(days=100))
    new = certs.renew(old, ["a"], now=now)
    assert authority_due(old, now)
    certs.write_folder(tmp_path, new)
    bundle = old.bundle if trusted == "old" else new.bundle.replace(old.bundle, b"")
    assert shake_hands(certs.CertificateLoader(tmp_path).front, bundle, "a") == new.pair.read_leaf()


def test_a_lost_authority_key_is_replaced_with_an_authority_of_its_own() -> None:
    folder = replace(certs.issue(["a"], now=NOW), authority_key=certs.issue(["a"], now=NOW).authority_key)
    renewed, reasons = certs.renew_if_due(folder, ["a"], now=NOW)
    assert codes(reasons) == ["ca-key-mismatch"]
    assert not certs.is_folder_due(renewed, NOW)


def test_a_folder_that_only_serves_is_not_renewed_here() -> None:
    with pytest.raises(certs.MissingFile, match=r"ca\.key is missing"):
        certs.renew(replace(certs.issue(["a"], now=NOW), authority_key=None), ["a"], now=NOW)


def test_a_chain_through_the_bridge_leads_to_the_old_bundle() -> None:
    old = certs.issue(["a"], now=NOW)
    new = certs.renew(old, ["a", "b"], now=NOW + 7 * YEAR)
    assert chain_problems(replace(new, bundle=old.bundle)) == ()
    assert names_of(new.pair.read_leaf()) == ("a", "b")
