"""Certificates for clients, as a cluster's own authority signs them."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs import KeyPair


def client_pair(
    signer: KeyPair,
    name: str,
    *,
    until: datetime | None = None,
    use: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
) -> KeyPair:
    """One that carries this common name."""
    now, key = datetime.now(UTC), ec.generate_private_key(ec.SECP256R1())
    item = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(signer.read_leaf().subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(until or now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        .sign(signer.read_private_key(), hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return KeyPair(
        certificate=item.public_bytes(encoding),
        key=key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain),
    )
