"""An HTTP API that answers queries: logged in, never hurried, asked again where that makes sense."""

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

from trimtab.runtime.clock import elapsed
from trimtab.usage.errors import RefusedSource, UnreachableSource

AGAIN = (429, 500, 502, 503, 504)
"""Not now; what is wrong with a query is told by other numbers (400, 422)."""


CONNECTIONS = 8
"""Kept open at the most."""
SHORTEST = 6
"""Letters of a header's value that is hidden when a source repeats it: a tenant called `1` is no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How a server is treated."""

    deadline: float = 120.0
    """Seconds for an answer; Prometheus' own limit."""
    tries: int = 4
    first_wait: float = 1.0
    """Seconds, doubling."""
    pause: float = 0.0
    """Seconds between two queries: a share of the server is left to others."""


Final = Callable[[RefusedSource], bool]
"""Is this refusal one that another try would not change?"""


@dataclass(slots=True)
class HttpApi:
    """One server, for any number of threads. `headers` carry what logs in or names a tenant: Authorization,
    X-Scope-OrgID, …; a user and a password in the URL log in as well, where no such header does."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ca: str | None = None
    """A file of certificates to trust; None: those of the system."""
    certificate: str | None = None
    """A file with the client's own certificate, for a server that asks for one."""
    key: str | None = None
    """A file with the certificate's key; None: it is in the same file."""
    manners: RetryPolicy = field(default_factory=RetryPolicy)
    wait: Callable[[float], None] = time.sleep
    _pool: Any = None
    _last: float = float("-inf")
    _met: bool = False
    """Did it ever answer? A wrong address is told at once, and an outage is waited for."""
    _lock: Lock = field(default_factory=Lock)

    def get(self, path: str, query: Mapping[str, str], doing: str, final: Final = lambda _refused: False) -> bytes:
        """The answer's bytes. Raises RefusedSource at once where it is `final`, else RefusedSource and
        UnreachableSource after all tries."""
        for attempt in range(self.manners.tries):
            self._calm()
            last = attempt == self.manners.tries - 1
            try:
                status, body, after = self._post(path, query)
            except urllib3.exceptions.ReadTimeoutError:
                refused = self._refused(doing, 504, f"timed out: no answer within {self.manners.deadline:g} seconds")
                if last or final(refused):
                    raise refused from None
                after = None
            except urllib3.exceptions.HTTPError as error:
                if last or (isinstance(error, _NOBODY) and not self._met):
                    raise UnreachableSource(f"{doing}: {self.shown}: {self._hidden(_plain(error))}") from None
                after = None
            else:
                self._met = True
                if status < 300:
                    return body
                refused = self._refused(doing, status, _said(body))
                if last or status not in AGAIN or final(refused):
                    raise refused
            self.wait(max(after or 0.0, self.manners.first_wait * 2.0**attempt))
        raise AssertionError("unreachable")

    def _refused(self, doing: str, status: int, said: str) -> RefusedSource:
        return RefusedSource(f"{doing}: {self.shown}", status, self._hidden(said) + _HELP.get(status, ""))

    @property
    def shown(self) -> str:
        """The address as it may be told: who logs in by it is nobody's business."""
        return self._address()

    def _user_info(self) -> str:
        """What stands before the host of the URL: user and password, as they are written there."""
        return self.url.rpartition("://")[2].partition("/")[0].rpartition("@")[0]

    def _basic(self) -> str:
        """The value of the header that the URL's user and password make; empty where there are none."""
        user, _, password = self._user_info().partition(":")
        both = f"{unquote(user)}:{unquote(password)}"
        return f"Basic {b64encode(both.encode()).decode()}" if user else ""

    def _login(self) -> dict[str, str]:
        """The header of the URL's user and password; empty where there are none, or another header logs in."""
        basic = self._basic()
        if not basic or any(name.lower() == "authorization" for name in self.headers):
            return {}
        return {"Authorization": basic}

    def _hidden(self, text: str) -> str:
        """What a source says may repeat what it was sent."""
        written = self._user_info().partition(":")[2]
        values = (*self.headers.values(), self._basic())
        for secret in (written, unquote(written), *(part for value in values for part in (value, *value.split()[1:]))):
            text = text.replace(secret, "***") if len(secret) >= SHORTEST else text
        return text

    def _calm(self) -> None:
        """Wait until the pause after the query before is over: with several threads one query after the other."""
        with self._lock:
            now = elapsed()
            early = max(0.0, self._last + self.manners.pause - now)
            self._last = now + early
        if early > 0:
            self.wait(early)

    def _address(self) -> str:
        """The URL without user and password."""
        scheme, mark, rest = self.url.rstrip("/").rpartition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"

    def _post(self, path: str, query: Mapping[str, str]) -> tuple[int, bytes, float | None]:
        """Queries are longer than URLs may be; only label names are read by GET everywhere."""
        with self._lock:
            if self._pool is None:
                self._pool = urllib3.PoolManager(
                    ca_certs=self.ca, cert_file=self.certificate, key_file=self.key, retries=False, maxsize=CONNECTIONS
                )
        url, form = self._address() + path, urlencode(query)
        timeout = urllib3.Timeout(connect=10.0, read=self.manners.deadline)
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", **self._login(), **self.headers}
        if path.startswith("/api/v1/label"):
            answer = self._pool.request("GET", f"{url}?{form}", headers=headers, timeout=timeout)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            answer = self._pool.request("POST", url, body=form, headers=headers, timeout=timeout)
        return answer.status, answer.data, _seconds(answer.headers.get("Retry-After"))


_LOG_IN = (
    " (log in with --token-file, or with --header-file and a line such as Authorization: Bearer … or Basic …; "
    "the recommender with TRIMTAB_RECOMMENDER_PROMETHEUS_TOKEN_FILE or TRIMTAB_RECOMMENDER_PROMETHEUS_HEADER_FILE)"
)
_ELSEWHERE = " (the address asks for another one: a log-in page, or a path that is missing, such as /prometheus)"
_HELP = {401: _LOG_IN, 403: _LOG_IN, 404: " (is the API at this address, or below a path such as /prometheus?)",
         **dict.fromkeys((301, 302, 303, 307, 308), _ELSEWHERE)}  # fmt: skip


class _Error(msgspec.Struct, frozen=True):
    error: str = ""
    message: str = ""


def _said(body: bytes) -> str:
    """The source's own words."""
    try:
        found = msgspec.json.decode(body, type=_Error)
        text = found.error or found.message
    except (msgspec.DecodeError, UnicodeError):
        text = ""
    return text or body[:300].decode(errors="replace").strip() or "no reason given"


_NOBODY = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.SSLError, urllib3.exceptions.ConnectTimeoutError)
_OBJECT = re.compile(r"^<?\w*HTTPS?Connection\w*[^:]*: ", re.ASCII)
"""What urllib3 says before what happened."""
_CERTIFICATE_ALERT = re.compile(r"ALERT_(\w*CERTIFICATE\w*|HANDSHAKE_FAILURE)")
"""What a server says that was shown no certificate of the client's, or one that it does not trust."""
_OWN_CERTIFICATE = (
    " (the server asks for a client certificate, or does not trust this one: --certificate and --key; the recommender "
    "with TRIMTAB_RECOMMENDER_PROMETHEUS_CERTIFICATE_FILE and TRIMTAB_RECOMMENDER_PROMETHEUS_KEY_FILE)"
)
_PLAIN_HTTP = " (no TLS there: http:// instead of https://?)"


def _plain(error: Exception) -> str:
    text = _OBJECT.sub("", str(getattr(error, "reason", None) or error)) or type(error).__name__
    if _CERTIFICATE_ALERT.search(text):
        return text + _OWN_CERTIFICATE
    return text + (_PLAIN_HTTP if "WRONG_VERSION_NUMBER" in text else "")


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None
