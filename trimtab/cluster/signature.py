"""Signs what Trimtab writes into objects that others can write too.

Every kubelet can write a node annotation, and everyone who may edit the namespace can write a ConfigMap. So what
Trimtab reads back from there, and acts upon, carries a signature: HMAC-SHA256 (RFC 2104) with a key that only the
process that writes it has.
"""

import hmac
from dataclasses import dataclass

MIN_KEY_BYTES = 32
"""The minimum length of a key: one shorter than the digest weakens the signature (RFC 2104, section 3)."""
# Half of the digest, the least that RFC 2104, section 5, recommends; annotations have little room.
_SIGNATURE_BYTES = 16


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The key that signs, and the previous key. Signatures of the previous key stay valid until everything that it
    signed is signed again."""

    current: bytes
    previous: bytes | None = None

    def __post_init__(self) -> None:
        if any(len(key) < MIN_KEY_BYTES for key in (self.current, self.previous) if key is not None):
            raise ValueError(f"a signing key has at least {MIN_KEY_BYTES} bytes")

    def __repr__(self) -> str:
        """Returns a text without the keys, because log lines and tracebacks must not show them."""
        return f"SigningKeys(previous={'yes' if self.previous is not None else 'no'})"

    @property
    def without_previous(self) -> "SigningKeys":
        """These keys without the previous key, so that signatures of the previous key are no longer valid."""
        return SigningKeys(self.current)

    def sign(self, purpose: str, *parts: str) -> str:
        """Returns the signature of these parts, in hexadecimal.

        `purpose` is signed too, so that a signature made for one use is not valid for another. The length of each part
        is signed too, so that no two different lists of parts have the same signature.
        """
        return _signature(self.current, purpose, parts)

    def verify(self, signature: str, purpose: str, *parts: str) -> bool:
        """Returns whether the current or the previous key made this signature for this purpose and these parts."""
        keys = (key for key in (self.current, self.previous) if key is not None)
        signature_bytes = signature.encode(errors="replace")
        return any(hmac.compare_digest(_signature(key, purpose, parts).encode(), signature_bytes) for key in keys)


def _signature(key: bytes, purpose: str, parts: tuple[str, ...]) -> str:
    encoded = [text.encode(errors="surrogatepass") for text in (purpose, *parts)]
    # Without the length, ("ab", "c") and ("a", "bc") would have the same signature.
    message = b"".join([part for text in encoded for part in (len(text).to_bytes(8, "big"), text)])
    return hmac.digest(key, message, "sha256")[:_SIGNATURE_BYTES].hex()
