"""Writes lines to a stream in batches, because a write for each line costs more than the line itself."""

import atexit
from threading import Event, Lock, Thread
from time import sleep
from typing import TextIO

MAX_LINES = 256
"""The number of lines at which a batch is written at once."""


class LineBatches:
    """Lines that wait to be written. Safe for any thread.

    They are written together a moment after the first of them, and when the process ends. It is a stream, too, for
    texts that must not wait: the lines that wait are written first, so that the order stays.
    """

    def __init__(self, stream: TextIO, delay_seconds: float) -> None:
        self._stream, self._delay_seconds = stream, delay_seconds
        self._lines: list[str] = []
        self._lock, self._has_lines = Lock(), Event()
        self._thread: Thread | None = None

    def add_line(self, line: str) -> None:
        """Adds a line without its end."""
        self._lines.append(line)
        if not self._has_lines.is_set():
            self._begin_batch()
        elif len(self._lines) >= MAX_LINES:
            self.flush()

    def write(self, text: str) -> int:
        """Writes the lines that wait, and then this text, at once."""
        self.flush()
        return self._stream.write(text)

    def flush(self) -> None:
        """Writes the lines that wait."""
        with self._lock:
            count = len(self._lines)
            if count:
                self._stream.write("\n".join((*self._lines[:count], "")))
                # Not a new list: another thread may be adding a line to this one.
                del self._lines[:count]
            self._stream.flush()

    def isatty(self) -> bool:
        """Returns whether the stream is a terminal."""
        return self._stream.isatty()

    def _begin_batch(self) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._write_batches, name="log", daemon=True)
            self._thread.start()
            atexit.register(self.flush)
        self._has_lines.set()

    def _write_batches(self) -> None:
        while True:
            self._has_lines.wait()
            sleep(self._delay_seconds)
            # Cleared before the lines are taken: a line that is added meanwhile begins the next batch.
            self._has_lines.clear()
            self.flush()
