"""One request, its bytes; or a stream of lines. Both with a deadline.

Nothing is tried twice in here: who asks knows whether asking again makes sense.

Who waits for an answer, and how does another thread end that?

A thread that waits for a frozen server sits in the socket until its deadline; all that wakes it is the end of that
socket. So each thread's is known here while it waits, and no longer: a connection that somebody else uses by now is
never ended.

What came back, whatever its status: for who asks how a server answers, not only what.

One TLS context for all connections to a cluster, also to one whose authority is older than Python 3.13's rules.

Since 3.13 a default context asks for VERIFY_X509_STRICT (docs.python.org, ssl.create_default_context), and urllib3
follows: an authority that was made without keyUsage, as many clusters' were, is refused. Go's clients, and with them
everything else that talks to that cluster, accept it. So we take exactly that flag off, and nothing else.

Authority and login are loaded here, once: urllib3 would load them into the context again for every connection, and
two threads that do so at the same moment crash inside OpenSSL (seen with 23 watches that came back together).
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3 import HTTPHeaderDict, PoolManager
from urllib3.util.ssl_ import create_urllib3_context

from trimtab.kube.errors import KubeFault, NotConfigured, Unreachable, refused
from trimtab.runtime.clock import elapsed


class WaitingRequests:
    """By thread, the socket it waits for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: dict[int, socket.socket] = {}

    @contextlib.contextmanager
    def on(self, found: socket.socket | None) -> Iterator[None]:
        """This thread waits for what comes from here; None: for nothing that could be ended."""
        me = threading.get_ident()
        with self._lock:
            if found is not None:
                self._sockets[me] = found
        try:
            yield
        finally:
            with self._lock:
                self._sockets.pop(me, None)

    def end(self, thread: int) -> None:
        """What the thread waits for ends within milliseconds, as if the server had gone. Otherwise nothing happens."""
        with self._lock, contextlib.suppress(OSError):
            if (found := self._sockets.get(thread)) is not None:
                socket.socket.shutdown(found, socket.SHUT_RDWR)  # TLS' own takes its object away from under the reader

    def watch(self, manager: PoolManager) -> None:
        """From now on the beginning of every answer to this pool is waited for here."""
        classes = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: self._pool(classes[scheme]) for scheme in classes}

    def _pool(self, found: Any) -> Any:
        on = self.on

        class Connection(found.ConnectionCls):  # type: ignore[misc]
            def getresponse(self) -> Any:
                with on(self.sock):
                    return super().getresponse()

        return type(found.__name__, (found,), {"ConnectionCls": Connection})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One answer."""

    status: int
    content: bytes
    headers: HTTPHeaderDict

    @property
    def at(self) -> datetime | None:
        """The server's own time, to the second; None where it does not say."""
        try:
            return parsedate_to_datetime(self.headers.get("Date") or "")
        except ValueError:
            return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the warnings an API server sent along, webhooks' among them."""
        found = (_WARNING.match(line) for line in self.headers.getlist("Warning"))
        return tuple(re.sub(r"\\(.)", r"\1", line[1]) for line in found if line)


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""RFC 9110 took them out, Kubernetes still sends them: code, agent, quoted text; one to a line."""


def lenient(api: ApiClient) -> None:
    """Make the client's connections as strict as Go's. Raises OSError where a certificate cannot be read."""
    configuration = api.configuration
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.ssl_ca_cert or configuration.ca_cert_data:
        context.load_verify_locations(configuration.ssl_ca_cert, None, configuration.ca_cert_data)
    else:
        context.load_default_certs()
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    pool = api.rest_client.pool_manager.connection_pool_kw
    for loaded in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
        pool.pop(loaded, None)
    pool["ssl_context"] = context


Query = Mapping[str, str | int | None]
"""Parameters of a request; those that are None are left out."""

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds from asking to the last byte of the answer."""

    connect: float = 5.0
    """To a TCP and TLS connection; a control plane that takes longer is down."""
    read: float = 30.0
    """A page of a list: 500 pods of 100 KB over a slow line."""
    write: float = 10.0
    """A write: the API server itself gives webhooks no more than 10 s by default."""


class Client:
    """One identity at one API server. Safe to use from several threads."""

    def __init__(self, api: ApiClient, deadlines: Deadlines | None = None) -> None:
        self._api = api
        self.deadlines = deadlines or Deadlines()
        api.user_agent = "trimtab"
        lenient(api)
        self._waiting = WaitingRequests()
        self._waiting.watch(api.rest_client.pool_manager)

    @property
    def server(self) -> str:
        """Its URL."""
        return str(self._api.configuration.host)

    def get(self, path: str, query: Query | None = None, *, doing: str = "", accept: str = JSON) -> bytes:
        """The answer's bytes."""
        return self.request("GET", path, query=query, deadline=self.deadlines.read, doing=doing, accept=accept)

    def write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        *,
        content_type: str = JSON,
        query: Query | None = None,
        doing: str = "",
    ) -> bytes:
        """POST, PUT, PATCH or DELETE; the answer's bytes."""
        return self.request(
            method, path, query=query, body=body, content_type=content_type, deadline=self.deadlines.write, doing=doing
        )

    def request(
        self,
        method: str,
        path: str,
        *,
        deadline: float,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
        doing: str = "",
        accept: str = JSON,
    ) -> bytes:
        """The answer's bytes, all of them within the deadline. Raises any `KubeFault`; `doing` begins its text."""
        doing = doing or f"{method} {path}"
        found = self.exchange(
            method, path, deadline=deadline, query=query, body=body, content_type=content_type, doing=doing,
            accept=accept,
        )  # fmt: skip
        if found.status >= 300:
            raise refused(doing, found.status, found.content, found.headers.get("Retry-After"))
        return found.content

    def exchange(
        self,
        method: str,
        path: str,
        *,
        deadline: float,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = JSON,
        doing: str,
        accept: str = JSON,
    ) -> Exchange:
        """The same with status and headers; a refusal is an answer too. Raises any `KubeFault` but `RequestRefused`."""
        begun, patience = elapsed(), deadline / 2
        with _told(doing):
            # The beginning of the answer may take half of it, and its rest what is left then.
            timeout = (min(self.deadlines.connect, patience), patience)
            answer = self._call(method, path, query, body, content_type, timeout, accept)
            try:
                with self._waiting.on(getattr(answer.connection, "sock", None)):
                    content = _whole(answer, begun + deadline, patience, doing)
            except BaseException:
                answer.close()
                raise
            answer.release_conn()
        return Exchange(status=answer.status, content=content, headers=answer.headers)

    def stream(self, path: str, query: Query, *, idle: float, doing: str = "", accept: str = JSON) -> Stream:
        """An answer without an end. Silence of `idle` seconds is `Unreachable`."""
        doing = doing or f"watch {path}"
        with _told(doing):
            answer = self._call("GET", path, query, None, JSON, (self.deadlines.connect, idle), accept)
            if answer.status >= 300:
                with contextlib.closing(answer):
                    content = answer.read(1 << 16)
                raise refused(doing, answer.status, content, answer.headers.get("Retry-After"))
        return Stream(answer, doing)

    def interrupt(self, thread: int) -> None:
        """The request this thread waits for ends within milliseconds, as `Unreachable`; see `threading.get_ident`."""
        self._waiting.end(thread)

    def close(self) -> None:
        """Lets go of idle connections."""
        self._api.close()

    def _call(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, Any] | None,
        content_type: str,
        timeout: tuple[float, float],
        accept: str,
    ) -> urllib3.HTTPResponse:
        given = [(name, str(value)) for name, value in (query or {}).items() if value is not None]
        headers = {"Accept": accept, **({"Content-Type": content_type} if body is not None else {})}
        asked = self._api.param_serialize(
            method, path, query_params=given, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        found: urllib3.HTTPResponse = self._api.call_api(*asked, _request_timeout=timeout).response
        return found


class Stream:
    """Lines as they come. `close` from any thread ends the reader within milliseconds."""

    def __init__(self, answer: urllib3.HTTPResponse, doing: str) -> None:
        self._answer = answer
        self._doing = doing
        self._closed = False

    def chunks(self) -> Iterator[bytes]:
        """Whole lines, one or more at a time, each with its newline. A line cut short at the end is dropped.

        Raises Unreachable when the stream breaks or stays silent; just ends when it was closed.
        """
        rest = b""
        with _told(self._doing), contextlib.closing(self._answer):
            for found in self._parts():
                end = found.rfind(b"\n") + 1
                if end:
                    yield rest + found[:end]  # mostly the very bytes that came: nothing is copied then
                    rest = found[end:]
                else:
                    rest += found

    def _parts(self) -> Iterator[bytes]:
        """What the server sent at one time, as it comes; ends quietly where we ended it ourselves."""
        try:
            if self._answer.chunked:
                yield from self._answer.read_chunked(1 << 20)
            else:
                yield from iter(lambda: self._answer.read1(1 << 16), b"")
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
            if not self._is_closed():
                raise

    def _is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Ends it, also while somebody reads."""
        self._closed = True
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._answer.shutdown()


def connect(kubeconfig: str | None = None, context: str | None = None, *, deadlines: Deadlines | None = None) -> Client:
    """The cluster a kubeconfig speaks of (default: KUBECONFIG, then ~/.kube/config), or the one we run in.

    Nothing is asked yet. Raises NotConfigured.
    """
    found = Configuration()
    try:
        named = kubeconfig or context or os.environ.get("KUBECONFIG")
        if not named and _inside(found):
            return _client(found, deadlines)
        config.load_kube_config(config_file=kubeconfig, context=context, client_configuration=found)
        return _client(found, deadlines)
    except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        asked = f"kubeconfig {kubeconfig}" if kubeconfig else "the current kubeconfig"
        raise NotConfigured(f"{asked}{f', context {context}' if context else ''}: {error}") from error


def _inside(found: Configuration) -> bool:
    """Are we a pod?"""
    try:
        config.load_incluster_config(client_configuration=found)
    except ConfigException:
        return False
    return True


def _client(found: Configuration, deadlines: Deadlines | None) -> Client:
    # urllib3 would try three times at once, and write a line for each.
    found.retries = False
    found.connection_pool_maxsize = 64
    return Client(ApiClient(found), deadlines)


def segment(name: str) -> str:
    """A name as part of a path."""
    return quote(name, safe="")


def _whole(answer: urllib3.HTTPResponse, until: float, patience: float, doing: str) -> bytes:
    parts = []
    while _in_time(answer, until - elapsed(), patience, doing) and (part := answer.read1(1 << 20)):
        parts.append(part)
    return b"".join(parts)


def _in_time(answer: urllib3.HTTPResponse, left: float, patience: float, doing: str) -> bool:
    """The next silence lasts no longer than what is left; a closing connection's cannot be told, it is `patience`."""
    if answer.closed:
        return True  # all of it is here
    socket = getattr(answer.connection, "sock", None)
    if left < (0.001 if socket else patience):
        raise Unreachable(f"{doing}: the answer did not end in time")
    if socket:
        socket.settimeout(left)
    return True


@contextlib.contextmanager
def _told(doing: str) -> Iterator[None]:
    """What the libraries raise, as ours."""
    try:
        yield
    except KubeFault:
        raise
    except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
        raise Unreachable(f"{doing}: {_reason(error)}") from error
    except ConfigException as error:
        raise NotConfigured(f"{doing}: {error}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, ApiException):
        return str(error.reason).replace("\n", ": ")
    return str(error) or type(error).__name__
