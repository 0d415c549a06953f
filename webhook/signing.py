"""The webhook's signing keys in a process: read in a thread, again and again, so that a rotation reaches every replica.

Without them the webhook works on: its markers are unsigned, and a second call of the same request decides anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from trimtab.cluster.signature import SigningKeys
from trimtab.policy.pod_context import SLOT_SECONDS, AdmissionSettings, MarkerSigner
from trimtab.runtime import clock
from trimtab.runtime.clock import Clock
from trimtab.runtime.log import Logger

REFRESH_SECONDS = 60.0
"""Seconds between two looks at the Secret: well below the time after which a rotated key is rotated again."""
RETRY_SECONDS = 2.0
"""Seconds to the next try while there are no keys."""


class MarkerKeys:
    """The keys of this replica, and the terms with them in it. `terms` is for one thread."""

    def __init__(self, read: Callable[[], SigningKeys], log: Logger, now: Clock = clock.utc) -> None:
        """`read` gives the keys, or raises; it may take its time."""
        self._read, self._log, self._now = read, log, now
        self._keys: SigningKeys | None = None
        self._trouble = ""
        self._made: tuple[AdmissionSettings, MarkerSigner, AdmissionSettings] | None = None

    def terms(self, standing: AdmissionSettings) -> AdmissionSettings:
        """These terms with the keys and the time; the same object until one of the three changes."""
        keys, slot = self._keys, int(self._now().timestamp()) // SLOT_SECONDS
        made = self._made
        if made is None or made[0] is not standing or made[1].keys is not keys or made[1].slot != slot:
            signer = MarkerSigner(keys, slot)
            made = self._made = (standing, signer, replace(standing, signer=signer))
        return made[2]

    def refresh(self) -> bool:
        """Read the keys; were they read? What was read before stays where they were not."""
        try:
            found = self._read()
        except Exception as error:  # noqa: BLE001  no trouble with the Secret may end the thread
            trouble = f"{type(error).__name__}: {error}"
            if trouble != self._trouble:
                self._log.warning("the signing keys cannot be read", why=trouble, have_keys=self._keys is not None)
            self._trouble = trouble
            return False
        if found != self._keys:
            self._log.info("signing keys read", has_previous=found.previous is not None)
            self._keys = found
        self._trouble = ""
        return True

    def start(self, wait: Callable[[float], bool]) -> threading.Thread:
        """Read them in a thread until `wait`, which waits so many seconds, says that the process stops."""

        def run() -> None:
            while not wait(REFRESH_SECONDS if self.refresh() else RETRY_SECONDS):
                pass

        thread = threading.Thread(target=run, name="signing-keys", daemon=True)
        thread.start()
        return thread
