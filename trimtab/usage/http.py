"""An HTTP API that answers queries: logged in, never hurried, asked again where that makes sense."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3

from trimtab.runtime.clock import elapsed
from trimtab.usage.errors import RefusedSource, UnreachableSource

AGAIN = (429, 500, 502, 503, 504)
"""Not now; what is wrong with a query is told by other numbers (400, 422)."""


SHORTEST = 6
"""Letters of a header's value that is hidden when a source repeats it: a tenant called `1` is no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a server is treated."""

    deadline: float = 120.0
    """Seconds for an answer; Prometheus' own limit."""
    tries: int = 4
    first_wait: float = 1.0
    """Seconds, doubling."""
    pause: float = 0.0
    """Seconds between two queries: a share of the server is left to others."""


@dataclass(slots=True)
class Source:
    """`headers` carry what logs in or names a tenant: Authorization, X-Scope-OrgID, …"""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    ca: str | None = None
    """A file of certificates to trust; None: those of the system."""
    manners: Manners = field(default_factory=Manners)
    wait: Callable[[float], None] = time.sleep
    _pool: Any = None
    _last: float = float("-inf")
    _met: bool = False
    """Did it ever answer? A wrong address is told at once, and an outage is waited for."""

    def get(self, path: str, query: Mapping[str, str], doing: str) -> bytes:
        """The answer's bytes. Raises RefusedSource and UnreachableSource, after all tries."""
        for attempt in range(self.manners.tries):
            self._calm()
            last = attempt == self.manners.tries - 1
            try:
                status, body, after = self._post(path, query)
            except urllib3.exceptions.HTTPError as error:
                if last or (isinstance(error, _NOBODY) and not self._met):
                    raise UnreachableSource(f"{doing}: {self.shown}: {self._hidden(_plain(error))}") from None
                after = None
            else:
                self._met = True
                if status < 300:
                    return body
                if last or status not in AGAIN:
                    raise RefusedSource(
                        f"{doing}: {self.shown}", status, self._hidden(_said(body)) + _HELP.get(status, "")
                    )
            self.wait(max(after or 0.0, self.manners.first_wait * 2.0**attempt))
        raise AssertionError("unreachable")

    @property
    def shown(self) -> str:
        """The address as it may be told: who logs in by it is nobody's business."""
        scheme, mark, rest = self.url.rpartition("://")
        return f"{scheme}{mark}{rest.rpartition('@')[2]}"

    def _hidden(self, text: str) -> str:
        """What a source says may repeat what it was sent."""
        given = self.url.rpartition("://")[2].rpartition("@")[0].partition(":")[2]
        for secret in (given, *(part for value in self.headers.values() for part in (value, *value.split()[1:]))):
            text = text.replace(secret, "***") if len(secret) >= SHORTEST else text
        return text

    def _calm(self) -> None:
        early = self._last + self.manners.pause - elapsed()
        if early > 0:
            self.wait(early)
        self._last = elapsed()

    def _post(self, path: str, query: Mapping[str, str]) -> tuple[int, bytes, float | None]:
        """Queries are longer than URLs may be; only label names are read by GET everywhere."""
        if self._pool is None:
            self._pool = urllib3.PoolManager(ca_certs=self.ca, retries=False)
        url, form = self.url.rstrip("/") + path, urlencode(query)
        timeout = urllib3.Timeout(connect=10.0, read=self.manners.deadline)
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip", **self.headers}
        if "/label/" in path:
            answer = self._pool.request("GET", f"{url}?{form}", headers=headers, timeout=timeout)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            answer = self._pool.request("POST", url, body=form, headers=headers, timeout=timeout)
        return answer.status, answer.data, _seconds(answer.headers.get("Retry-After"))


_LOG_IN = " (log in by a header: --header 'Authorization: Bearer …')"
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
_PLAIN_HTTP = " (no TLS there: http:// instead of https://?)"


def _plain(error: Exception) -> str:
    text = _OBJECT.sub("", str(getattr(error, "reason", None) or error)) or type(error).__name__
    return text + (_PLAIN_HTTP if "WRONG_VERSION_NUMBER" in text else "")


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isdigit() else None
