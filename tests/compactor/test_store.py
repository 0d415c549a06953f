"""Where books are kept: names, and what becomes of what cannot be read."""

import json
import re
from typing import Any

import pytest

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.drain.pool_state import STATE_KEY, PoolState, encode_state
from trimtab.compactor.actuator import ActuatorUnavailable
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.pool_state_store import UNREADABLE_STATE_LABEL, ConfigMapPoolStateStore, config_map_name
from trimtab.kube.errors import refusal_of_response
from trimtab.kube.objects import Writer
from trimtab.runtime import log


@pytest.mark.parametrize("pool", ["web", "web.a-1", "Web", "web_a", "web-a"])
def test_every_pool_has_a_name_of_its_own_that_an_object_may_have(pool: str) -> None:
    assert re.fullmatch(r"trimtab-state-[a-z0-9]([a-z0-9.-]*[a-z0-9])?", config_map_name(pool))
    assert len({config_map_name(name) for name in ("web", "Web", "web_a", "web-a")}) == 4


class Cluster:
    """What a client gives: one list of ConfigMaps; writes are written down, or refused."""

    def __init__(self, *items: dict[str, Any], refuses: bool = False) -> None:
        self.body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
        self.refuses = refuses
        self.written: list[dict[str, Any]] = []

    def get(self, *_: object, **__: object) -> bytes:
        return self.body

    def write(self, method: str, path: str, body: dict[str, Any], *, doing: str, **_: object) -> bytes:
        if self.refuses:
            raise refusal_of_response(doing, 403, b"{}")
        self.written.append(body)
        return b"{}"


def store(cluster: Cluster, serials: dict[str, int] | None = None, uid: str = "u1") -> ConfigMapPoolStateStore:
    writer = Writer(client=cluster)  # type: ignore[arg-type]
    return ConfigMapPoolStateStore(
        writer, "ours", log.build_logger("error"), NodeSigner(writer, "ours", uid, KEYS, serials or {})
    )


KEYS = SigningKeys(b"k" * 32)


def kept(pool: str, text: str, *, name: str = "", serial: int = 7, **data: Any) -> dict[str, Any]:
    """As the compactor stores it."""
    signature = KEYS.sign("state of a pool", "u1", pool, str(serial), text)
    data = {STATE_KEY: text, "serial": str(serial), "signature": signature, **data}
    meta = {"name": name or config_map_name(pool), "namespace": "ours", "labels": {"trimtab.dev/state": pool}}
    return {"metadata": meta, "data": data}


def test_what_is_kept_is_read_by_pool() -> None:
    cluster = Cluster(kept("web", encode_state(PoolState(saved=3))), kept("db", ""))
    assert store(cluster).load_states() == {"web": PoolState(saved=3), "db": PoolState()}
    assert cluster.written == []


def test_what_the_previous_key_signed_is_signed_anew_and_its_number_rises() -> None:
    cluster = Cluster(kept("web", encode_state(PoolState(saved=3))))
    actual_store, keys = store(cluster), SigningKeys(b"n" * 32, KEYS.current)
    actual_store.signing.keys = keys
    assert actual_store.load_states() == {"web": PoolState(saved=3)}
    [written] = cluster.written
    data = written["data"]
    assert keys.without_previous.verify(
        data["signature"], "state of a pool", "u1", "web", data["serial"], data[STATE_KEY]
    )
    assert (data[STATE_KEY], int(data["serial"])) == (encode_state(PoolState(saved=3)), 8)


@pytest.mark.parametrize("text", ["{", '{"v":99}', '{"under":3}'])
def test_what_cannot_be_read_is_put_aside_whole_before_anything_is_written_over_it(text: str) -> None:
    cluster = Cluster(kept("web", text, more="theirs"))
    result = store(cluster).load_states()["web"]
    [aside] = cluster.written
    assert isinstance(result, Unreadable)
    assert aside["metadata"]["name"] in result.problem
    assert aside["metadata"]["name"] != config_map_name("web")
    assert aside["metadata"]["labels"] == {UNREADABLE_STATE_LABEL: "web"}, "and it is nobody's state"
    assert aside["data"] == kept("web", text, more="theirs")["data"]


def test_what_was_put_aside_is_not_written_over_by_what_came_after_it() -> None:
    names = set()
    for text in ("{", '{"v":99}', "{"):
        cluster = Cluster(kept("web", text))
        store(cluster).load_states()
        names.add(cluster.written[0]["metadata"]["name"])
    assert len(names) == 2


def test_what_can_be_neither_read_nor_put_aside_opens_no_books() -> None:
    with pytest.raises(ActuatorUnavailable):
        store(Cluster(kept("web", "{"), refuses=True)).load_states()


def test_an_object_that_makes_no_sense_at_all_opens_no_books() -> None:
    with pytest.raises(ActuatorUnavailable, match="trimtab-state-web"):
        store(Cluster({**kept("web", ""), "data": 3})).load_states()


STATE = encode_state(PoolState(surged={"bank/web": "d1"}))


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"signature": ""}, "no signature"),
        ({"signature": "00" * 16}, "this compactor did not make the signature"),
        ({"serial": "8"}, "this compactor did not make the signature"),
        ({STATE_KEY: encode_state(PoolState(surged={"bank/web": "d2"}))}, "this compactor did not make the signature"),
    ],
)
def test_a_state_that_somebody_else_wrote_is_put_aside_and_never_believed(changed: dict[str, str], why: str) -> None:
    item = kept("web", STATE)
    item["data"] |= changed
    cluster = Cluster(item)
    result = store(cluster).load_states()["web"]
    assert isinstance(result, Unreadable)
    assert why in result.problem
    assert cluster.written[0]["data"] == item["data"]


def test_a_state_of_another_pool_or_of_another_installation_is_not_believed() -> None:
    copied = {**kept("web", STATE)["data"]}
    other = kept("db", STATE)
    other["data"] = copied
    assert isinstance(store(Cluster(other)).load_states()["db"], Unreadable)
    assert isinstance(store(Cluster(kept("web", STATE)), uid="u2").load_states()["web"], Unreadable)


def test_an_older_state_that_is_written_back_is_not_believed() -> None:
    assert store(Cluster(kept("web", STATE, serial=9)), {"web": 9}).load_states() == {
        "web": PoolState(surged={"bank/web": "d1"})
    }
    result = store(Cluster(kept("web", STATE, serial=8)), {"web": 9}).load_states()["web"]
    assert isinstance(result, Unreadable)
    assert "older" in result.problem


def test_a_state_that_somebody_emptied_is_not_believed_once_one_was_final() -> None:
    item = {**kept("web", ""), "data": {}}
    assert store(Cluster(item)).load_states() == {"web": PoolState()}
    assert isinstance(store(Cluster(item), {"web": 1}).load_states()["web"], Unreadable)


def test_a_configmap_of_another_name_is_no_state_whatever_its_label() -> None:
    cluster = Cluster(kept("web", STATE, name="anything"))
    assert store(cluster).load_states() == {}
    assert cluster.written == []


def test_each_state_has_a_higher_number_than_the_one_before() -> None:
    cluster = Cluster(kept("web", STATE, serial=7))
    books = store(cluster, {"web": 5})
    books.load_states()
    for number in (8, 9):
        books.save_state("web", PoolState(saved=number), final=False)
        assert cluster.written[-1]["data"]["serial"] == str(number)
    fresh = store(Cluster(), {"web": 5})
    fresh.save_state("web", PoolState(), final=False)
    assert fresh.writer.client.written[-1]["data"]["serial"] == "6"  # type: ignore[attr-defined]


def test_a_state_that_somebody_deleted_is_lost_and_its_pool_is_not_as_good_as_new() -> None:
    states = store(Cluster(), {"web": 9}).load_states()
    assert isinstance(states["web"], Unreadable)
    assert "deleted" in states["web"].problem


@pytest.mark.parametrize(
    "before", [[], [{**kept("web", STATE), "data": {STATE_KEY: STATE}}]], ids=["deleted", "spoiled"]
)
def test_once_a_state_was_lost_none_that_was_ever_signed_counts(before: list[dict[str, Any]]) -> None:
    """Those that were not final have numbers above the one that the Secret remembers."""
    cluster = Cluster(*before)
    books = store(cluster, {"web": 5})
    books.load_states()
    books.save_state("web", PoolState(closed=1), final=False)
    serial = int(cluster.written[-1]["data"]["serial"])
    written_back = store(Cluster(kept("web", STATE, serial=5000)), {"web": serial}).load_states()
    assert isinstance(written_back["web"], Unreadable)
