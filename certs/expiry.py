"""Is it time for a new pair, and why?

What stands in a certificate folder, for people and for a metric.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.files import CA_KEY, KEY, CertificateFiles, KeyPair, moment, names_of, read, read_chain
from certs.problems import CertsError, Problem


def is_certificate_due(pair: KeyPair, now: datetime, *, names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """Every reason to replace this pair; empty means it is good until two thirds of its life.

    `names` are those it has to carry; a missing one is a reason too. Never raises: a pair that
    cannot be read is due because of that.
    """
    try:
        leaf = pair.leaf()
        matches = pair.private_key().public_key() == leaf.public_key()
    except CertsError as e:
        return (e.problem,)
    return (*_key(matches), *_age(leaf, now, ""), *_names(leaf, names))


def is_folder_due(folder: CertificateFiles, now: datetime, *, names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """The same for a whole folder: also the authority's age, and whether it signed the pair."""
    return (*authority_due(folder, now), *is_certificate_due(folder.pair, now, names=names), *unsigned(folder))


def authority_due(folder: CertificateFiles, now: datetime) -> tuple[Problem, ...]:
    """Reasons for a new authority: unreadable, its key lost or another's, past two thirds of its life."""
    try:
        signer = read_chain(folder.bundle, "ca.crt")[0]
        held = folder.authority
        matches = held is None or held.private_key("ca.key").public_key() == signer.public_key()
    except CertsError as e:
        return (e.problem,)
    wrong = () if matches else (Problem("ca-key-mismatch", "ca.key is not the key of ca.crt"),)
    return (*wrong, *_age(signer, now, "ca-"))


def unsigned(folder: CertificateFiles) -> tuple[Problem, ...]:
    """One problem when the chain does not lead to a certificate of the bundle; empty when it does."""
    try:
        chain, bundle = folder.pair.chain(), read_chain(folder.bundle, "ca.crt")
    except CertsError as e:
        return (e.problem,)
    for certificate, following in zip_longest(chain, chain[1:]):
        if any(signed(certificate, ca) for ca in bundle):
            return ()
        if following is None or not signed(certificate, following):
            break
    return (Problem("ca-mismatch", "tls.crt does not lead to any certificate of ca.crt"),)


def signed(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    """Did this authority sign it, by name and by key? Ages are not looked at."""
    try:
        leaf.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _key(matches: bool) -> Iterator[Problem]:
    if not matches:
        yield Problem("key-mismatch", "tls.key is not the key of tls.crt (half written?)")


def _age(certificate: x509.Certificate, now: datetime, prefix: str) -> Iterator[Problem]:
    file = "ca.crt" if prefix else "tls.crt"
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < start:
        yield Problem(f"{prefix}not-yet-valid", f"{file} is valid only from {moment(start)}")
    elif now >= end:
        yield Problem(f"{prefix}expired", f"{file} expired at {moment(end)}")
    elif now >= start + (end - start) * 2 / 3:
        says = f"{file} is past two thirds of its life, which ends {moment(end)}"
        yield Problem(f"{prefix}two-thirds", says)


def _names(leaf: x509.Certificate, names: Iterable[str]) -> Iterator[Problem]:
    held = set(names_of(leaf))
    absent = [name for name in names if name not in held]
    if absent:
        yield Problem("names-missing", f"tls.crt does not carry {', '.join(absent)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateStatus:
    """One folder at one moment.

    `names` is empty, and the two times are None, where the certificate cannot be read; `days_left`
    is then 0.0 and negative once it expired. `problems` is empty when all is well.
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
    def usable(self) -> bool:
        """A client that trusts `ca.crt` would talk to a server with this pair now."""
        fatal = {problem.code for problem in self.problems} - HARMLESS
        return self.key_matches and self.signed_by_ca and not fatal


HARMLESS = frozenset({"two-thirds", "ca-two-thirds", "key-open", "ca-key-mismatch", "names-missing"})
"""Problems that call for somebody, while connections still work."""


def status(path: Path, now: datetime) -> CertificateStatus:
    """Read the folder and judge it. Never raises: what cannot be read is a problem of its own."""
    try:
        folder = read(path)
    except CertsError as e:
        return CertificateStatus(folder=str(path), problems=(e.problem,))
    found = certificate_status(str(path), folder, now)
    return replace(found, problems=(*found.problems, *_open(path)))


def certificate_status(name: str, folder: CertificateFiles, now: datetime) -> CertificateStatus:
    """The same for what was read already, wherever that was. Never raises."""
    try:
        return _judged(name, folder, now)
    except CertsError as e:
        return CertificateStatus(folder=name, problems=(e.problem,))


def _judged(name: str, folder: CertificateFiles, now: datetime) -> CertificateStatus:
    leaf = folder.pair.leaf()
    problems = dict.fromkeys(is_folder_due(folder, now))
    codes = {problem.code for problem in problems}
    return CertificateStatus(
        folder=name,
        names=names_of(leaf),
        not_before=leaf.not_valid_before_utc,
        not_after=leaf.not_valid_after_utc,
        days_left=(leaf.not_valid_after_utc - now).total_seconds() / 86400,
        key_matches=not codes & {"key-mismatch", "no-key", "no-signing-key"},
        signed_by_ca=not unsigned(folder),
        renewable=folder.authority_key is not None,
        problems=tuple(problems),
    )


def _open(path: Path) -> tuple[Problem, ...]:
    # Others only: a Secret mounted with fsGroup is readable by its group, and that is how it should be.
    keys = [path / name for name in (KEY, CA_KEY)]
    loose = [key.name for key in keys if key.exists() and key.stat().st_mode & 0o007]
    return tuple(Problem("key-open", f"{name} can be read by everybody on this machine") for name in loose)
