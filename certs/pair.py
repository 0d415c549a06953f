"""A certificate with its key, and what can be read from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certs.errors import Unusable
from certs.problem import Problem

SigningKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""Ours are EC; cert-manager's are RSA unless asked otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """PEM bytes as they stand in the files.

    `certificate` is a chain: its first certificate belongs to `key`. The key is left out of `repr`,
    so that no log line or assertion message can carry it.
    """

    certificate: bytes
    key: bytes = field(repr=False)

    def chain(self, file: str = "tls.crt") -> Sequence[x509.Certificate]:
        """The certificates in file order, at least one. Raises `Unusable` with the file's name."""
        return read_chain(self.certificate, file)

    def leaf(self, file: str = "tls.crt") -> x509.Certificate:
        """The certificate the key belongs to. Raises `Unusable`."""
        return self.chain(file)[0]

    def private_key(self, file: str = "tls.key") -> SigningKey:
        """The key, for signing. Raises `Unusable` when it is no unencrypted PEM key that can sign."""
        return read_key(self.key, file)


def read_chain(pem: bytes, file: str) -> Sequence[x509.Certificate]:
    """All certificates of a PEM text. Raises `Unusable` when there is none or one is broken."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as e:
        raise Unusable(Problem("no-certificate", f"{file} holds no readable PEM certificate")) from e


def read_key(pem: bytes, file: str) -> SigningKey:
    """The key of a PEM text, EC or RSA. Raises `Unusable`; the message never quotes the file."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise Unusable(Problem("no-key", f"{file} holds no readable unencrypted PEM key")) from e
    if not isinstance(key, SigningKey):
        raise Unusable(Problem("no-signing-key", f"{file} holds a key that is neither EC nor RSA"))
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
