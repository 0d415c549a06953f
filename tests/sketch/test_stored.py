"""A diary survives its checkpoint, and no damage is taken for knowledge."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.sketch.test_diary import APP, MI, OTHER, START, read
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.shards import Layout
from trimtab.sketch.diary import Diary
from trimtab.sketch.stored import decode, encode, load


def kept() -> Diary:
    diary = Diary()
    for resource in ("cpu", "memory"):
        read(diary, resource, START, START + 100_000)
    diary.see(OTHER, "api-0", "memory", START + 100_000, 5.5 * MI)
    diary.kill(OTHER, "api-0", START + 100_060, 1000.0 * MI)
    return diary


def again(text: str) -> Diary:
    found, shard = Diary(), decode("here", text)
    assert not isinstance(shard, Unreadable)
    load(found, shard)
    return found


def test_a_checkpoint_gives_back_what_went_into_it() -> None:
    diary = kept()
    found = again(encode(diary, diary.containers(), Layout(4)))
    assert found.containers() == diary.containers()
    assert (found.windows, found.peaks, found.until, found.kills) == (
        diary.windows, diary.peaks, diary.until, diary.kills)  # fmt: skip


def test_what_was_counted_before_the_checkpoint_is_not_counted_after_it() -> None:
    diary = Diary()
    diary.see(APP, "web-0", "cpu", START, 1.0)
    found = again(encode(diary, diary.containers(), Layout()))
    assert not found.see(APP, "web-0", "cpu", START, 1.0)
    assert found.see(APP, "web-0", "cpu", START + 60, 1.0)
    assert not found.kill(OTHER, "api-0", 0, 1.0) or found.kills


def test_only_what_is_asked_for_is_written() -> None:
    diary = kept()
    found = again(encode(diary, [OTHER], Layout()))
    assert (found.containers(), found.until) == ([OTHER], {})


@given(st.data())
def test_a_checkpoint_that_was_changed_anywhere_is_unreadable_or_says_the_same(data: st.DataObject) -> None:
    text = TEXT
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from('0aZ}"').filter(lambda letter: letter != text[at]))
    found = decode("here", text[:at] + other + text[at + 1 :])
    assert isinstance(found, Unreadable) or found == decode("here", text)
    assert isinstance(decode("here", text[:at]), Unreadable)


def test_another_version_is_not_read() -> None:
    found = decode("here", msgspec.json.encode({**msgspec.json.decode(TEXT), "schema": 2}).decode())
    assert isinstance(found, Unreadable)
    assert "schema 2" in found.problem


TEXT = encode(kept(), kept().containers(), Layout())
