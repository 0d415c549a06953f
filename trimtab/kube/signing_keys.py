"""Signing keys in a Secret: read, created if the Secret is empty, and rotated on request.

The manifests contain the Secret without data, and the process that owns it fills it, as with the serving certificate
(decision 0008). So applying the manifests again removes nothing, and no service account needs permission to create
Secrets.
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
"""The key in the Secret's data under which the signing key is stored."""
PREVIOUS_KEY = "previous"
"""The key in the Secret's data under which the previous signing key is stored; absent until the first rotation."""
_MAX_ATTEMPTS = 5


class NoSigningKeys(KubeFault):
    """Raised if the Secret does not exist, or if other replicas kept changing it."""


def keys_of(secret: Mapping[str, Any]) -> SigningKeys | None:
    """Returns the signing keys in a Secret, or None if it has no usable current key. A previous key that is not usable
    is left out."""
    data = secret.get("data") or {}
    current, previous = _decode(data.get(CURRENT_KEY)), _decode(data.get(PREVIOUS_KEY))
    return SigningKeys(current, previous) if current is not None else None


def read_or_create(client: Client, name: str, namespace: str) -> SigningKeys:
    """Returns the signing keys in this Secret. If it has none, a new key is stored first.

    Two replicas that start at the same time get the same key: a write names the version that was read, and the slower
    replica reads again. Raises NoSigningKeys if the Secret does not exist, and any other KubeFault.
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
    raise NoSigningKeys(
        f"other clients changed Secret {namespace}/{name} {_MAX_ATTEMPTS} times while Trimtab stored a key in it"
    )


def rotate_keys(keys: SigningKeys) -> SigningKeys:
    """Returns keys with a new current key. The present key becomes the previous one, with which signatures can still be
    verified."""
    return SigningKeys(secrets.token_bytes(MIN_KEY_BYTES), keys.current)


def with_keys(secret: Mapping[str, Any], keys: SigningKeys) -> dict[str, Any]:
    """Returns the Secret with these keys; its other data is kept."""
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
