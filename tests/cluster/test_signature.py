"""Signatures: what one key signed verifies with it, and with nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.signature import SigningKeys

OLD, NEW = SigningKeys(b"o" * 32), SigningKeys(b"n" * 32, b"o" * 32)


def test_the_key_before_verifies_after_a_rotation_and_not_after_two():
    signature = OLD.sign("state", "pool")
    assert NEW.verify(signature, "state", "pool")
    assert not SigningKeys(b"x" * 32, b"n" * 32).verify(signature, "state", "pool")


def test_a_signature_for_one_purpose_is_none_for_another():
    assert not OLD.verify(OLD.sign("state", "pool"), "node", "pool")


def test_keys_are_not_shown():
    assert "nnnn" not in repr(NEW)


def test_a_short_key_is_refused():
    with pytest.raises(ValueError, match="at least 32 bytes"):
        SigningKeys(b"short")


@given(st.lists(st.text()), st.lists(st.text()))
def test_two_lists_of_parts_have_one_signature_only_where_they_are_equal(first: list[str], second: list[str]):
    assert OLD.verify(OLD.sign("x", *first), "x", *second) is (first == second)


@given(st.text())
def test_what_is_no_signature_verifies_nothing(text: str):
    assert not OLD.verify(text, "x")
