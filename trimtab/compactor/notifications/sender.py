"""Sends notifications from a thread of its own, so that a slow receiver never delays a drain.

The address is read from a file for each message, because it is a secret that is renewed. It is in no log line: of a
failed request only the status, or the kind of the error, is logged.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import urllib3

from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.notifications.messages import (
    MAX_LINES,
    Message,
    NotificationFormat,
    is_notified,
    render_messages,
)
from trimtab.runtime.log import Logger

BATCH_SECONDS = 10.0
"""How long the thread waits after a decision for more of them, so that one round is one message."""
MAX_WAITING = 200
"""The largest number of decisions that wait; older ones are counted only."""
TRIES = 4
FIRST_WAIT_SECONDS = 2.0
"""The pause after the first failed try; each further pause is twice as long."""
MAX_WAIT_SECONDS = 60.0
TIMEOUT_SECONDS = 10.0
HOUR_SECONDS = 3600.0
RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class NotSent(Exception):
    """A request that failed; its text has no part of the address."""

    def __init__(self, problem: str, is_final: bool, wait_seconds: float = 0.0) -> None:
        super().__init__(problem)
        self.is_final = is_final
        """Whether a repetition would fail too."""
        self.wait_seconds = wait_seconds
        """How long the receiver asks to wait; 0 if it says nothing."""


class Post(Protocol):
    """A function that sends one message to the address. Raises NotSent."""

    def __call__(self, url: str, message: Message) -> None: ...


@dataclass(frozen=True, slots=True)
class NotificationTerms:
    """Where notifications go, as what, and how many."""

    url_file: Path
    form: NotificationFormat
    source: str
    max_per_hour: int


@dataclass(slots=True)
class Notifier:
    """Collects decisions, and sends them."""

    terms: NotificationTerms
    log: Logger
    elapsed: Callable[[], float]
    post: Post = field(default_factory=lambda: HttpPost())
    batch_seconds: float = BATCH_SECONDS
    first_wait_seconds: float = FIRST_WAIT_SECONDS
    _waiting: deque[HistoryEntry] = field(default_factory=deque)
    _left_out: int = 0
    _sent_at: deque[float] = field(default_factory=deque)
    _is_limited: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _has_work: threading.Event = field(default_factory=threading.Event)
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def record_decision(self, decision: HistoryEntry) -> None:
        """Takes a decision to be sent. Returns at once, and raises nothing."""
        if self._end.is_set() or not is_notified(decision):
            return
        with self._lock:
            self._waiting.append(decision)
            while len(self._waiting) > MAX_WAITING:
                self._waiting.popleft()
                self._left_out += 1
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
            self._thread.start()
        self._has_work.set()

    def close(self, wait_seconds: float = 5.0) -> None:
        """Ends the thread after one try for what still waits; what cannot be sent within the time is lost."""
        self._end.set()
        self._has_work.set()
        if self._thread is not None:
            self._thread.join(wait_seconds)

    def send_waiting(self) -> None:
        """Sends what waits, as far as the limit permits; the rest waits for a later message."""
        for message in self._take_messages():
            self._send(message)

    def _run(self) -> None:
        while not self._end.is_set():
            # Also without new decisions: some may wait because of the limit.
            self._has_work.wait(HOUR_SECONDS / 60 if self._waiting else None)
            self._has_work.clear()
            self._end.wait(self.batch_seconds)
            self.send_waiting()

    def _take_messages(self) -> list[Message]:
        now = self.elapsed()
        while self._sent_at and self._sent_at[0] <= now - HOUR_SECONDS:
            self._sent_at.popleft()
        allowed = self.terms.max_per_hour - len(self._sent_at)
        with self._lock:
            if not self._waiting:
                return []
            if allowed <= 0:
                if not self._is_limited:
                    self.log.warning("notification.limit-reached", per_hour=self.terms.max_per_hour)
                self._is_limited = True
                return []
            # A CloudEvent is a message of its own: as many as are permitted, the others later.
            count = min(allowed, MAX_LINES) if self.terms.form == "cloudevents" else MAX_WAITING
            decisions = [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
            left_out, self._left_out = self._left_out, 0
        self._is_limited = False
        messages = render_messages(decisions, self.terms.form, self.terms.source, left_out)
        self._sent_at.extend([now] * len(messages))
        return messages

    def _send(self, message: Message) -> None:
        wait = self.first_wait_seconds
        for attempt in range(1, TRIES + 1):
            try:
                self.post(self._read_url(), message)
                return
            except NotSent as failed:
                if failed.is_final or attempt == TRIES or self._end.is_set():
                    self.log.warning("notification.not-sent", problem=str(failed), tries=attempt)
                    return
                self._end.wait(min(max(wait, failed.wait_seconds), MAX_WAIT_SECONDS))
                wait *= 2

    def _read_url(self) -> str:
        try:
            url = self.terms.url_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            problem = f"{self.terms.url_file} cannot be read: {type(error).__name__}"
            raise NotSent(problem, is_final=True) from None
        if not url.startswith(("https://", "http://")):
            raise NotSent(f"{self.terms.url_file} has no address that begins with https://", is_final=True)
        return url


@dataclass(slots=True)
class HttpPost:
    """Sends a message by HTTP POST. A redirect is an error: the message goes where the file says, and nowhere else."""

    pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(num_pools=2, maxsize=1))

    def __call__(self, url: str, message: Message) -> None:
        headers = {"Content-Type": message.content_type, "User-Agent": "trimtab"}
        try:
            response = self.pool.request(
                "POST",
                url,
                body=message.body,
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except (urllib3.exceptions.LocationValueError, ValueError):
            raise NotSent("the address is not valid", is_final=True) from None
        except urllib3.exceptions.HTTPError as error:
            # Its text names the server and the path.
            raise NotSent(type(error).__name__, is_final=False) from None
        # The answer is not read: its length is the receiver's choice.
        status, retry_after = response.status, response.headers.get("Retry-After", "")
        response.close()
        if status >= 300:
            wait = float(retry_after) if retry_after.isdecimal() else 0.0
            raise NotSent(f"the receiver answered {status}", status not in RETRIED_STATUSES, wait)
