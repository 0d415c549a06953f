"""While much is read nothing is collected, and afterwards all is as it was."""

import gc

import pytest

from trimtab.cluster.garbage_collection import without_garbage_collection


def test_nothing_is_collected_meanwhile_even_where_reading_fails() -> None:
    observation = []

    def read() -> None:
        with without_garbage_collection():
            observation.append(gc.isenabled())
            raise ValueError("unread")

    with pytest.raises(ValueError, match="unread"):
        read()
    assert (observation, gc.isenabled()) == ([False], True)


def test_who_had_switched_it_off_finds_it_off() -> None:
    gc.disable()
    try:
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
