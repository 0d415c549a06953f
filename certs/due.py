"""Is it time for a new pair, and why?"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import zip_longest

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from certs.errors import CertsError
from certs.folder import Folder
from certs.pair import Pair, moment, names_of, read_chain
from certs.problem import Problem


def due(pair: Pair, now: datetime, *, names: Iterable[str] = ()) -> tuple[Problem, ...]:
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


def due_folder(folder: Folder, now: datetime, *, names: Iterable[str] = ()) -> tuple[Problem, ...]:
    """The same for a whole folder: also the authority's age, and whether it signed the pair."""
    return (*authority_due(folder, now), *due(folder.pair, now, names=names), *unsigned(folder))


def authority_due(folder: Folder, now: datetime) -> tuple[Problem, ...]:
    """Reasons for a new authority: unreadable, its key lost or another's, past two thirds of its life."""
    try:
        signer = read_chain(folder.bundle, "ca.crt")[0]
        held = folder.authority
        matches = held is None or held.private_key("ca.key").public_key() == signer.public_key()
    except CertsError as e:
        return (e.problem,)
    wrong = () if matches else (Problem("ca-key-mismatch", "ca.key is not the key of ca.crt"),)
    return (*wrong, *_age(signer, now, "ca-"))


def unsigned(folder: Folder) -> tuple[Problem, ...]:
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
