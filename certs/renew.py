"""A folder in, the folder that should stand there out: first issue and renewal are one step."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs.due import authority_due, due_folder
from certs.errors import CertsError, Missing
from certs.folder import Folder
from certs.issue import AUTHORITY_LIFE, SERVING_LIFE, authority, cross, serving
from certs.pair import Pair, read_chain
from certs.problem import Problem


def issue(
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFE,
    authority_life: timedelta = AUTHORITY_LIFE,
    serial: int | None = None,
) -> Folder:
    """A new authority and a serving pair for `names`. Raises `ValueError` when `names` is empty."""
    ca = authority(now=now, life=authority_life)
    pair = serving(ca, names, now=now, life=life, serial=serial)
    return Folder(bundle=ca.certificate, pair=pair, authority_key=ca.key)


def renew(
    folder: Folder,
    names: Sequence[str],
    *,
    now: datetime,
    life: timedelta = SERVING_LIFE,
    authority_life: timedelta = AUTHORITY_LIFE,
    serial: int | None = None,
) -> Folder:
    """A new serving pair; a new authority with it only when the old one is due.

    When the authority changes, the bundle holds the new one and every old one still valid, and the
    serving chain ends with the new authority signed by the old: whoever trusts only yesterday's
    bundle goes on trusting us. Raises `Missing` when the folder has no `ca.key`.
    """
    held = folder.authority
    if held is None:
        raise Missing(Problem("no-ca-key", "ca.key is not here: whoever issued this pair must renew it"))
    if not authority_due(folder, now):
        return replace(folder, pair=serving(held, names, now=now, life=life, serial=serial))
    new = issue(names, now=now, life=life, authority_life=authority_life, serial=serial)
    return replace(new, bundle=new.bundle + _overlap(folder, now), pair=_bridged(held, new, now))


def renew_if_due(folder: Folder, names: Sequence[str], *, now: datetime) -> tuple[Folder, tuple[Problem, ...]]:
    """The folder that should stand there and why it differs; no reasons means nothing to do."""
    reasons = due_folder(folder, now, names=names)
    return (renew(folder, names, now=now), reasons) if reasons else (folder, ())


def _overlap(folder: Folder, now: datetime) -> bytes:
    try:
        old = read_chain(folder.bundle, "ca.crt")
    except CertsError:
        return b""
    return b"".join(_pem(ca) for ca in old if now < ca.not_valid_after_utc)


def _bridged(old: Pair, new: Folder, now: datetime) -> Pair:
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


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
