"""Keep the pair that all replicas share: serve it, renew it, and have API servers trust it before it is served.

What to do is `certs.next_step`; here it is looked at and done. Any number of replicas do so at once: of two that write
the same object one is refused, and looks again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import certs
from trimtab.kube.errors import Conflict, KubeFault
from trimtab.runtime.log import Logger
from webhook import shared

Whole = dict[str, Any]

LOOKS_TO_SETTLE = 3
"""Looks that must have found a bundle in every place before its authority signs."""


class Door(Protocol):
    """The objects the keeper reads and writes, by kind; the names are the door's business."""

    def get(self, kind: str) -> Whole | None:
        """None where there is none. Raises any KubeFault."""

    def put(self, document: Whole) -> None:
        """Raises Conflict where somebody wrote it since it was read, else any KubeFault."""


class NoSecret(KubeFault):
    """The Secret is not there. It is not made here: whoever may create one Secret may create any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one replica has seen; `places` was looked at before `secret`."""

    places: tuple[Whole, ...]
    secret: Whole


class Keeper:
    """One replica's part. `step` from one thread."""

    def __init__(
        self, door: Door, folder: Path, names: Sequence[str], log: Logger, now: Callable[[], datetime], *, looks: int
    ) -> None:
        """`folder` is where this replica serves from; `looks`: how many make a bundle settled."""
        self._door, self._folder, self._names = door, folder, tuple(names)
        self._log, self._now, self._looks = log, now, looks
        self._found: tuple[bytes, int] = (b"", 0)
        self._waiting: tuple[certs.Problem, ...] = ()

    def step(self) -> bool:
        """Look, serve what may be served, do one thing. True where something was done: look again at once.

        Raises KubeFault where that was impossible; the next step begins anew.
        """
        return self.act(self.look(self.places()))

    def places(self) -> tuple[Whole, ...]:
        """The configurations whose caBundle is ours to keep."""
        found = (self._door.get(kind) for kind in shared.CONFIGURATIONS)
        return tuple(place for place in found if place is not None and not shared.left_alone(place))

    def look(self, places: tuple[Whole, ...]) -> Look:
        """The Secret, beside what was seen before it."""
        secret = self._door.get("Secret")
        if secret is None:
            raise NoSecret("the Secret for the pair is not there; `trimtab install` makes it")
        return Look(places=places, secret=secret)

    def act(self, look: Look) -> bool:
        """True where something was written, or somebody else was quicker."""
        store, serving = shared.folder_of(look.secret), self.serving()
        bundles = tuple(bundle for place in look.places for bundle in shared.bundles(place))
        self._serve(store, serving, bundles)
        seen = certs.Seen(store=store, places=bundles, settled=self._settled(store, bundles), serving=serving)
        try:
            return self._do(certs.next_step(seen, self._names, now=self._now()), look)
        except Conflict:
            return True

    def serving(self) -> certs.Folder | None:
        """What stands in our folder; None where no whole pair does."""
        try:
            found = certs.read(self._folder)
        except certs.CertsError:
            return None
        return found if certs.usable(found, self._now()) else None

    def _serve(self, store: certs.Folder | None, serving: certs.Folder | None, bundles: tuple[bytes, ...]) -> None:
        """Take the shared pair over, once everybody who may call trusts it."""
        if store is None or not certs.usable(store, self._now()) or not certs.may_serve(store, bundles):
            return
        wanted = replace(store, authority_key=None)
        if serving != wanted:
            certs.write(self._folder, wanted)
            self._log.info("certificate taken over", until=str(store.pair.leaf().not_valid_after_utc))

    def _settled(self, store: certs.Folder | None, bundles: tuple[bytes, ...]) -> bool:
        if store is None or any(bundle != store.bundle for bundle in bundles):
            self._found = (b"", 0)
            return False
        bundle, looks = self._found
        self._found = (store.bundle, looks + 1 if bundle == store.bundle else 1)
        return self._found[1] > self._looks

    def _do(self, step: certs.Step, look: Look) -> bool:
        match step:
            case certs.Store(folder, reasons):
                self._door.put(shared.filled(look.secret, folder))
                self._log.info("certificate changed in the Secret", why="; ".join(map(str, reasons)))
            case certs.Publish(bundle):
                place = next(place for place in look.places if any(b != bundle for b in shared.bundles(place)))
                self._door.put(shared.trusting(place, bundle))
                self._log.info("caBundle written", into=f"{place['kind']} {place['metadata']['name']}")
            case certs.Rest(waiting):
                if waiting != self._waiting:
                    self._log.info(
                        "certificate waits for its new authority to be known", why="; ".join(map(str, waiting))
                    )
                self._waiting = waiting
                return False
        return True

    def run(self, stop: Callable[[float], bool], every: float) -> None:
        """Steps until `stop` (which waits so many seconds) says so; trouble is told when it begins, changes or ends."""
        trouble, hurried = "", 0
        while True:
            try:
                again, now = self.step(), ""
            except (KubeFault, certs.CertsError) as error:
                again, now = False, str(error)
            except Exception as error:  # noqa: BLE001  a bug must not end the renewal in silence, weeks before it shows
                again, now = False, f"{type(error).__name__}: {error}"
            if now and now != trouble:
                self._log.warning("certificates cannot be kept", why=now)
            trouble = now
            # Somebody who writes against us must not make us ask without a pause.
            hurried = hurried + 1 if again else 0
            if stop(0.0 if 0 < hurried <= _MOST_HURRIED else every):
                return


_MOST_HURRIED = 8
"""Looks without a pause: a whole rotation needs five."""
