"""A certificate with its key, and what can be read from it.

Four files: `ca.crt` (the bundle clients trust), `ca.key`, `tls.crt`, `tls.key`; written atomically.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certs.problems import MissingFile, Problem, UnusableFile, UnwritableFile

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""Ours are EC; cert-manager's are RSA unless asked otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """PEM bytes as they stand in the files.

    `certificate` is a chain: its first certificate belongs to `key`. The key is left out of `repr`,
    so that no log line or assertion message can carry it.
    """

    certificate: bytes
    key: bytes = field(repr=False)

    def chain(self, file: str = "tls.crt") -> Sequence[x509.Certificate]:
        """The certificates in file order, at least one. Raises `UnusableFile` with the file's name."""
        return read_chain(self.certificate, file)

    def leaf(self, file: str = "tls.crt") -> x509.Certificate:
        """The certificate the key belongs to. Raises `UnusableFile`."""
        return self.chain(file)[0]

    def private_key(self, file: str = "tls.key") -> SigningKey:
        """The key, for signing. Raises `UnusableFile` when it is no unencrypted PEM key that can sign."""
        return read_key(self.key, file)


def read_chain(pem: bytes, file: str) -> Sequence[x509.Certificate]:
    """All certificates of a PEM text. Raises `UnusableFile` when there is none or one is broken."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as e:
        raise UnusableFile(Problem("no-certificate", f"{file} holds no readable PEM certificate")) from e


def read_key(pem: bytes, file: str) -> SigningKey:
    """The key of a PEM text, EC or RSA. Raises `UnusableFile`; the message never quotes the file."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise UnusableFile(Problem("no-key", f"{file} holds no readable unencrypted PEM key")) from e
    if not isinstance(key, SigningKey):
        raise UnusableFile(Problem("no-signing-key", f"{file} holds a key that is neither EC nor RSA"))
    return key


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """DNS names first, then IP addresses, as the certificate lists them; empty when it lists none."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    dns = found.get_values_for_type(x509.DNSName)
    addresses = found.get_values_for_type(x509.IPAddress)
    return (*dns, *(str(address) for address in addresses))


def general_name(name: str) -> x509.GeneralName:
    """A name as a SAN entry: an IP address where it reads as one, a DNS name otherwise.

    Raises `ValueError` for what is neither: nobody could ever call a server by it.
    """
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        pass
    if len(name) > 253 or not _DNS.fullmatch(name):
        raise ValueError(f"{name!r} is neither a DNS name nor an IP address")
    return x509.DNSName(name)


_DNS = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)


def moment(when: datetime) -> str:
    """A time as people and machines read it: UTC, to the second."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """What the files hold, as PEM bytes.

    `bundle` begins with the authority that signs now; older ones may follow (the overlap).
    `authority_key` is None where the folder only serves (a mounted Secret, cert-manager): such a
    folder can be checked and served from, not renewed here.
    """

    bundle: bytes
    pair: KeyPair
    authority_key: bytes | None = field(default=None, repr=False)

    @property
    def authority(self) -> KeyPair | None:
        """The authority that signs now; None where its key is not kept here."""
        if self.authority_key is None:
            return None
        return KeyPair(certificate=self.bundle, key=self.authority_key)


def read(path: Path) -> CertificateFiles:
    """The folder's files as they are at this moment; not checked against each other.

    Raises `MissingFile` with the file's name (only `ca.key` may be absent), `UnusableFile` where a file is
    there and cannot be read.
    """
    return CertificateFiles(
        bundle=_bytes(path / CA),
        pair=KeyPair(certificate=_bytes(path / CERTIFICATE), key=_bytes(path / KEY)),
        authority_key=_bytes(path / CA_KEY) if (path / CA_KEY).exists() else None,
    )


def read_authority(path: Path) -> CertificateFiles:
    """The authority alone, with an empty pair where none is here: enough to issue a pair anew.

    Raises `MissingFile` without `ca.crt`.
    """
    pair = [_bytes(path / name) if (path / name).exists() else b"" for name in (CERTIFICATE, KEY)]
    key = _bytes(path / CA_KEY) if (path / CA_KEY).exists() else None
    return CertificateFiles(bundle=_bytes(path / CA), pair=KeyPair(certificate=pair[0], key=pair[1]), authority_key=key)


def write(path: Path, folder: CertificateFiles) -> None:
    """Put the files in place: each complete and synced under another name first, then all renamed.

    The order is the promise: the bundle first, so that a new authority is known before anything
    signed by it is served; then the key, then its certificate. A reader between those two renames
    sees a pair that does not match, which `CertificateLoader` refuses and `due` names. Keys are readable by
    us alone. Raises `UnwritableFile`.
    """
    waiting: dict[Path, Path] = {}
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, content, mode in _files(folder):
            waiting[path / name] = _prepared(path / name, content, mode)
        for file, temporary in waiting.items():
            temporary.replace(file)
        _sync(path)
    except OSError as e:
        raise UnwritableFile(Problem("unwritable", f"{path} cannot be written: {e.strerror}")) from e
    finally:
        for temporary in waiting.values():
            temporary.unlink(missing_ok=True)


def _files(folder: CertificateFiles) -> Iterator[tuple[str, bytes, int]]:
    yield CA, folder.bundle, 0o644
    if folder.authority_key is not None:
        yield CA_KEY, folder.authority_key, 0o600
    yield KEY, folder.pair.key, 0o600
    yield CERTIFICATE, folder.pair.certificate, 0o644


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as e:
        raise MissingFile(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    except OSError as e:
        raise UnusableFile(Problem("unreadable", f"{file} cannot be read: {e.strerror}")) from e


def _prepared(file: Path, content: bytes, mode: int) -> Path:
    # mkstemp makes the file 0600 from its first byte on; it is opened up only when complete.
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fchmod(out.fileno(), mode)
            os.fsync(out.fileno())
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return Path(temporary)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
