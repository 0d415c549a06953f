"""Signing keys in a Secret: made once, kept beside what else stands there, rotated with one key before."""

import base64
import json
from typing import Any

import pytest

from trimtab.cluster.signature import SigningKeys
from trimtab.kube.errors import ApiStatus, Conflict, NotFound
from trimtab.kube.signing_keys import NoSigningKeys, keys_of, read_or_create, rotate_keys, with_keys

FIRST, SECOND = SigningKeys(b"a" * 32), SigningKeys(b"b" * 32, b"a" * 32)


class Cluster:
    """What a client gives: one Secret, or none; others are quicker so many times."""

    def __init__(self, secret: dict[str, Any] | None, conflicts: int = 0) -> None:
        self.secret, self.conflicts = secret, conflicts

    def get(self, path: str, *_: object, doing: str = "", **__: object) -> bytes:
        if self.secret is None:
            raise NotFound(doing, 404, ApiStatus())
        return json.dumps(self.secret).encode()

    def write(self, method: str, path: str, body: dict[str, Any], *, doing: str = "", **_: object) -> bytes:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict(doing, 409, ApiStatus())
        self.secret = body
        return b"{}"


def empty() -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": "s", "namespace": "ours"}}


@pytest.mark.parametrize("keys", [FIRST, SECOND])
def test_what_was_written_is_read_and_what_else_stands_there_stays(keys: SigningKeys) -> None:
    secret = with_keys({**empty(), "data": {"serials": "e30=", "previous": "x"}}, keys)
    assert keys_of(secret) == keys
    assert secret["data"]["serials"] == "e30="


@pytest.mark.parametrize("text", [None, "", "not base64!", base64.b64encode(b"short").decode()])
def test_a_current_key_that_is_none_is_no_key_and_such_a_previous_one_is_left_out(text: str | None) -> None:
    assert keys_of({"data": {"current": text}}) is None
    data = with_keys(empty(), FIRST)["data"]
    assert keys_of({"data": {**data, "previous": text}}) == FIRST


def test_after_a_rotation_the_key_before_still_verifies_and_after_two_it_does_not() -> None:
    signature = FIRST.sign("purpose", "part")
    once = rotate_keys(FIRST)
    twice = rotate_keys(once)
    assert [keys.verify(signature, "purpose", "part") for keys in (once, twice)] == [True, False]
    assert not once.without_previous.verify(signature, "purpose", "part")
    assert len({FIRST.current, once.current, twice.current}) == 3


def test_a_key_is_made_once_and_whoever_loses_a_race_reads_again() -> None:
    cluster: Any = Cluster(empty(), conflicts=2)
    signing_keys = read_or_create(cluster, "s", "ours")
    assert read_or_create(cluster, "s", "ours") == signing_keys == keys_of(cluster.secret)


@pytest.mark.parametrize("cluster", [Cluster(None), Cluster(empty(), conflicts=99)])
def test_without_a_secret_or_a_quiet_moment_there_is_no_key(cluster: Any) -> None:
    with pytest.raises(NoSigningKeys):
        read_or_create(cluster, "s", "ours")
