"""Where books are kept: names, and what becomes of what cannot be read."""

import json
import re
from typing import Any

import pytest

from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.memory import KEY, Memory, write
from trimtab.compactor.doors import NotNow
from trimtab.compactor.store import UNREAD, ConfigMaps, name_of
from trimtab.kube.errors import refused
from trimtab.kube.writer import Writer
from trimtab.runtime import log


@pytest.mark.parametrize("pool", ["web", "web.a-1", "Web", "web_a", "web-a"])
def test_every_pool_has_a_name_of_its_own_that_an_object_may_have(pool: str) -> None:
    assert re.fullmatch(r"trimtab-state-[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name_of(pool))
    assert len({name_of(name) for name in ("web", "Web", "web_a", "web-a")}) == 4


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
            raise refused(doing, 403, b"{}")
        self.written.append(body)
        return b"{}"


def store(cluster: Cluster) -> ConfigMaps:
    return ConfigMaps(Writer(client=cluster), "ours", log.build("error"))  # type: ignore[arg-type]


def kept(pool: str, text: str, **data: Any) -> dict[str, Any]:
    labels = {"trimtab.dev/state": pool}
    return {"metadata": {"name": name_of(pool), "namespace": "ours", "labels": labels}, "data": {KEY: text, **data}}


def test_what_is_kept_is_read_by_pool() -> None:
    cluster = Cluster(kept("web", write(Memory(saved=3))), kept("db", ""))
    assert store(cluster).load() == {"web": Memory(saved=3), "db": Memory()}
    assert cluster.written == []


@pytest.mark.parametrize("text", ["{", '{"v":99}', '{"under":3}'])
def test_what_cannot_be_read_is_put_aside_whole_before_anything_is_written_over_it(text: str) -> None:
    cluster = Cluster(kept("web", text, more="theirs"))
    found = store(cluster).load()["web"]
    [aside] = cluster.written
    assert isinstance(found, Unreadable)
    assert aside["metadata"]["name"] in found.problem
    assert aside["metadata"]["name"] != name_of("web")
    assert aside["metadata"]["labels"] == {UNREAD: "web"}, "and it is nobody's state"
    assert aside["data"] == {KEY: text, "more": "theirs"}


def test_what_was_put_aside_is_not_written_over_by_what_came_after_it() -> None:
    names = set()
    for text in ("{", '{"v":99}', "{"):
        cluster = Cluster(kept("web", text))
        store(cluster).load()
        names.add(cluster.written[0]["metadata"]["name"])
    assert len(names) == 2


def test_what_can_be_neither_read_nor_put_aside_opens_no_books() -> None:
    with pytest.raises(NotNow):
        store(Cluster(kept("web", "{"), refuses=True)).load()


def test_an_object_that_makes_no_sense_at_all_opens_no_books() -> None:
    with pytest.raises(NotNow, match="trimtab-state-web"):
        store(Cluster({**kept("web", ""), "data": 3})).load()
