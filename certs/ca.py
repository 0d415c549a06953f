"""Make an authority, and serving pairs that it signs. P-256 throughout: the cheapest handshake.

A folder in, the folder that should stand there out: first issue and renewal are one step.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.expiry import authority_due, is_folder_due
from certs.files import CertificateFiles, KeyPair, SigningKey, general_name, read_chain
from certs.problems import CertsError, MissingFile, Problem

AUTHORITY_LIFE = timedelta(days=3650)
"""Ten years: every API server that trusts us carries it, so it should change rarely."""

SERVING_LIFE = timedelta(days=365)
"""A year: somebody who issues by hand on a laptop is not surprised next month; `renew` acts at 2/3."""

SKEW = timedelta(minutes=5)
"""How far a certificate reaches back, for clients whose clock is behind ours."""


def authority(
    *, now: datetime, life: timedelta = AUTHORITY_LIFE, name: str = "trimtab", serial: int | None = None
) -> KeyPair:
    """A new self-signed CA. `now` is aware; `serial` None means a random one.

    The subject carries the serial, so that an old and a new authority are told apart by name too.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    number = serial if serial is not None else x509.random_serial_number()
    subject = _name(f"{name} CA {number:x}"[:64])
    builder = _ca(_dated(subject, key.public_key(), now, life, number), depth=1).issuer_name(subject)
    return KeyPair(certificate=_pem(_signed(builder, key)), key=_key_pem(key))


def serving(
    signer: KeyPair,
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFE,
    serial: int | None = None,
) -> KeyPair:
    """A serving pair for DNS names and IP addresses, signed by `signer`, never outliving it.

    Raises `ValueError` when `names` is empty (a certificate without names is trusted by nobody) and
    `UnusableFile` when the signer cannot be read.
    """
    if not names:
        raise ValueError("a serving certificate needs at least one DNS name or IP address")
    key = ec.generate_private_key(ec.SECP256R1())
    number = serial if serial is not None else x509.random_serial_number()
    ca = signer.leaf("ca.crt")
    until = min(now + life, ca.not_valid_after_utc)
    builder = _dated(_name(names[0][:64]), key.public_key(), now, until - now, number)
    builder = _leaf(builder, names).issuer_name(ca.subject)
    signed = _signed(builder, signer.private_key("ca.key"))
    return KeyPair(certificate=_pem(signed), key=_key_pem(key))


def cross(old: KeyPair, new: KeyPair, *, now: datetime, serial: int | None = None) -> bytes:
    """The new authority's name and key, signed by the old one: PEM for the end of a serving chain.

    With it, a client that still trusts only the old authority follows leaf → new → old, so no
    moment of a rotation is refused. Valid as long as the old authority is.
    """
    ca, successor = old.leaf("ca.crt"), new.leaf("ca.crt")
    number = serial if serial is not None else x509.random_serial_number()
    life = min(ca.not_valid_after_utc, successor.not_valid_after_utc) - now
    builder = _dated(successor.subject, successor.public_key(), now, life, number)
    builder = _ca(builder, depth=0).issuer_name(ca.subject)
    return _pem(_signed(builder, old.private_key("ca.key")))


def _dated(
    subject: x509.Name, key: CertificatePublicKeyTypes, now: datetime, life: timedelta, serial: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(serial)
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _ca(builder: x509.CertificateBuilder, *, depth: int) -> x509.CertificateBuilder:
    # OpenSSL's strict checks (on by default since Python 3.13) want basicConstraints critical and
    # a keyUsage with keyCertSign in every authority.
    constraints = x509.BasicConstraints(ca=True, path_length=depth)
    return builder.add_extension(constraints, critical=True).add_extension(
        _usage(sign_certificates=True), critical=True
    )


def _leaf(builder: x509.CertificateBuilder, names: Sequence[str]) -> x509.CertificateBuilder:
    sans = x509.SubjectAlternativeName([general_name(name) for name in dict.fromkeys(names)])
    return (
        builder.add_extension(sans, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
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


def _signed(builder: x509.CertificateBuilder, key: SigningKey) -> x509.Certificate:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())
    return builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256())


def _name(common: str) -> x509.Name:
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
    life: timedelta = SERVING_LIFE,
    authority_life: timedelta = AUTHORITY_LIFE,
    serial: int | None = None,
) -> CertificateFiles:
    """A new authority and a serving pair for `names`. Raises `ValueError` when `names` is empty."""
    ca = authority(now=now, life=authority_life)
    pair = serving(ca, names, now=now, life=life, serial=serial)
    return CertificateFiles(bundle=ca.certificate, pair=pair, authority_key=ca.key)


def renew(
    folder: CertificateFiles,
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFE,
    authority_life: timedelta = AUTHORITY_LIFE,
    serial: int | None = None,
) -> CertificateFiles:
    """A new serving pair; a new authority with it only when the old one is due.

    When the authority changes, the bundle holds the new one and every old one still valid, and the
    serving chain ends with the new authority signed by the old: whoever trusts only yesterday's
    bundle goes on trusting us. Raises `MissingFile` when the folder has no `ca.key`.
    """
    held = folder.authority
    if held is None:
        raise MissingFile(Problem("no-ca-key", "ca.key is not here: whoever issued this pair must renew it"))
    if not authority_due(folder, now):
        return replace(folder, pair=serving(held, names, now=now, life=life, serial=serial))
    new = issue(names, now=now, life=life, authority_life=authority_life, serial=serial)
    return replace(new, bundle=new.bundle + _overlap(folder, now), pair=_bridged(held, new, now))


def renew_if_due(
    folder: CertificateFiles, names: Sequence[str], *, now: datetime
) -> tuple[CertificateFiles, tuple[Problem, ...]]:
    """The folder that should stand there and why it differs; no reasons means nothing to do."""
    reasons = is_folder_due(folder, now, names=names)
    return (renew(folder, names, now=now), reasons) if reasons else (folder, ())


def _overlap(folder: CertificateFiles, now: datetime) -> bytes:
    try:
        old = read_chain(folder.bundle, "ca.crt")
    except CertsError:
        return b""
    return b"".join(_certificate_pem(ca) for ca in old if now < ca.not_valid_after_utc)


def _bridged(old: KeyPair, new: CertificateFiles, now: datetime) -> KeyPair:
    # Only an authority that is itself sound can vouch for its successor.
    try:
        sound = old.private_key("ca.key").public_key() == old.leaf("ca.crt").public_key()
        alive = now < old.leaf("ca.crt").not_valid_after_utc
    except CertsError:
        return new.pair
    successor = new.authority
    if not (sound and alive and successor):
        return new.pair
    chain = new.pair.certificate + cross(old, successor, now=now)
    return replace(new.pair, certificate=chain)


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
