"""The compactor's signing keys, and for each pool the serial number below which a stored state is no longer valid.

Both are in one Secret, which this process fills and which no other component of Trimtab may read. The serial numbers
prevent that an older state is restored: its signature is valid, but its number is too small.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.processes import secret_of
from trimtab.cluster.signature import SigningKeys
from trimtab.compactor.settings import Settings
from trimtab.kube import objects, signing_keys
from trimtab.kube.objects import Writer
from trimtab.kube.signing_keys import NoSigningKeys

SECRET = secret_of(Settings.process)
SERIALS_KEY = "serials"
"""The key in the Secret's data with JSON: pool → the smallest valid serial number of a state."""
_PURPOSE = "state of a pool"


class OtherKeys(NoSigningKeys):
    """Raised if the Secret no longer holds the keys that this process has read."""


@dataclass(slots=True)
class NodeSigner:
    """The signing keys of the leader. Its methods raise KubeFault for errors of the API server."""

    writer: Writer
    namespace: str
    uid: str
    """The uid of the Secret. Signatures cover it, so that keys and states that are restored into another cluster are
    not valid there."""
    keys: SigningKeys
    serials: dict[str, int] = field(default_factory=dict)
    """Pool → the smallest valid serial number of a state."""
    outdated: bool = False
    """Whether the keys in the Secret have changed, so that all annotations and states must be read and verified
    again."""
    lost: bool = False
    """Whether the Secret no longer holds this process's key, not even as the previous key. No other replica can then
    verify what this process has signed."""

    def sign_state(self, pool: str, serial: int, text: str) -> str:
        """Returns the signature of a pool's state."""
        return self.keys.sign(_PURPOSE, self.uid, pool, str(serial), text)

    def signature_problem(self, pool: str, serial: int, text: str, signature: str) -> str:
        """Returns why the text with this serial number and signature is not a valid state of the pool, or an empty
        string if it is."""
        if not signature:
            return "the state has no signature"
        if not self.keys.verify(signature, _PURPOSE, self.uid, pool, str(serial), text):
            return "this compactor did not make the signature of the state for this pool"
        least = self.serials.get(pool, 0)
        return (
            f"the state is older than the current one: it has the number {serial}, but the current number is {least}"
            if serial < least
            else ""
        )

    def read_secret(self) -> Mapping[str, Any] | None:
        """Returns the Secret; None if it no longer holds the keys, so that everything must be read again. Raises
        KubeFault."""
        secret = objects.get_plain(self.writer.client, "Secret", SECRET, self.namespace)
        keys = signing_keys.keys_of(secret) if secret is not None else None
        if keys == self.keys:
            return secret
        self.outdated = True
        self.lost = keys is None or self.keys.current not in (keys.current, keys.previous)
        return None

    def is_of_previous_key(self, pool: str, serial: int, text: str, signature: str) -> bool:
        """Returns whether the state was signed with the previous key and not with the current one."""
        return not self.keys.without_previous.verify(signature, _PURPOSE, self.uid, pool, str(serial), text)

    def raise_serial(self, pool: str, serial: int) -> None:
        """Makes every state of the pool with a smaller serial number invalid. Raises OtherKeys."""
        secret = self.read_secret()
        if secret is None:
            raise OtherKeys(
                f"Secret {self.namespace}/{SECRET} no longer contains the keys that the compactor read, so it is "
                "read again"
            )
        serials = {**_serials(secret), pool: serial}
        text = base64.b64encode(msgspec.json.encode(serials)).decode()
        objects.replace_plain(self.writer, {**secret, "data": {**secret["data"], SERIALS_KEY: text}})
        self.serials = serials


def open_signer(writer: Writer, namespace: str) -> NodeSigner:
    """Returns the signer with the keys in the Secret; they are created if the Secret is still empty. Raises
    NoSigningKeys if there is no Secret."""
    signing_keys.read_or_create(writer.client, SECRET, namespace)
    signer = read_signer(writer, namespace)
    if signer is None:
        raise NoSigningKeys(f"Secret {namespace}/{SECRET} was deleted while the compactor read it")
    return signer


def read_signer(writer: Writer, namespace: str) -> NodeSigner | None:
    """Returns the signer with the present keys, or None if there are none. Raises KubeFault."""
    secret = objects.get_plain(writer.client, "Secret", SECRET, namespace)
    return of_secret(writer, namespace, secret) if secret is not None else None


def of_secret(writer: Writer, namespace: str, secret: Mapping[str, Any]) -> NodeSigner | None:
    """Returns the signer with the keys in this Secret, or None if it holds none."""
    keys = signing_keys.keys_of(secret)
    if keys is None:
        return None
    return NodeSigner(writer, namespace, secret["metadata"]["uid"], keys, _serials(secret))


def _serials(secret: Mapping[str, Any]) -> dict[str, int]:
    """Returns pool → serial number from the Secret; empty if the content is not valid. (A client that can write the
    Secret could sign states anyway.)"""
    try:
        text = base64.b64decode((secret.get("data") or {}).get(SERIALS_KEY) or "", validate=True)
        return msgspec.json.decode(text, type=dict[str, int]) if text else {}
    except (binascii.Error, ValueError, TypeError, msgspec.DecodeError):
        return {}
