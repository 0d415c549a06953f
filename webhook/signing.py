"""Reads the webhook's signing keys in a thread, repeatedly, so that a rotation reaches every replica.

Without keys the webhook still works: its annotations are unsigned, and a second call for the same request decides
again.
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
"""Seconds between two reads of the Secret: well below the time after which a rotated key is rotated again."""
RETRY_SECONDS = 2.0
"""Seconds between two reads while there are no keys."""


class MarkerKeys:
    """The keys of this replica, and the settings that contain them. `with_signer` is for one thread."""

    def __init__(self, read: Callable[[], SigningKeys], log: Logger, now: Clock = clock.utc_now) -> None:
        """`read` returns the keys, or raises; it may block."""
        self._read, self._log, self._now = read, log, now
        self._keys: SigningKeys | None = None
        self._last_error = ""
        self._current: tuple[AdmissionSettings, MarkerSigner, AdmissionSettings] | None = None

    def with_signer(self, settings: AdmissionSettings) -> AdmissionSettings:
        """Returns the settings with the keys and the time slot; the same object until one of the three changes."""
        keys, slot = self._keys, int(self._now().timestamp()) // SLOT_SECONDS
        current = self._current
        if current is None or current[0] is not settings or current[1].keys is not keys or current[1].slot != slot:
            signer = MarkerSigner(keys, slot)
            current = self._current = (settings, signer, replace(settings, signer=signer))
        return current[2]

    def refresh_keys(self) -> bool:
        """Reads the keys; returns whether that succeeded. Otherwise the previous keys stay."""
        try:
            keys = self._read()
        except Exception as error:  # noqa: BLE001  no error of the Secret may end the thread
            error_text = f"{type(error).__name__}: {error}"
            if error_text != self._last_error:
                self._log.warning("the signing keys cannot be read", why=error_text, have_keys=self._keys is not None)
            self._last_error = error_text
            return False
        if keys != self._keys:
            self._log.info("signing keys read", has_previous=keys.previous is not None)
            self._keys = keys
        self._last_error = ""
        return True

    def start_refresh(self, wait: Callable[[float], bool]) -> threading.Thread:
        """Starts a thread that reads the keys until `wait`, which waits the given seconds, returns True because the
        process stops."""

        def refresh_until_stopped() -> None:
            while not wait(REFRESH_SECONDS if self.refresh_keys() else RETRY_SECONDS):
                pass

        thread = threading.Thread(target=refresh_until_stopped, name="signing-keys", daemon=True)
        thread.start()
        return thread
