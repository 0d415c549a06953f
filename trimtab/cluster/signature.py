"""Signatures of what Trimtab writes into objects that others may write, too.

A node annotation can be written by every kubelet, a ConfigMap by whoever may edit its namespace. What Trimtab reads
back from such a place and acts upon carries a signature: HMAC-SHA256 (RFC 2104) with a key that only its writer holds.
"""

import hashlib
import hmac
from dataclasses import dataclass

MIN_KEY_BYTES = 32
"""A key shorter than the digest weakens it (RFC 2104, section 3)."""
_SIGNATURE_BYTES = 16
"""Half of the digest, the least that RFC 2104, section 5, recommends; annotations have little room."""


def secret_of(process: str) -> str:
    """The name of the Secret that holds a process's signing keys."""
    return f"trimtab-{process}-signing"


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The key that signs, and the key before it, which still verifies while objects signed by it are replaced."""

    current: bytes
    previous: bytes | None = None

    def __post_init__(self) -> None:
        if any(len(key) < MIN_KEY_BYTES for key in (self.current, self.previous) if key is not None):
            raise ValueError(f"a signing key has at least {MIN_KEY_BYTES} bytes")

    def __repr__(self) -> str:
        """Without the keys: a log line or a traceback must not show them."""
        return f"SigningKeys(previous={'yes' if self.previous is not None else 'no'})"

    @property
    def without_previous(self) -> "SigningKeys":
        """The key that signs, alone: what only the key before it signed does not verify."""
        return SigningKeys(self.current)

    def sign(self, purpose: str, *parts: str) -> str:
        """The signature of these parts, in hexadecimal.

        `purpose` keeps apart what one key signs for different uses; parts are delimited by their lengths, so that no
        two lists of parts have the same signature.
        """
        return _signature(self.current, purpose, parts)

    def verify(self, signature: str, purpose: str, *parts: str) -> bool:
        """Whether the current or the previous key made this signature of these parts."""
        keys = (key for key in (self.current, self.previous) if key is not None)
        offered = signature.encode(errors="replace")
        return any(hmac.compare_digest(_signature(key, purpose, parts).encode(), offered) for key in keys)


def _signature(key: bytes, purpose: str, parts: tuple[str, ...]) -> str:
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for text in (purpose, *parts):
        encoded = text.encode(errors="surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()[:_SIGNATURE_BYTES].hex()
