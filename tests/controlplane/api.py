"""A plain HTTPS client of the API server: JSON in, JSON out, no models.

Errors:
    ApiError            an answer of 400 or more: .status, .reason, .message
    Unreachable         no answer: refused, reset, timed out
"""

from __future__ import annotations

import json
import ssl
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3

from tests.controlplane import kubeconfig

Object = dict[str, Any]


class ApiError(Exception):
    """What the API server refused, in its own words."""

    def __init__(self, doing: str, status: int, body: bytes) -> None:
        try:
            document = json.loads(body)
        except ValueError:
            document = {}
        self.status = status
        self.document: Object = document if isinstance(document, dict) else {}
        self.reason: str = self.document.get("reason") or ""
        self.message: str = self.document.get("message") or body.decode(errors="replace")[:2000]
        super().__init__(f"{doing}: {status} {self.reason}: {self.message}")


class Unreachable(Exception):
    """Nobody answered, or not in time."""


class Kind(NamedTuple):
    """How the API server serves a kind."""

    prefix: str  # "/api/v1" or "/apis/apps/v1"
    plural: str
    namespaced: bool


class Api:
    """One identity at one API server. Safe to use from several threads."""

    def __init__(self, path: Path, timeout: float = 30.0) -> None:
        access = kubeconfig.read(path)
        self.server = access.server
        self._timeout = timeout
        self._headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
        self._pool = urllib3.PoolManager(ssl_context=context_of(access), retries=False, maxsize=16, block=False)
        self._kinds: dict[tuple[str, str], Kind] = {}
        self.warnings: deque[str] = deque(maxlen=100)
        """The last that the server gave with its answers, refusals included."""

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout: float | None = None,
        **query: Any,
    ) -> Any:
        """The decoded answer; text where it is not JSON. `query` values that are None are left out; bytes are sent as
        they are.

        `path` may be a whole URL, of another server of the same authority.
        """
        values = {name: value for name, value in query.items() if value is not None}
        base = "" if path.startswith("http") else self.server
        url = base + path + (f"?{urlencode(values, doseq=True)}" if values else "")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**self._headers, "Accept": "application/json", "Content-Type": content_type}
        try:
            answer = self._pool.request(method, url, body=data, headers=headers, timeout=timeout or self._timeout)
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"{method} {path}: {error}") from error
        self.warnings.extend(_warning_text(header) for header in answer.headers.getlist("Warning"))
        if answer.status >= 400:
            raise ApiError(f"{method} {path}", answer.status, answer.data)
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return json.loads(answer.data) if is_json else answer.data.decode()

    def kind(self, name: str, group_version: str = "") -> Kind:
        """By kind ("Pod"), plural ("pods") or short name ("po"), in any group unless `group_version` says.

        Asked from the server once, and again when it is unknown: a CustomResourceDefinition may have come.
        """
        key = (group_version, name.lower())
        if key not in self._kinds:
            self._kinds = {**self._discovered([group_version] if group_version else self._group_versions())}
        if key not in self._kinds:
            raise LookupError(f"{self.server} serves no {name} {group_version}".rstrip())
        return self._kinds[key]

    def path(self, kind: Kind, namespace: str | None, name: str = "", sub: str = "") -> str:
        inside = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
        return kind.prefix + inside + "/" + "/".join(part for part in (kind.plural, name, sub) if part)

    def items(self, kind: Kind, namespace: str | None, **query: Any) -> Iterator[Object]:
        """A whole list, page by page. Items carry no kind of their own, as the server sends them."""
        token: str | None = None
        while True:
            page = self.request("GET", self.path(kind, namespace), **{"limit": 500, "continue": token, **query})
            yield from page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return

    def watch(self, kind: Kind, version: str, seconds: int = 300) -> Iterator[Object]:
        """Events since this version, as they come, until the server ends it (it is asked to after `seconds`)."""
        query = urlencode({"watch": "true", "resourceVersion": version, "timeoutSeconds": seconds})
        url = f"{self.server}{self.path(kind, None)}?{query}"
        timeout = urllib3.Timeout(connect=5.0, read=seconds + 10.0)
        try:
            answer = self._pool.request("GET", url, headers=self._headers, timeout=timeout, preload_content=False)
            rest = b""
            for part in answer.stream(65536):
                *lines, rest = (rest + part).split(b"\n")
                yield from map(json.loads, lines)
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"watch {kind.plural}: {error}") from error

    def close(self) -> None:
        self._pool.clear()

    def _group_versions(self) -> list[str]:
        preferred = [group["preferredVersion"]["groupVersion"] for group in self.request("GET", "/apis")["groups"]]
        return ["v1", *preferred]

    def _discovered(self, group_versions: list[str]) -> dict[tuple[str, str], Kind]:
        """The core group wins a name that several groups serve (Event)."""
        kinds = dict(self._kinds)
        for group_version in group_versions:
            prefix = f"/api/{group_version}" if "/" not in group_version else f"/apis/{group_version}"
            for resource in self.request("GET", prefix)["resources"]:
                if "/" in resource["name"]:
                    continue
                kind = Kind(prefix, resource["name"], resource["namespaced"])
                for name in (resource["name"], resource["kind"], *resource.get("shortNames", ())):
                    kinds.setdefault(("", name.lower()), kind)
                    kinds[(group_version, name.lower())] = kind
        return kinds


def _warning_text(header: str) -> str:
    """What a header such as `299 - "text"` says."""
    return header.partition('"')[2].rpartition('"')[0].replace('\\"', '"')


def context_of(access: kubeconfig.Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.authority.decode() if access.authority else None)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # clusters older than this rule of Python 3.13 are tested too
    if access.certificate and access.key:
        with tempfile.NamedTemporaryFile() as both:  # the ssl module reads client certificates from files alone
            both.write(access.certificate + b"\n" + access.key)
            both.flush()
            context.load_cert_chain(both.name)
    return context
