"""Signing keys in a Secret: read, created while the Secret is empty, rotated on request.

The Secret is rendered without data and filled by the process that owns it, like that of the serving certificate
(decision 0008): applying the manifests again removes nothing, and no account needs the right to create a Secret.
"""

import base64
import binascii
import secrets
from collections.abc import Mapping
from typing import Any

from trimtab.cluster.signature import MIN_KEY_BYTES, SigningKeys
from trimtab.kube import objects
from trimtab.kube.client import Client
from trimtab.kube.errors import Conflict, KubeFault
from trimtab.kube.objects import Writer

CURRENT_KEY = "current"
"""Key of the Secret's data: the key that signs."""
PREVIOUS_KEY = "previous"
"""Key of the Secret's data: the key before it; absent until the first rotation."""
_MAX_ATTEMPTS = 5


class NoSigningKeys(KubeFault):
    """The Secret does not exist, or other replicas kept changing it."""


def keys_of(secret: Mapping[str, Any]) -> SigningKeys | None:
    """Returns the keys in a Secret, or None if it has no usable current key. An unusable previous key is left out."""
    data = secret.get("data") or {}
    current, previous = _decode(data.get(CURRENT_KEY)), _decode(data.get(PREVIOUS_KEY))
    return SigningKeys(current, previous) if current is not None else None


def read_or_create(client: Client, name: str, namespace: str) -> SigningKeys:
    """Returns the keys in this Secret; where it has none, a new key is stored first.

    Two replicas that start at once agree: the write carries the version that was read, and the slower one reads again.
    Raises NoSigningKeys where the Secret does not exist, and KubeFault as the API server responds.
    """
    for _ in range(_MAX_ATTEMPTS):
        secret = objects.get_plain(client, "Secret", name, namespace)
        if secret is None:
            raise NoSigningKeys(f"Secret {namespace}/{name} does not exist: `trimtab install` creates it")
        keys = keys_of(secret)
        if keys is not None:
            return keys
        try:
            objects.replace_plain(
                Writer(client=client), with_keys(secret, SigningKeys(secrets.token_bytes(MIN_KEY_BYTES)))
            )
        # Another replica stored a key first: read that one and use it.
        except Conflict:
            continue
    raise NoSigningKeys(f"other clients changed Secret {namespace}/{name} {_MAX_ATTEMPTS} times while a key was stored")


def rotate_keys(keys: SigningKeys) -> SigningKeys:
    """Returns a new current key; the previous one stays for verification."""
    return SigningKeys(secrets.token_bytes(MIN_KEY_BYTES), keys.current)


def with_keys(secret: Mapping[str, Any], keys: SigningKeys) -> dict[str, Any]:
    """Returns the same Secret with these keys; its other data stays."""
    others = {
        name: text for name, text in (secret.get("data") or {}).items() if name not in (CURRENT_KEY, PREVIOUS_KEY)
    }
    data = {CURRENT_KEY: _encode(keys.current)} | (
        {PREVIOUS_KEY: _encode(keys.previous)} if keys.previous is not None else {}
    )
    return {**secret, "data": {**others, **data}}


def _encode(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _decode(text: object) -> bytes | None:
    if not isinstance(text, str):
        return None
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) >= MIN_KEY_BYTES else None
