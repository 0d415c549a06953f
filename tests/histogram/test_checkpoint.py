"""A diary survives its checkpoint, and no damage is taken for knowledge."""

import base64
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.histogram.test_live_history import APP, MI, OTHER, START, read
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ShardLayout
from trimtab.histogram import checkpoint
from trimtab.histogram.checkpoint import decode, encode, workload_key
from trimtab.histogram.import_history import restore_history
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import OomKill


def kept() -> LiveHistory:
    diary = LiveHistory()
    for resource in ("cpu", "memory"):
        read(diary, resource, START, START + 100_000)
    diary.add_sample(OTHER, "api-0", "memory", START + 100_000, 5.5 * MI)
    diary.add_oom_kill(OTHER, "api-0", OomKill(at=START + 100_060, limit=1000.0 * MI))
    return diary


def again(text: str) -> LiveHistory:
    history, shard = LiveHistory(), decode("here", text)
    assert not isinstance(shard, Unreadable)
    restore_history(history, [shard])
    return history


def test_a_checkpoint_gives_back_what_went_into_it() -> None:
    diary = kept()
    history = again(encode(diary, diary.list_containers(), ShardLayout(4)))
    assert history.list_containers() == diary.list_containers()
    assert (history.windows, history.open_peaks, history.imported_until, history.last_kills, history.oom_records) == (
        diary.windows,
        diary.open_peaks,
        diary.imported_until,
        diary.last_kills,
        diary.oom_records,
    )


def of_schema_1(diary: LiveHistory) -> str:
    """As versions before wrote it: every day of a container in one text."""
    workloads: dict[str, dict[str, checkpoint.StoredContainerV1]] = {}
    for one in diary.list_containers():
        dumped = {r: base64.b64encode(diary.get_window(one, r).dump()).decode() for r in ("cpu", "memory")}
        texts = {r: text for r, text in dumped.items() if diary.get_window(one, r).last}
        peaks = dict(diary.open_peaks[one].running) if one in diary.open_peaks else {}
        kills = {pod: at for (container, pod), at in diary.last_kills.items() if container == one}
        record = diary.oom_records.get(one)
        oom = (record.at, record.used, record.count, record.last) if record else None
        workloads.setdefault(workload_key(one), {})[one.name] = checkpoint.StoredContainerV1(
            peaks=peaks, kills=kills, oom=oom, **texts
        )
    bare = checkpoint.ShardV1(schema=1, count=4, widths={"shop": 2}, until=diary.imported_until, workloads=workloads)
    whole = msgspec.structs.replace(bare, checksum=checkpoint.compute_checksum(bare))
    return msgspec.json.encode(whole, order="sorted").decode()


def test_what_the_version_before_stored_is_read() -> None:
    diary = kept()
    text = of_schema_1(diary)
    history, shard = again(text), decode("here", text)
    assert (history.windows, history.open_peaks, history.imported_until, history.last_kills, history.oom_records) == (
        diary.windows,
        diary.open_peaks,
        diary.imported_until,
        diary.last_kills,
        diary.oom_records,
    )
    assert not isinstance(shard, Unreadable)
    assert (shard.count, shard.widths) == (4, {"shop": 2})
    assert isinstance(decode("here", text.replace('"count":4', '"count":8')), Unreadable)


def test_a_text_from_before_averages_of_pods_were_stored_is_read() -> None:
    diary = kept()
    text = msgspec.json.decode(TEXT, type=checkpoint._Text)
    rows = msgspec.msgpack.decode(zlib.decompress(text.workloads))
    before = {name: {one: row[:5] for one, row in actual_row.items()} for name, actual_row in rows.items()}
    assert before != rows
    history = again(
        checkpoint._with_checksum(
            msgspec.structs.replace(text, checksum="", workloads=zlib.compress(msgspec.msgpack.encode(before)))
        )
    )
    assert (history.windows, history.open_peaks, history.oom_records) == (
        diary.windows,
        diary.open_peaks,
        diary.oom_records,
    )
    assert (history.average_pod_uses(APP, "cpu"), len(diary.average_pod_uses(APP, "cpu"))) == ([], 2)


@pytest.mark.parametrize("wrong", [[-1, 1, 1], [1, 0, 1], [1, 1, -1], [1, 1, 0.5], [1, 1]])
def test_averages_of_pods_that_make_no_sense_are_unreadable(wrong: list[float]) -> None:
    text = msgspec.json.decode(TEXT, type=checkpoint._Text)
    workloads = {"shop/Deployment/web": {"app": [None, None, {}, {}, None, {"cpu": {"web-0": wrong}}]}}
    pressed = zlib.compress(msgspec.msgpack.encode(workloads))
    written = checkpoint._with_checksum(msgspec.structs.replace(text, checksum="", workloads=pressed))
    assert isinstance(decode("here", written), Unreadable)


def test_what_was_counted_before_the_checkpoint_is_not_counted_after_it() -> None:
    diary = LiveHistory()
    diary.add_sample(APP, "web-0", "cpu", START, 1.0)
    history = again(encode(diary, diary.list_containers(), ShardLayout()))
    assert not history.add_sample(APP, "web-0", "cpu", START, 1.0)
    assert history.add_sample(APP, "web-0", "cpu", START + 60, 1.0)
    assert not history.add_oom_kill(OTHER, "api-0", OomKill(at=0, limit=1.0)) or history.last_kills


def test_only_what_is_asked_for_is_written() -> None:
    diary = kept()
    history = again(encode(diary, [OTHER], ShardLayout()))
    assert (history.list_containers(), history.imported_until) == ([OTHER], {})


@given(st.data())
def test_a_checkpoint_that_was_changed_anywhere_is_unreadable_or_says_the_same(data: st.DataObject) -> None:
    text = TEXT
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from('0aZ}"').filter(lambda letter: letter != text[at]))
    printed_text = decode("here", text[:at] + other + text[at + 1 :])
    assert isinstance(printed_text, Unreadable) or printed_text == decode("here", text)
    assert isinstance(decode("here", text[:at]), Unreadable)


def test_another_version_is_not_read() -> None:
    text = decode("here", msgspec.json.encode({**msgspec.json.decode(TEXT), "schema": 3}).decode())
    assert isinstance(text, Unreadable)
    assert "schema version 3" in text.problem


TEXT = encode(kept(), kept().list_containers(), ShardLayout())
