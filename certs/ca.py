"""Issues authorities and serving certificates, and renews a folder of certificates. All keys are P-256, for cheap
handshakes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.expiry import authority_due, is_folder_due
from certs.pem_files import CertificateFiles, KeyPair, SigningKey, general_name, read_chain
from certs.problems import CertsError, MissingFile, Problem

AUTHORITY_LIFETIME = timedelta(days=3650)
"""Ten years: every API server that calls the webhook has the authority in a caBundle, so it should change rarely."""

SERVING_LIFETIME = timedelta(days=365)
"""A year, so that a certificate issued by hand does not expire soon; `renew` acts at two thirds of it."""

CLOCK_SKEW = timedelta(minutes=5)
"""The time by which a certificate's validity begins earlier, for clients whose clock is behind."""


def create_authority(
    *, now: datetime, life: timedelta = AUTHORITY_LIFETIME, name: str = "trimtab", serial: int | None = None
) -> KeyPair:
    """Returns a new self-signed CA. `now` is timezone-aware; `serial` None means a random one.

    The subject contains the serial, so that old and new authorities also differ by name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    number = serial if serial is not None else x509.random_serial_number()
    subject = _subject(f"{name} CA {number:x}"[:64])
    builder = _as_authority(_certificate_builder(subject, key.public_key(), now, life, number), depth=1).issuer_name(
        subject
    )
    return KeyPair(certificate=_pem(_sign(builder, key)), key=_key_pem(key))


def create_serving_pair(
    signer: KeyPair,
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFETIME,
    serial: int | None = None,
) -> KeyPair:
    """Returns a serving pair for DNS names and IP addresses, signed by `signer`, that never outlives it.

    Raises `ValueError` if `names` is empty (no client trusts a certificate without names) and `UnusableFile` if the
    signer cannot be read.
    """
    if not names:
        raise ValueError("a serving certificate needs at least one DNS name or IP address")
    key = ec.generate_private_key(ec.SECP256R1())
    number = serial if serial is not None else x509.random_serial_number()
    ca = signer.read_leaf("ca.crt")
    not_after = min(now + life, ca.not_valid_after_utc)
    builder = _certificate_builder(_subject(names[0][:64]), key.public_key(), now, not_after - now, number)
    builder = _as_leaf(builder, names).issuer_name(ca.subject)
    signed = _sign(builder, signer.read_private_key("ca.key"))
    return KeyPair(certificate=_pem(signed), key=_key_pem(key))


def cross_sign(old: KeyPair, new: KeyPair, *, now: datetime, serial: int | None = None) -> bytes:
    """Returns the new authority's name and key signed by the old one, as PEM for the end of a serving chain.

    With it, a client that still trusts only the old authority verifies leaf → new → old, so no connection fails during
    a rotation. Valid as long as the old authority is.
    """
    ca, successor = old.read_leaf("ca.crt"), new.read_leaf("ca.crt")
    number = serial if serial is not None else x509.random_serial_number()
    life = min(ca.not_valid_after_utc, successor.not_valid_after_utc) - now
    builder = _certificate_builder(successor.subject, successor.public_key(), now, life, number)
    builder = _as_authority(builder, depth=0).issuer_name(ca.subject)
    return _pem(_sign(builder, old.read_private_key("ca.key")))


def _certificate_builder(
    subject: x509.Name, key: CertificatePublicKeyTypes, now: datetime, life: timedelta, serial: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _as_authority(builder: x509.CertificateBuilder, *, depth: int) -> x509.CertificateBuilder:
    # OpenSSL's strict checks (on by default since Python 3.13) want basicConstraints critical and
    # a keyUsage with keyCertSign in every authority.
    constraints = x509.BasicConstraints(ca=True, path_length=depth)
    return builder.add_extension(constraints, critical=True).add_extension(
        _key_usage(sign_certificates=True), critical=True
    )


def _as_leaf(builder: x509.CertificateBuilder, names: Sequence[str]) -> x509.CertificateBuilder:
    sans = x509.SubjectAlternativeName([general_name(name) for name in dict.fromkeys(names)])
    return (
        builder.add_extension(sans, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )


def _key_usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(builder: x509.CertificateBuilder, key: SigningKey) -> x509.Certificate:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256())


def _subject(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def issue(
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFETIME,
    authority_life: timedelta = AUTHORITY_LIFETIME,
    serial: int | None = None,
) -> CertificateFiles:
    """Returns a new authority and a serving pair for `names`. Raises `ValueError` if `names` is empty."""
    ca = create_authority(now=now, life=authority_life)
    pair = create_serving_pair(ca, names, now=now, life=life, serial=serial)
    return CertificateFiles(bundle=ca.certificate, pair=pair, authority_key=ca.key)


def renew(
    certificates: CertificateFiles,
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFETIME,
    authority_life: timedelta = AUTHORITY_LIFETIME,
    serial: int | None = None,
) -> CertificateFiles:
    """Returns the folder with a new serving pair, and with a new authority only if the old one is due.

    With a new authority, the bundle holds the new one and every old one that is still valid, and the serving chain ends
    with the new authority signed by the old: a client with the old bundle still trusts the server. Raises `MissingFile`
    if the folder has no `ca.key`.
    """
    signer = certificates.authority
    if signer is None:
        raise MissingFile(Problem("no-ca-key", "ca.key is missing: this pair must be renewed where it was issued"))
    if not authority_due(certificates, now):
        return replace(certificates, pair=create_serving_pair(signer, names, now=now, life=life, serial=serial))
    new = issue(names, now=now, life=life, authority_life=authority_life, serial=serial)
    return replace(
        new,
        bundle=new.bundle + _still_valid_authorities(certificates, now),
        pair=_with_cross_signed_chain(signer, new, now),
    )


def renew_if_due(
    certificates: CertificateFiles, names: Sequence[str], *, now: datetime
) -> tuple[CertificateFiles, tuple[Problem, ...]]:
    """Returns the renewed folder and the reasons; no reasons mean that nothing changed."""
    reasons = is_folder_due(certificates, now, names=names)
    return (renew(certificates, names, now=now), reasons) if reasons else (certificates, ())


def _still_valid_authorities(certificates: CertificateFiles, now: datetime) -> bytes:
    try:
        old = read_chain(certificates.bundle, "ca.crt")
    except CertsError:
        return b""
    return b"".join(ca.public_bytes(serialization.Encoding.PEM) for ca in old if now < ca.not_valid_after_utc)


def _with_cross_signed_chain(old: KeyPair, new: CertificateFiles, now: datetime) -> KeyPair:
    # Clients verify the old authority's signature, so it must be valid and signed with its own key.
    try:
        is_matching = old.read_private_key("ca.key").public_key() == old.read_leaf("ca.crt").public_key()
        is_valid = now < old.read_leaf("ca.crt").not_valid_after_utc
    except CertsError:
        return new.pair
    successor = new.authority
    if not (is_matching and is_valid and successor):
        return new.pair
    chain = new.pair.certificate + cross_sign(old, successor, now=now)
    return replace(new.pair, certificate=chain)
