"""Decides the next safe step in the rotation of a pair that several servers share and whose authority clients must
trust.

A store holds the pair, the current authority, and the bundle of all authorities that clients should trust. Clients take
the bundle from one or more *places*. The invariant: a server uses no pair whose authority is not in every place. The
steps keep it in this order:

    1. a new authority is added to the store's bundle, in front of the old ones; the pair stays
    2. every place gets the store's bundle
    3. when all clients have had time to notice, the new authority signs a pair
    4. an old authority is removed from the bundle when everything it signed has expired

The invariant holds for any number of servers that act at once, if places are read before the store, and if a write by
any of them fails if the object changed since it was read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs.ca import AUTHORITY_LIFETIME, CLOCK_SKEW, SERVING_LIFETIME, create_authority, create_serving_pair, issue
from certs.expiry import authority_due, chain_problems, is_certificate_due, is_signed_by
from certs.pem_files import CertificateFiles, read_chain
from certs.problems import CertsError, Problem

SHARED_LIFETIME = timedelta(days=90)
"""Life of a pair that servers renew by themselves: no person has to renew it, so it may be short."""

OVERLAP = SERVING_LIFETIME + CLOCK_SKEW
"""How long an authority stays trusted after its successor was added: nothing it signed lives longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationState:
    """All inputs at one moment, as one server reads them."""

    store: CertificateFiles | None
    """The shared files, or None if the store is empty."""
    places: tuple[bytes, ...] = ()
    """The bundle in each place that Trimtab writes, as PEM; empty bytes if there is none. Read before the store."""
    settled: bool = False
    """True if every place has held the store's bundle for so long that every client has noticed."""
    serving: CertificateFiles | None = None
    """The files that this server serves, or None while it serves none."""


@dataclass(frozen=True, slots=True)
class WriteSecret:
    """Step: write these files into the store, unless it was written since it was read."""

    folder: CertificateFiles
    reasons: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class PatchCABundle:
    """Step: write this bundle into every place that has another, unless it was written since it was read."""

    bundle: bytes


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Step: do nothing now."""

    waiting: tuple[Problem, ...] = field(default=())
    """The reasons for the step that follows once every place is settled."""


RotationStep = WriteSecret | PatchCABundle | WaitUntil


def next_step(state: RotationState, names: Sequence[str], *, now: datetime) -> RotationStep:
    """Returns the next step; after it the caller must read the state again. `names` are those the pair must carry."""
    store = state.store
    if store is None:
        # The first content of an empty store: this server's pair under a new authority if it is usable, else a new
        # pair.
        return WriteSecret(
            next_pair(state.serving, now=now)
            if state.serving is not None and is_usable(state.serving, now)
            else issue(names, now=now, life=SHARED_LIFETIME),
            (Problem("empty", "the store holds no pair"),),
        )
    if reasons := authority_key_due(store, now):
        return WriteSecret(next_pair(store, now=now), reasons)
    if any(place != store.bundle for place in state.places):
        return PatchCABundle(store.bundle)
    if reasons := pair_due(store, names, now):
        ready = state.settled or not is_usable(store, now)
        return WriteSecret(reissued_pair(store, names, now=now), reasons) if ready else WaitUntil(reasons)
    if unused := superseded_authorities(store, now):
        return WriteSecret(sole_authority(store), unused)
    return WaitUntil()


def may_serve(certificates: CertificateFiles, places: Sequence[bytes]) -> bool:
    """Returns whether clients trust this pair whichever of these places they take their bundle from."""
    return all(not chain_problems(replace(certificates, bundle=place)) for place in places)


def is_usable(certificates: CertificateFiles, now: datetime) -> bool:
    """Returns whether the pair is complete, valid now, and signed by an authority of the bundle."""
    fatal = {problem.code for problem in is_certificate_due(certificates.pair, now)} - {"two-thirds"}
    return not fatal and not chain_problems(certificates)


def authority_key_due(certificates: CertificateFiles, now: datetime) -> tuple[Problem, ...]:
    """Returns the reasons for a new authority: it is due, or the key it signs with is missing."""
    if certificates.authority_key is None:
        return (Problem("no-ca-key", "the key of ca.crt is not in the store"),)
    return authority_due(certificates, now)


def pair_due(certificates: CertificateFiles, names: Sequence[str], now: datetime) -> tuple[Problem, ...]:
    """Returns the reasons for a new pair: its own, or that another authority signs now."""
    if reasons := is_certificate_due(certificates.pair, now, names=names):
        return reasons
    signer = read_chain(certificates.bundle, "ca.crt")[0]
    if is_signed_by(certificates.pair.read_leaf(), signer):
        return ()
    return (Problem("ca-superseded", "tls.crt is not signed by the current authority"),)


def superseded_authorities(certificates: CertificateFiles, now: datetime) -> tuple[Problem, ...]:
    """Returns a reason if older authorities can be removed from the bundle; by then the first must have signed the
    pair."""
    first, *older = read_chain(certificates.bundle, "ca.crt")
    if not older or now < first.not_valid_before_utc + OVERLAP:
        return ()
    return (Problem("ca-unused", "nothing that older authorities signed can be valid any more"),)


def next_pair(
    certificates: CertificateFiles, *, now: datetime, life: timedelta = AUTHORITY_LIFETIME
) -> CertificateFiles:
    """Returns the files with a new authority in front of those still valid. The pair stays, because no client trusts
    the new authority yet."""
    new = create_authority(now=now, life=life)
    return replace(
        certificates, bundle=new.certificate + _valid_authorities(certificates.bundle, now), authority_key=new.key
    )


def reissued_pair(
    certificates: CertificateFiles, names: Sequence[str], *, now: datetime, life: timedelta = SHARED_LIFETIME
) -> CertificateFiles:
    """Returns the files with a new pair by the current authority. Raises `CertsError` if that cannot be read."""
    signer = certificates.authority
    assert signer is not None
    return replace(certificates, pair=create_serving_pair(signer, names, now=now, life=life))


def sole_authority(certificates: CertificateFiles) -> CertificateFiles:
    """Returns the files with the current authority alone in the bundle. Raises `CertsError` if the bundle cannot be
    read."""
    return replace(certificates, bundle=_to_pem(read_chain(certificates.bundle, "ca.crt")[:1]))


def _valid_authorities(bundle: bytes, now: datetime) -> bytes:
    try:
        return _to_pem(ca for ca in read_chain(bundle, "ca.crt") if now < ca.not_valid_after_utc)
    except CertsError:
        return b""


def _to_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)
