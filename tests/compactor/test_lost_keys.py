"""The Secret of the signing keys is changed while a process leads."""

import base64
import json
from typing import Any

import pytest

from tests.compactor.five import begun, five
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor.actuator import ActuatorUnavailable
from trimtab.compactor.node_signatures import NodeSigner, OtherKeys
from trimtab.kube.objects import Writer
from trimtab.kube.signing_keys import with_keys

FIRST, SECOND, THIRD = (SigningKeys(letter * 32) for letter in (b"a", b"b", b"c"))


class Cluster:
    """What a client gives: one Secret."""

    def __init__(self, secret: dict[str, Any]) -> None:
        self.secret = secret

    def get(self, *_: object, **__: object) -> bytes:
        return json.dumps(self.secret).encode()

    def write(self, method: str, path: str, body: dict[str, Any], **_: object) -> bytes:
        self.secret = body
        return b"{}"


def led(secret: dict[str, Any]) -> NodeSigner:
    return NodeSigner(Writer(client=Cluster({"metadata": {"name": "s"}, **secret})), "ours", "u1", FIRST)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("secret", "lost"),
    [
        (with_keys({}, SigningKeys(SECOND.current, FIRST.current)), False),
        (with_keys({}, SECOND), True),
        (with_keys({}, SigningKeys(THIRD.current, SECOND.current)), True),
        ({}, True),
        ({"data": {"current": base64.b64encode(b"short").decode()}}, True),
    ],
    ids=["rotated", "replaced", "rotated twice", "emptied", "spoiled"],
)
def test_other_keys_are_noticed_and_whether_ours_still_verify(secret: dict[str, Any], lost: bool) -> None:
    signing = led(secret)
    with pytest.raises(OtherKeys):
        signing.raise_serial("web", 3)
    assert (signing.outdated, signing.lost) == (True, lost)


def test_a_look_between_drains_notices_a_rotation_and_is_quiet_without_one() -> None:
    signing = led(with_keys({}, FIRST))
    assert signing.read_secret() is not None
    assert not signing.outdated
    signing.writer.client.secret = with_keys({}, SigningKeys(SECOND.current, FIRST.current))  # type: ignore[attr-defined]
    assert signing.read_secret() is None
    assert (signing.outdated, signing.lost) == (True, False)


def test_with_our_own_keys_nothing_is_lost() -> None:
    signing = led(with_keys({}, FIRST))
    signing.raise_serial("web", 3)
    assert (signing.outdated, signing.lost, signing.serials) == (False, False, {"web": 3})


def test_the_end_of_a_process_whose_keys_are_lost_leaves_no_cordon_on_a_node_with_pods() -> None:
    """The state is written, and the number below which none counts cannot be."""
    played = five()
    loop, _ = begun(played)
    save = played.save_state

    def kept_without_number(pool: str, memory: PoolState, *, final: bool) -> None:
        save(pool, memory, final=final)
        if final:
            raise ActuatorUnavailable("Secret ours/trimtab-compactor-signing does not hold the keys that were read")

    played.save_state = kept_without_number  # type: ignore[method-assign]
    assert played.cordoned
    loop.shut_down()
    assert (played.cordoned, played.noted) == ([], [])
