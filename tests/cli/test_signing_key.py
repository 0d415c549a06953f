"""`trimtab certs rotate-signing-key` says first what it would do, and keeps what counts authentic."""

import json
from typing import Any

import pytest

from tests.cluster_of import NOW, cluster, node
from tests.reasons import has_facts
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, encode_annotation
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.pool_state import encode_state as remembered
from trimtab.compactor.pool_state_store import config_map_name
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.signing_key import rotate_signing_key
from trimtab.kube.errors import ApiStatus, NotFound
from trimtab.kube.signing_keys import keys_of, with_keys

FIRST = SigningKeys(b"a" * 32)
SECOND = SigningKeys(b"b" * 32, FIRST.current)


class Cluster:
    """What a client gives: a Secret, nodes and states, each signed by one key."""

    def __init__(self, keys: SigningKeys | None, by: SigningKeys = FIRST, secret: bool = True) -> None:
        actual_secret: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "s", "namespace": "ours", "uid": "u1"}}
        self.secret = with_keys(actual_secret, keys) if keys is not None else actual_secret
        self.is_there, self.writes = secret, 0
        plain = node("n1")
        [read] = cluster(plain).nodes
        plain["metadata"]["annotations"] = {
            CORDONED_BY_US: encode_annotation(DrainAnnotation(drain="d1", pool="web", since=NOW), read, by)
        }
        text = remembered(PoolState(drains={"n1": "d1"}))
        data = {"state.json": text, "serial": "7", "signature": by.sign("state of a pool", "u1", "web", "7", text)}
        meta = {"name": config_map_name("web"), "namespace": "ours", "labels": {"trimtab.dev/state": "web"}}
        self.lists = {"nodes": [plain], "configmaps": [{"metadata": meta, "data": data}]}

    def get(self, path: str, *_: object, doing: str = "", **__: object) -> bytes:
        kind = path.rpartition("/")[2]
        if kind in self.lists:
            return json.dumps({"metadata": {"resourceVersion": "1"}, "items": self.lists[kind]}).encode()
        if not self.is_there:
            raise NotFound(doing, 404, ApiStatus())
        return json.dumps(self.secret).encode()

    def write(self, method: str, path: str, body: dict[str, Any], **_: object) -> bytes:
        self.secret, self.writes = body, self.writes + 1
        return b"{}"


def told(result: Any, process: str = "compactor", *, confirmed: bool = False, force: bool = False) -> str:
    return "\n".join(rotate_signing_key(result, "ours", process, confirmed=confirmed, force=force))


@pytest.mark.parametrize("process", ["webhook", "compactor"])
def test_without_a_word_nothing_is_changed_and_what_would_be_is_said(process: str) -> None:
    cluster = Cluster(FIRST)
    report = told(cluster, process)
    assert cluster.writes == 0
    assert has_facts(report, f"Secret ours/trimtab-{process}-signing", "a new key signs")
    assert has_facts(report, "Nothing was changed", "trimtab certs rotate-signing-key", f"{process} --yes")
    assert "not authentic" not in report


@pytest.mark.parametrize("process", ["webhook", "compactor"])
def test_a_rotation_keeps_the_key_of_today_for_verification(process: str) -> None:
    cluster = Cluster(FIRST)
    assert "rotated" in told(cluster, process, confirmed=True)
    keys = keys_of(cluster.secret)
    assert keys is not None
    assert (cluster.writes, keys.previous) == (1, FIRST.current)
    assert keys.current != FIRST.current


def test_what_the_forgotten_key_signed_is_named_and_holds_the_compactors_rotation_up() -> None:
    cluster = Cluster(SECOND, by=FIRST)
    report = told(cluster)
    assert has_facts(report, "no longer authentic", "annotation on node n1")
    assert has_facts(report, "no longer authentic", "state of pool web")
    with pytest.raises(UsageError, match="--force"):
        told(cluster, confirmed=True)
    assert cluster.writes == 0
    told(cluster, confirmed=True, force=True)
    assert cluster.writes == 1


def test_what_was_signed_anew_holds_nothing_up() -> None:
    cluster = Cluster(SECOND, by=SECOND)
    assert "not authentic" not in told(cluster)
    told(cluster, confirmed=True)
    assert cluster.writes == 1


def test_the_webhooks_key_signs_for_seconds_only_so_nothing_of_it_is_looked_for() -> None:
    cluster = Cluster(SECOND, by=FIRST)
    told(cluster, "webhook", confirmed=True)
    assert cluster.writes == 1


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (Cluster(None), "the process itself writes the first one"),
        (Cluster(FIRST, secret=False), "no Secret of this name"),
    ],
)
def test_where_there_is_no_key_none_is_made_from_outside(found: Cluster, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        told(found, confirmed=True)
    assert found.writes == 0
