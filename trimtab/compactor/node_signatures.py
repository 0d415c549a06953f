"""The compactor's signing keys, and the serial number below which no state of a pool counts any more.

Both stand in one Secret that the process fills, and that nobody else of ours may read. The numbers are why an older
state does not help whoever writes it back: its signature is right, its number is not.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.signature import SigningKeys, secret_of
from trimtab.kube import objects, signing_keys
from trimtab.kube.objects import Writer
from trimtab.kube.signing_keys import NoSigningKeys

SECRET = secret_of("compactor")
SERIALS = "serials"
"""Key of the Secret's data: JSON, pool → the least serial number of a state that counts."""
_PURPOSE = "state of a pool"


class OtherKeys(NoSigningKeys):
    """The Secret's keys are no longer those this process read."""


@dataclass(slots=True)
class NodeSigner:
    """Of the leader. Raises KubeFault as the API server answers."""

    writer: Writer
    namespace: str
    uid: str
    """The Secret's own: keys and state that were restored into another cluster together do not count there."""
    keys: SigningKeys
    serials: dict[str, int] = field(default_factory=dict)
    """Pool → the least serial number of a state that counts."""
    outdated: bool = False
    """The Secret's keys were changed: everything has to be read anew."""
    lost: bool = False
    """The Secret does not even hold ours as the previous one: nobody after us can verify what we signed."""

    def sign(self, pool: str, serial: int, text: str) -> str:
        return self.keys.sign(_PURPOSE, self.uid, pool, str(serial), text)

    def problem(self, pool: str, serial: int, text: str, signature: str) -> str:
        """Why this is no state of the pool that may be believed; empty when it is one."""
        if not signature:
            return "it carries no signature"
        if not self.keys.verify(signature, _PURPOSE, self.uid, pool, str(serial), text):
            return "its signature is not of this compactor for this pool"
        least = self.serials.get(pool, 0)
        return f"it is an older state: number {serial}, but {least} was written since" if serial < least else ""

    def look(self) -> Mapping[str, Any] | None:
        """The Secret; None where it does not hold our keys any more: then all has to be read anew. Raises KubeFault."""
        secret = objects.get(self.writer.client, "Secret", SECRET, self.namespace)
        keys = signing_keys.keys_of(secret) if secret is not None else None
        if keys == self.keys:
            return secret
        self.outdated = True
        self.lost = keys is None or self.keys.current not in (keys.current, keys.previous)
        return None

    def is_of_previous_key(self, pool: str, serial: int, text: str, signature: str) -> bool:
        """Whether the current key did not sign this state."""
        return not self.keys.without_previous.verify(signature, _PURPOSE, self.uid, pool, str(serial), text)

    def raise_serial(self, pool: str, serial: int) -> None:
        """From now on no state of the pool with a smaller number counts. Raises OtherKeys."""
        secret = self.look()
        if secret is None:
            raise OtherKeys(f"Secret {self.namespace}/{SECRET} does not hold the keys that were read: all is read anew")
        serials = {**_serials(secret), pool: serial}
        text = base64.b64encode(msgspec.json.encode(serials)).decode()
        objects.put(self.writer, {**secret, "data": {**secret["data"], SERIALS: text}})
        self.serials = serials


def opened(writer: Writer, namespace: str) -> NodeSigner:
    """The keys, made where the Secret is still empty. Raises NoSigningKeys where there is no Secret."""
    signing_keys.read_or_create(writer.client, SECRET, namespace)
    found = read(writer, namespace)
    if found is None:
        raise NoSigningKeys(f"Secret {namespace}/{SECRET} was taken away while it was read")
    return found


def read(writer: Writer, namespace: str) -> NodeSigner | None:
    """The keys as they stand; None where there are none. Raises KubeFault."""
    secret = objects.get(writer.client, "Secret", SECRET, namespace)
    return of_secret(writer, namespace, secret) if secret is not None else None


def of_secret(writer: Writer, namespace: str, secret: Mapping[str, Any]) -> NodeSigner | None:
    """The keys that this Secret holds; None where it holds none."""
    keys = signing_keys.keys_of(secret)
    if keys is None:
        return None
    return NodeSigner(writer, namespace, secret["metadata"]["uid"], keys, _serials(secret))


def _serials(secret: Mapping[str, Any]) -> dict[str, int]:
    """What the Secret says; nothing where it makes no sense: whoever may write it may sign anything, too."""
    try:
        text = base64.b64decode((secret.get("data") or {}).get(SERIALS) or "", validate=True)
        return msgspec.json.decode(text, type=dict[str, int]) if text else {}
    except (binascii.Error, ValueError, TypeError, msgspec.DecodeError):
        return {}
