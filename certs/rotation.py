"""What is the next safe step of a pair that several servers share, and whose authority its clients have to be told?

One store holds the pair, the authority that signs, and the bundle of all authorities that clients shall trust. Clients
take the bundle from one or more *places*. The law: a server uses no pair whose authority is not in every place. Steps
keep it in this order:

    a new authority enters the store's bundle, in front of the old ones; the pair stays
    every place gets the store's bundle
    when everybody has had time to notice, the new authority signs a pair
    an old authority leaves the bundle when nothing it signed can still be valid

It holds for any number of servers that step at once, if places are looked at before the store, and if a write of any of
them fails where somebody else wrote since.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs.ca import AUTHORITY_LIFE, SERVING_LIFE, SKEW, authority, issue, serving
from certs.expiry import authority_due, is_certificate_due, signed, unsigned
from certs.files import CertificateFiles, read_chain
from certs.problems import CertsError, Problem

SHARED_LIFE = timedelta(days=90)
"""Of a pair that servers renew by themselves: nobody has to remember it, so it may be short."""

OVERLAP = SERVING_LIFE + SKEW
"""How long an authority stays trusted after its successor came: nothing it signed lives longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationState:
    """Everything at one moment, as one server sees it."""

    store: CertificateFiles | None
    """What the servers share; None where the store is empty."""
    places: tuple[bytes, ...] = ()
    """The bundle in each place that is ours to keep, PEM; empty bytes where there is none. Seen before the store."""
    settled: bool = False
    """Every place has held the store's bundle for so long that every client has noticed."""
    serving: CertificateFiles | None = None
    """What this server serves; None while it serves nothing."""


@dataclass(frozen=True, slots=True)
class WriteSecret:
    """Write this into the store, unless somebody wrote it since it was read."""

    folder: CertificateFiles
    reasons: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class PatchCABundle:
    """Write this bundle into every place that has another, unless somebody wrote it since it was read."""

    bundle: bytes


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing to do now."""

    waiting: tuple[Problem, ...] = field(default=())
    """What would be done once everything has settled."""


RotationStep = WriteSecret | PatchCABundle | WaitUntil


def next_step(seen: RotationState, names: Sequence[str], *, now: datetime) -> RotationStep:
    """The one thing to do next; after it, look again. `names` are those the pair has to carry."""
    held = seen.store
    if held is None:
        return WriteSecret(_first(seen.serving, names, now), (Problem("empty", "the store holds no pair"),))
    if reasons := signer_due(held, now):
        return WriteSecret(next_pair(held, now=now), reasons)
    if any(place != held.bundle for place in seen.places):
        return PatchCABundle(held.bundle)
    if reasons := pair_due(held, names, now):
        ready = seen.settled or not is_usable(held, now)
        return WriteSecret(reissued_pair(held, names, now=now), reasons) if ready else WaitUntil(reasons)
    if gone := superseded(held, now):
        return WriteSecret(sole_authority(held), gone)
    return WaitUntil()


def may_serve(folder: CertificateFiles, places: Sequence[bytes]) -> bool:
    """Would a client that takes its bundle from any of these places trust this pair?"""
    return all(not unsigned(replace(folder, bundle=place)) for place in places)


def is_usable(folder: CertificateFiles, now: datetime) -> bool:
    """Is the pair whole, valid at this moment, and signed by an authority of the bundle?"""
    fatal = {problem.code for problem in is_certificate_due(folder.pair, now)} - {"two-thirds"}
    return not fatal and not unsigned(folder)


def signer_due(folder: CertificateFiles, now: datetime) -> tuple[Problem, ...]:
    """Reasons for a new authority: it is due, or the key it signs with is not here."""
    if folder.authority_key is None:
        return (Problem("no-ca-key", "the key of ca.crt is not in the store"),)
    return authority_due(folder, now)


def pair_due(folder: CertificateFiles, names: Sequence[str], now: datetime) -> tuple[Problem, ...]:
    """Reasons for a new pair: its own, or that it is not of the authority that signs now."""
    if found := is_certificate_due(folder.pair, now, names=names):
        return found
    signer = read_chain(folder.bundle, "ca.crt")[0]
    if signed(folder.pair.leaf(), signer):
        return ()
    return (Problem("ca-superseded", "tls.crt is not of the authority that signs now"),)


def superseded(folder: CertificateFiles, now: datetime) -> tuple[Problem, ...]:
    """One reason where older authorities can leave the bundle; the pair must be of the first by then."""
    first, *older = read_chain(folder.bundle, "ca.crt")
    if not older or now < first.not_valid_before_utc + OVERLAP:
        return ()
    return (Problem("ca-unused", "nothing that older authorities signed can be valid any more"),)


def next_pair(folder: CertificateFiles, *, now: datetime, life: timedelta = AUTHORITY_LIFE) -> CertificateFiles:
    """A new authority in front of those that are still valid. The pair stays: nobody trusts the new one yet."""
    new = authority(now=now, life=life)
    return replace(folder, bundle=new.certificate + _alive(folder.bundle, now), authority_key=new.key)


def reissued_pair(
    folder: CertificateFiles, names: Sequence[str], *, now: datetime, life: timedelta = SHARED_LIFE
) -> CertificateFiles:
    """A new pair by the authority that signs now. Raises `CertsError` where that cannot be read."""
    signer = folder.authority
    assert signer is not None
    return replace(folder, pair=serving(signer, names, now=now, life=life))


def sole_authority(folder: CertificateFiles) -> CertificateFiles:
    """Only the authority that signs now stays trusted. Raises `CertsError` where the bundle cannot be read."""
    return replace(folder, bundle=_pem(read_chain(folder.bundle, "ca.crt")[:1]))


def _first(ours: CertificateFiles | None, names: Sequence[str], now: datetime) -> CertificateFiles:
    """What an empty store gets: our own pair under a new authority, where we serve one that is good."""
    if ours is not None and is_usable(ours, now):
        return next_pair(ours, now=now)
    return issue(names, now=now, life=SHARED_LIFE)


def _alive(bundle: bytes, now: datetime) -> bytes:
    try:
        return _pem(ca for ca in read_chain(bundle, "ca.crt") if now < ca.not_valid_after_utc)
    except CertsError:
        return b""


def _pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(found.public_bytes(serialization.Encoding.PEM) for found in certificates)
