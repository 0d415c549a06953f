"""Checks whether certificates must be renewed, and describes the state of a certificate folder for people and
metrics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.pem_files import CA_KEY, KEY, CertificateFiles, KeyPair, format_time, names_of, read_chain, read_folder
from certs.problems import CertsError, Problem


def is_certificate_due(pair: KeyPair, now: datetime, *, names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Returns every reason to replace this pair, or an empty tuple until two thirds of its life have passed.

    `names` are those that it must carry; a missing one is a reason too. Never raises: a pair that cannot be read is due
    because of that.
    """
    try:
        leaf = pair.read_leaf()
        matches = pair.read_private_key().public_key() == leaf.public_key()
    except CertsError as e:
        return (e.problem,)
    return (*_key_problems(matches), *_age_problems(leaf, now, ""), *_name_problems(leaf, names))


def is_folder_due(certificates: CertificateFiles, now: datetime, *, names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Returns the reasons for a whole folder: also the authority's age, and whether it signed the pair."""
    return (
        *authority_due(certificates, now),
        *is_certificate_due(certificates.pair, now, names=names),
        *chain_problems(certificates),
    )


def authority_due(certificates: CertificateFiles, now: datetime) -> tuple[Problem, ...]:
    """Returns the reasons for a new authority: unreadable, its key missing or different, past two thirds of
    its life."""
    try:
        signer = read_chain(certificates.bundle, "ca.crt")[0]
        authority = certificates.authority
        matches = authority is None or authority.read_private_key("ca.key").public_key() == signer.public_key()
    except CertsError as e:
        return (e.problem,)
    mismatch = () if matches else (Problem("ca-key-mismatch", "ca.key is not the key of ca.crt"),)
    return (*mismatch, *_age_problems(signer, now, "ca-"))


def chain_problems(certificates: CertificateFiles) -> tuple[Problem, ...]:
    """Returns a problem if the chain does not lead to a certificate of the bundle, or an empty tuple if it does."""
    try:
        chain, bundle = certificates.pair.read_certificates(), read_chain(certificates.bundle, "ca.crt")
    except CertsError as e:
        return (e.problem,)
    for certificate, issuer in zip_longest(chain, chain[1:]):
        if any(is_signed_by(certificate, ca) for ca in bundle):
            return ()
        if issuer is None or not is_signed_by(certificate, issuer):
            break
    return (Problem("ca-mismatch", "tls.crt does not lead to any certificate of ca.crt"),)


def is_signed_by(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    """Returns whether this authority signed the certificate, by name and by key. Validity periods are not checked."""
    try:
        leaf.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _key_problems(matches: bool) -> Iterator[Problem]:
    if not matches:
        yield Problem("key-mismatch", "tls.key is not the key of tls.crt (half written?)")


def _age_problems(certificate: x509.Certificate, now: datetime, prefix: str) -> Iterator[Problem]:
    file = "ca.crt" if prefix else "tls.crt"
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        yield Problem(f"{prefix}not-yet-valid", f"{file} is valid only from {format_time(start)}")
    elif now >= end:
        yield Problem(f"{prefix}expired", f"{file} expired at {format_time(end)}")
    elif now >= start + (end - start) * 2 / 3:
        says = f"{file} is past two thirds of its life, which ends {format_time(end)}"
        yield Problem(f"{prefix}two-thirds", says)


def _name_problems(leaf: x509.Certificate, names: Iterable[str]) -> Iterator[Problem]:
    present = set(names_of(leaf))
    missing = [name for name in names if name not in present]
    if missing:
        yield Problem("names-missing", f"tls.crt is not valid for {', '.join(missing)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateStatus:
    """The state of one folder at one moment.

    `names` is empty, and the two times are None, if the certificate cannot be read; `days_left` is then 0.0, and
    negative after expiry. `problems` is empty if there are none.
    """

    folder: str
    names: tuple[str, ...] = ()
    not_before: datetime | None = None
    not_after: datetime | None = None
    days_left: float = 0.0
    key_matches: bool = False
    signed_by_ca: bool = False
    renewable: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def expires_at_seconds(self) -> float:
        """When the certificate expires, in seconds since 1970; NaN if it cannot be read."""
        return self.not_after.timestamp() if self.not_after is not None else float("nan")

    @property
    def is_usable(self) -> bool:
        """True if a client that trusts `ca.crt` accepts this pair now."""
        fatal = {problem.code for problem in self.problems} - HARMLESS_CODES
        return self.key_matches and self.signed_by_ca and not fatal


HARMLESS_CODES = frozenset({"two-thirds", "ca-two-thirds", "key-open", "ca-key-mismatch", "names-missing"})
"""Codes of problems that need attention but do not break TLS."""


def read_status(path: Path, now: datetime) -> CertificateStatus:
    """Reads a folder and returns its state. Never raises: a file that cannot be read is a problem in the result."""
    try:
        folder = read_folder(path)
    except CertsError as e:
        return CertificateStatus(folder=str(path), problems=(e.problem,))
    folder_status = certificate_status(str(path), folder, now)
    keys = [path / name for name in (KEY, CA_KEY)]
    readable = [key.name for key in keys if key.exists() and key.stat().st_mode & 0o007]
    return replace(
        folder_status,
        problems=(
            *folder_status.problems,
            *tuple(Problem("key-open", f"{name} can be read by every user of this machine") for name in readable),
        ),
    )


def certificate_status(name: str, certificates: CertificateFiles, now: datetime) -> CertificateStatus:
    """Returns the state of files that were already read. Never raises."""
    try:
        return _build_status(name, certificates, now)
    except CertsError as e:
        return CertificateStatus(folder=name, problems=(e.problem,))


def _build_status(name: str, certificates: CertificateFiles, now: datetime) -> CertificateStatus:
    leaf = certificates.pair.read_leaf()
    problems = dict.fromkeys(is_folder_due(certificates, now))
    codes = {problem.code for problem in problems}
    return CertificateStatus(
        folder=name,
        names=names_of(leaf),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        days_left=(leaf.not_valid_after_utc - now).total_seconds() / 86400,
        key_matches=not codes & {"key-mismatch", "no-key", "no-signing-key"},
        signed_by_ca=not chain_problems(certificates),
        renewable=certificates.authority_key is not None,
        problems=tuple(problems),
    )
