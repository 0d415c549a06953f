"""Reads and writes certificate folders: `ca.crt` (the bundle that clients trust), `ca.key`, `tls.crt`, `tls.key`.

Files are written atomically.
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
"""Keys of Trimtab are EC; those of cert-manager are RSA by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate chain and its key, as PEM bytes.

    The first certificate of `certificate` belongs to `key`. The key is excluded from `repr`, so that no log line or
    assertion message contains it.
    """

    certificate: bytes
    key: bytes = field(repr=False)

    def read_certificates(self, file: str = "tls.crt") -> Sequence[x509.Certificate]:
        """Returns the certificates in file order, at least one. Raises `UnusableFile` with the file's name."""
        return read_chain(self.certificate, file)

    def read_leaf(self, file: str = "tls.crt") -> x509.Certificate:
        """Returns the certificate that the key belongs to. Raises `UnusableFile`."""
        return self.read_certificates(file)[0]

    def read_private_key(self, file: str = "tls.key") -> SigningKey:
        """Returns the key, for signing. Raises `UnusableFile` if it is not an unencrypted PEM key that can sign."""
        return read_key(self.key, file)


def read_chain(pem: bytes, file: str) -> Sequence[x509.Certificate]:
    """Returns all certificates of a PEM text. Raises `UnusableFile` if there is none or one is invalid."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as e:
        raise UnusableFile(Problem("no-certificate", f"{file} holds no readable PEM certificate")) from e


def read_key(pem: bytes, file: str) -> SigningKey:
    """Returns the key of a PEM text, EC or RSA. Raises `UnusableFile`; the message never quotes the file."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise UnusableFile(Problem("no-key", f"{file} holds no readable unencrypted PEM key")) from e
    if not isinstance(key, SigningKey):
        raise UnusableFile(Problem("no-signing-key", f"{file} holds a key that is neither EC nor RSA"))
    return key


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Returns the DNS names, then the IP addresses of a certificate, in its order, or an empty tuple if it has none."""
    try:
        alternative_names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    dns = alternative_names.get_values_for_type(x509.DNSName)
    addresses = alternative_names.get_values_for_type(x509.IPAddress)
    return (*dns, *(str(address) for address in addresses))


def general_name(name: str) -> x509.GeneralName:
    """Returns a name as a SAN entry: an IP address if it parses as one, else a DNS name.

    Raises `ValueError` if it is neither, because no client could connect by such a name.
    """
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        pass
    if len(name) > 253 or not _DNS.fullmatch(name):
        raise ValueError(f"{name!r} is neither a DNS name nor an IP address")
    return x509.DNSName(name)


_DNS = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)


def format_time(time: datetime) -> str:
    """Formats a time in RFC 3339: UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """The contents of the files, as PEM bytes.

    `bundle` begins with the current authority; older ones may follow while they are still trusted. `authority_key` is
    None if the folder is only served from (a mounted Secret, cert-manager): such a folder can be checked, but not
    renewed here.
    """

    bundle: bytes
    pair: KeyPair
    authority_key: bytes | None = field(default=None, repr=False)

    @property
    def authority(self) -> KeyPair | None:
        """The current authority, or None if its key is not in the folder."""
        if self.authority_key is None:
            return None
        return KeyPair(certificate=self.bundle, key=self.authority_key)


def read_folder(path: Path) -> CertificateFiles:
    """Returns the folder's files as they are now; they are not checked against each other.

    Raises `MissingFile` with the file's name (only `ca.key` may be absent), `UnusableFile` if a file cannot be read.
    """
    return CertificateFiles(
        bundle=_read_bytes(path / CA),
        pair=KeyPair(certificate=_read_bytes(path / CERTIFICATE), key=_read_bytes(path / KEY)),
        authority_key=_read_bytes(path / CA_KEY) if (path / CA_KEY).exists() else None,
    )


def read_authority(path: Path) -> CertificateFiles:
    """Returns the authority alone, with an empty pair if there is none: enough to issue a new pair.

    Raises `MissingFile` without `ca.crt`.
    """
    pair = [_read_bytes(path / name) if (path / name).exists() else b"" for name in (CERTIFICATE, KEY)]
    key = _read_bytes(path / CA_KEY) if (path / CA_KEY).exists() else None
    return CertificateFiles(
        bundle=_read_bytes(path / CA), pair=KeyPair(certificate=pair[0], key=pair[1]), authority_key=key
    )


def write_folder(path: Path, certificates: CertificateFiles) -> None:
    """Writes the files: each is completely written and synced under a temporary name, then all are renamed.

    The order of the renames matters: the bundle first, so that a new authority is trusted before anything it signed is
    served; then the key, then its certificate. A reader between the last two renames sees a pair that does not match,
    which `CertificateLoader` rejects and `is_folder_due` reports. Keys are readable by the owner only. Raises
    `UnwritableFile`.
    """
    temporary_by_file: dict[Path, Path] = {}
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name, content, mode in _files_in_order(certificates):
            temporary_by_file[path / name] = _write_temporary(path / name, content, mode)
        for file, temporary in temporary_by_file.items():
            temporary.replace(file)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as e:
        raise UnwritableFile(Problem("unwritable", f"{path} cannot be written: {e.strerror}")) from e
    finally:
        for temporary in temporary_by_file.values():
            temporary.unlink(missing_ok=True)


def _files_in_order(certificates: CertificateFiles) -> Iterator[tuple[str, bytes, int]]:
    yield CA, certificates.bundle, 0o644
    if certificates.authority_key is not None:
        yield CA_KEY, certificates.authority_key, 0o600
    yield KEY, certificates.pair.key, 0o600
    yield CERTIFICATE, certificates.pair.certificate, 0o644


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as e:
        raise MissingFile(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    except OSError as e:
        raise UnusableFile(Problem("unreadable", f"{file} cannot be read: {e.strerror}")) from e


def _write_temporary(file: Path, content: bytes, mode: int) -> Path:
    # mkstemp creates the file with mode 0600, so a key is never readable by others, not even while it is written.
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
