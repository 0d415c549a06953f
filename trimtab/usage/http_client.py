"""A client for an HTTP API that answers queries. It authenticates, limits its rate, and repeats a request if that may
help."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlencode

import msgspec
import urllib3

from trimtab.cluster.bounded_decode import BytesRefused, unpack_parts
from trimtab.runtime.clock import elapsed_seconds
from trimtab.usage.errors import RefusedSource, UnreachableSource

RETRY_STATUSES = (429, 500, 502, 503, 504)
"""The status codes after which a request is repeated. A mistake in a query has other codes (400, 422)."""


MAX_CONNECTIONS = 8
"""The maximum number of connections that are kept open."""
MIN_SECRET_LENGTH = 6
"""Shorter credentials are not replaced in messages: a tenant named `1` is not a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The deadline, retries and pauses for requests to one server."""

    deadline: float = 120.0
    """The seconds within which a response must arrive; Prometheus itself has the same limit."""
    tries: int = 4
    first_wait: float = 1.0
    """The seconds until the first retry; each further retry waits twice as long."""
    pause: float = 0.0
    """The seconds between two queries, so that other clients get a share of the server."""


Final = Callable[[RefusedSource], bool]
"""A function that returns whether this refusal is final, so that repeating the HTTP request would not help."""


@dataclass(slots=True)
class HttpApi:
    """The client for one server, for use by any number of threads. `headers` may have credentials or a tenant
    (Authorization, X-Scope-OrgID, …). The user and password in the URL are used if there is no Authorization header."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ca: str | None = None
    """The path of a file with certificates to trust; None: those of the system."""
    certificate: str | None = None
    """The path of a file with the client certificate, for a server that requires one."""
    key: str | None = None
    """The path of a file with the key of the client certificate, or None if it is in the same file."""
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    sends_get: bool = False
    """Whether queries are sent in the URL, for servers that do not accept POST."""
    wait: Callable[[float], None] = time.sleep
    _pool: Any = None
    _last: float = float("-inf")
    _has_answered: bool = False
    """Whether the server has responded before. If it never has, the address may be wrong, and the error is raised at
    once; otherwise the client waits until an outage is over."""
    _lock: Lock = field(default_factory=Lock)

    def get(self, path: str, query: Mapping[str, str], doing: str, final: Final = lambda _refusal: False) -> bytes:
        """Returns the body of the response. Raises RefusedSource at once if `final` says that a retry would not help;
        otherwise RefusedSource or UnreachableSource after all retries."""
        for attempt in range(self.retry_policy.tries):
            self._wait_for_turn()
            last = attempt == self.retry_policy.tries - 1
            try:
                status, body, retry_after = self._send(path, query)
            except urllib3.exceptions.ReadTimeoutError:
                refusal = self._refusal(
                    doing,
                    504,
                    f"the request timed out: there was no response within {self.retry_policy.deadline:g} seconds",
                )
                if last or final(refusal):
                    raise refusal from None
                retry_after = None
            except BytesRefused as error:
                raise self._refusal(doing, 200, str(error)) from None
            except urllib3.exceptions.HTTPError as error:
                # A server that never responded is most likely a wrong address: no retry.
                if last or (isinstance(error, _CONNECT_ERRORS) and not self._has_answered):
                    raise UnreachableSource(
                        f"{doing}: {self.public_address}: {self._redact(_describe_error(error))}"
                    ) from None
                retry_after = None
            else:
                self._has_answered = True
                if status < 300:
                    return body
                refusal = self._refusal(doing, status, _error_message(body))
                # Anything else is an error of the query or of the configuration, which a retry does not change.
                if last or status not in RETRY_STATUSES or final(refusal):
                    raise refusal
            self.wait(max(retry_after or 0.0, self.retry_policy.first_wait * 2.0**attempt))
        raise AssertionError("unreachable")

    def _refusal(self, doing: str, status: int, message: str) -> RefusedSource:
        return RefusedSource(f"{doing}: {self.public_address}", status, self._redact(message) + _HINTS.get(status, ""))

    @property
    def public_address(self) -> str:
        """The address for messages, without user and password."""
        return self._address()

    def _user_info(self) -> str:
        """Returns the user and password in the URL, as they are written there."""
        return self.url.rpartition("://")[2].partition("/")[0].rpartition("@")[0]

    def _basic_auth(self) -> str:
        """Returns the value of the header for the URL's user and password, or an empty string if there are none."""
        user, _, password = self._user_info().partition(":")
        both = f"{unquote(user)}:{unquote(password)}"
        return f"Basic {b64encode(both.encode()).decode()}" if user else ""

    def _auth_header(self) -> dict[str, str]:
        """Returns a header with the URL's user and password; empty if the URL has none, or if there is another
        Authorization header."""
        basic = self._basic_auth()
        if not basic or any(name.lower() == "authorization" for name in self.headers):
            return {}
        return {"Authorization": basic}

    def _redact(self, text: str) -> str:
        """Returns a message from the source in which credentials are replaced."""
        password = self._user_info().partition(":")[2]
        values = (*self.headers.values(), self._basic_auth())
        for secret in (
            password,
            unquote(password),
            *(part for value in values for part in (value, *value.split()[1:])),
        ):
            text = text.replace(secret, "***") if len(secret) >= MIN_SECRET_LENGTH else text
        return text

    def _wait_for_turn(self) -> None:
        """Waits until the pause after the previous query is over. If several threads wait, they send their queries one
        after the other."""
        with self._lock:
            now = elapsed_seconds()
            # The turn is reserved under the lock, and waited for without it.
            seconds_left = max(0.0, self._last + self.retry_policy.pause - now)
            self._last = now + seconds_left
        if seconds_left > 0:
            self.wait(seconds_left)

    def _address(self) -> str:
        """Returns the URL without user and password."""
        scheme, mark, rest = self.url.rstrip("/").rpartition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"

    def _send(self, path: str, query: Mapping[str, str]) -> tuple[int, bytes, float | None]:
        """Returns the status, the body and the Retry-After seconds of one request. Queries are sent by POST, because
        they may be longer than a URL may be; the label endpoints accept only GET on some servers."""
        with self._lock:
            if self._pool is None:
                self._pool = urllib3.PoolManager(
                    ca_certs=self.ca,
                    cert_file=self.certificate,
                    key_file=self.key,
                    retries=False,
                    maxsize=MAX_CONNECTIONS,
                )
        url, parameters = self._address() + path, urlencode(query)
        timeout = urllib3.Timeout(connect=10.0, read=self.retry_policy.deadline)
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", **self._auth_header(), **self.headers}
        if self.sends_get or path.startswith("/api/v1/label"):
            response = self._pool.request("GET", f"{url}?{parameters}", headers=headers, timeout=timeout, **_UNREAD)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            response = self._pool.request("POST", url, body=parameters, headers=headers, timeout=timeout, **_UNREAD)
        return response.status, _read_body(response), _retry_after_seconds(response.headers.get("Retry-After"))


MAX_BODY_BYTES = 512 << 20
"""The maximum size of one response after decompression, in bytes. Queries are divided so that responses are smaller."""
_UNREAD: dict[str, Any] = {"preload_content": False, "decode_content": False}


def _read_body(response: Any) -> bytes:
    """Returns the body, decompressed. Raises BytesRefused if it has more than MAX_BODY_BYTES, and errors of urllib3."""
    parts = response.stream(64 << 10)
    if response.headers.get("Content-Encoding", "").strip().lower() == "gzip":
        parts = unpack_parts(parts, 1 << 20)
    body = bytearray()
    for part in parts:
        body += part
        if len(body) > MAX_BODY_BYTES:
            response.close()
            raise BytesRefused(f"the response has more than {MAX_BODY_BYTES >> 20} MiB")
    response.drain_conn()
    return bytes(body)


_AUTH_HINT = (
    " (to log in, use --token-file, or --header-file and a line such as Authorization: Bearer … or Basic …; for "
    "the recommender, set TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE or "
    "TRIMTAB_RECOMMENDER_PROMETHEUS_HEADER_FILE)"
)
_REDIRECT_HINT = (
    " (the server redirects to another address: either a log-in page, or the URL lacks a path such as /prometheus)"
)
_HINTS = {
    401: _AUTH_HINT,
    403: _AUTH_HINT,
    404: " (check whether the API is at this address or below a path such as /prometheus)",
    **dict.fromkeys((301, 302, 303, 307, 308), _REDIRECT_HINT),
}


class _ErrorBody(msgspec.Struct, frozen=True):
    error: str = ""
    message: str = ""


def _error_message(body: bytes) -> str:
    """Returns the error message in a response."""
    try:
        error = msgspec.json.decode(body, type=_ErrorBody)
        text = error.error or error.message
    except (msgspec.DecodeError, UnicodeError):
        text = ""
    return text or body[:300].decode(errors="replace").strip() or "the response gives no reason"


_CONNECT_ERRORS = (
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.SSLError,
    urllib3.exceptions.ConnectTimeoutError,
)
_LIBRARY_PREFIX = re.compile(r"^<?\w*HTTPS?Connection\w*[^:]*: ", re.ASCII)
"""The prefix that urllib3 puts before the description of an error."""
_CERTIFICATE_ALERT = re.compile(r"ALERT_(\w*CERTIFICATE\w*|HANDSHAKE_FAILURE)")
"""Matches the TLS alert of a server that got no client certificate, or one that it does not trust."""
_CLIENT_CERTIFICATE_HINT = (
    " (the server requires a client certificate, or does not trust this one: set --certificate and --key; for "
    "the recommender, set TRIMTAB_RECOMMENDER_PROMETHEUS_CERTIFICATE_FILE and "
    "TRIMTAB_RECOMMENDER_PROMETHEUS_KEY_FILE)"
)
_PLAIN_HTTP_HINT = " (the server does not use TLS: try http:// instead of https://)"


def _describe_error(error: Exception) -> str:
    text = _LIBRARY_PREFIX.sub("", str(getattr(error, "reason", None) or error)) or type(error).__name__
    if _CERTIFICATE_ALERT.search(text):
        return text + _CLIENT_CERTIFICATE_HINT
    return text + (_PLAIN_HTTP_HINT if "WRONG_VERSION_NUMBER" in text else "")


def _retry_after_seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None
