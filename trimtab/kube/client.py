"""Sends requests to the API server: one request and the bytes of its response, or a stream of lines, each with a
deadline.

No request is retried here, because only the caller knows whether a retry makes sense.

A thread that waits for a server which does not respond is blocked in its socket until the deadline; only ending that
socket wakes the thread. So `WaitingRequests` holds the socket of each thread while the thread waits, and no longer:
otherwise a connection could be ended that another request is already using.

One TLS context serves all connections to a cluster, even if the cluster's certificate authority is older than the rules
of Python 3.13. Since 3.13, a default context sets VERIFY_X509_STRICT (docs.python.org, ssl.create_default_context), and
so does urllib3: an authority without keyUsage, which many clusters have, is then rejected. Go's clients, and so all
other clients of such a cluster, accept it. So exactly this flag is cleared, and nothing else.

The certificate authority and the client certificate are loaded here, once. urllib3 would load them into the context
again for every connection, and two threads that do so at the same moment crash inside OpenSSL (observed with 23 watches
that reconnected together).
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
from pathlib import Path
from typing import Any, Final

import urllib3
from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3 import HTTPHeaderDict, PoolManager
from urllib3.util.ssl_ import create_urllib3_context

from trimtab.kube.errors import KubeFault, NotConfigured, Unreachable, refusal_of_response
from trimtab.runtime.clock import elapsed_seconds


class WaitingRequests:
    """Knows, for each waiting thread, the socket for which it waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: dict[int, socket.socket] = {}

    @contextlib.contextmanager
    def track_socket(self, waiting: socket.socket | None) -> Iterator[None]:
        """A context manager: while its block runs, this thread is recorded as waiting for the socket `waiting`. None:
        the thread waits for nothing that could be ended."""
        thread = threading.get_ident()
        with self._lock:
            if waiting is not None:
                self._sockets[thread] = waiting
        try:
            yield
        finally:
            with self._lock:
                self._sockets.pop(thread, None)

    def end_request(self, thread: int) -> None:
        """Ends the socket for which a thread waits, within milliseconds, as if the server had closed it. Has no effect
        if the thread does not wait."""
        with self._lock, contextlib.suppress(OSError):
            if (waiting := self._sockets.get(thread)) is not None:
                # ssl's own shutdown would detach the reader's TLS object
                socket.socket.shutdown(waiting, socket.SHUT_RDWR)

    def watch_pool(self, manager: PoolManager) -> None:
        """Records every request of this connection pool while it waits for the beginning of its response."""
        classes = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: self._tracking_pool(classes[scheme]) for scheme in classes}

    def _tracking_pool(self, pool_class: Any) -> Any:
        on = self.track_socket

        class Connection(pool_class.ConnectionCls):  # type: ignore[misc]
            def getresponse(self) -> Any:
                with on(self.sock):
                    return super().getresponse()

        return type(pool_class.__name__, (pool_class,), {"ConnectionCls": Connection})


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One response, with any status code."""

    status: int
    content: bytes
    headers: HTTPHeaderDict

    @property
    def server_time(self) -> datetime | None:
        """The server's own time, to the second, or None if the response does not contain it."""
        try:
            return parsedate_to_datetime(self.headers.get("Date") or "")
        except ValueError:
            return None

    @property
    def warning_texts(self) -> tuple[str, ...]:
        """The texts of the API server's warnings, including those that webhooks have returned."""
        matches = (_WARNING.match(line) for line in self.headers.getlist("Warning"))
        return tuple(re.sub(r"\\(.)", r"\1", line[1]) for line in matches if line)


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
"""Matches a Warning header, with code, agent and quoted text, one per line. RFC 9110 removed this header, but
Kubernetes still sends it."""


def relax_tls_checks(api: ApiClient) -> None:
    """Makes the TLS checks of the client as strict as those of Go programs, and no stricter. Raises OSError if a
    certificate cannot be read."""
    configuration = api.configuration
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE)
    # Go's crypto/x509 accepts an authority without keyUsage, so every other client of the cluster works with it.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.ssl_ca_cert or configuration.ca_cert_data:
        context.load_verify_locations(configuration.ssl_ca_cert, None, configuration.ca_cert_data)
    else:
        context.load_default_certs()
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    pool = api.rest_client.pool_manager.connection_pool_kw
    # urllib3 would load these into the shared context again for every connection.
    for option in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
        pool.pop(option, None)
    pool["ssl_context"] = context


Query = Mapping[str, str | int | None]
"""The parameters of a request. A parameter whose value is None is left out."""

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """The number of seconds from the start of a request until the last byte of its response."""

    connect: float = 5.0
    """The number of seconds for a TCP and TLS connection. A control plane that takes longer is down."""
    read: float = 30.0
    """The number of seconds for one page of a list, such as 500 pods of 100 KB over a slow line."""
    write: float = 10.0
    """The number of seconds for a write. The API server itself gives webhooks at most 10 seconds by default."""


class Client:
    """A client with one identity for one API server. Thread-safe."""

    def __init__(self, api: ApiClient, deadlines: Deadlines | None = None) -> None:
        self._api = api
        self.deadlines = deadlines or Deadlines()
        api.user_agent = "trimtab"
        relax_tls_checks(api)
        self._waiting = WaitingRequests()
        self._waiting.watch_pool(api.rest_client.pool_manager)

    @property
    def server_url(self) -> str:
        """The URL of the API server."""
        return str(self._api.configuration.host)

    def get(self, path: str, query: Query | None = None, *, doing: str = "", accept: str = JSON) -> bytes:
        """Returns the body of the response to a GET. Raises any `KubeFault`."""
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
        """Returns the body of the response to a POST, PUT, PATCH or DELETE. Raises any `KubeFault`."""
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
        """Returns the body of the response, complete within the deadline. Raises any `KubeFault`; its text begins with
        `doing`, a description of the operation."""
        doing = doing or f"{method} {path}"
        response = self.send_request(
            method,
            path,
            deadline=deadline,
            query=query,
            body=body,
            content_type=content_type,
            doing=doing,
            accept=accept,
        )
        if response.status >= 300:
            raise refusal_of_response(doing, response.status, response.content, response.headers.get("Retry-After"))
        return response.content

    def send_request(
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
        """Returns the response with its status, whatever that is, and headers. Raises any `KubeFault` except
        `RequestRefused`."""
        started, patience = elapsed_seconds(), deadline / 2
        with _library_errors_as_faults(doing):
            # The start of the response may take half of the deadline, and the rest of it what is left then.
            timeout = (min(self.deadlines.connect, patience), patience)
            response = self._send(method, path, query, body, content_type, timeout, accept)
            try:
                with self._waiting.track_socket(getattr(response.connection, "sock", None)):
                    content = _read_body(response, started + deadline, patience, doing)
            except BaseException:
                response.close()
                raise
            # Only after a complete body: a connection with unread bytes cannot be used again.
            response.release_conn()
        return Exchange(status=response.status, content=content, headers=response.headers)

    def stream(self, path: str, query: Query, *, idle: float, doing: str = "", accept: str = JSON) -> Stream:
        """Returns a response that does not end. If nothing arrives for `idle` seconds, its reader raises
        `Unreachable`."""
        doing = doing or f"watch {path}"
        with _library_errors_as_faults(doing):
            response = self._send("GET", path, query, None, JSON, (self.deadlines.connect, idle), accept)
            if response.status >= 300:
                with contextlib.closing(response):
                    content = response.read(1 << 16)
                raise refusal_of_response(doing, response.status, content, response.headers.get("Retry-After"))
        return Stream(response, doing)

    def interrupt_request(self, thread: int) -> None:
        """Ends the request for which a thread waits, within milliseconds: the request raises `Unreachable`. `thread` is
        the result of `threading.get_ident`."""
        self._waiting.end_request(thread)

    def close(self) -> None:
        """Closes idle connections."""
        self._api.close()

    def _send(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, Any] | None,
        content_type: str,
        timeout: tuple[float, float],
        accept: str,
    ) -> urllib3.HTTPResponse:
        parameters = [(name, str(value)) for name, value in (query or {}).items() if value is not None]
        headers = {"Accept": accept, **({"Content-Type": content_type} if body is not None else {})}
        arguments = self._api.param_serialize(
            method, path, query_params=parameters, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        response: urllib3.HTTPResponse = self._api.call_api(*arguments, _request_timeout=timeout).response
        return response


class Stream:
    """A response as lines, which are yielded as they arrive. `close`, called from any thread, ends the reader within
    milliseconds."""

    def __init__(self, response: urllib3.HTTPResponse, doing: str) -> None:
        self._response = response
        self._doing = doing
        self._closed = False

    def iter_lines(self) -> Iterator[bytes]:
        """Yields the received bytes as one or more whole lines at a time, each with its newline. An incomplete line at
        the end is dropped.

        Raises Unreachable if the stream breaks or nothing arrives; ends without an error after `close`.
        """
        rest = b""
        with _library_errors_as_faults(self._doing), contextlib.closing(self._response):
            for part in self._iter_parts():
                # A part may end in the middle of a line: the rest is put before the next part.
                end = part.rfind(b"\n") + 1
                if end:
                    yield rest + part[:end]  # usually the received bytes themselves: nothing is copied
                    rest = part[end:]
                else:
                    rest += part

    def _iter_parts(self) -> Iterator[bytes]:
        """Yields the bytes from the server as they arrive; ends without an error after `close`."""
        try:
            if self._response.chunked:
                yield from self._response.read_chunked(1 << 20)
            else:
                yield from iter(lambda: self._response.read1(1 << 16), b"")
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
            # `close` shuts the socket down under the reader, which then raises any of these errors.
            if not self._closed:
                raise

    def close(self) -> None:
        """Ends the stream, even while another thread reads it."""
        self._closed = True
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()


def connect_to_cluster(
    kubeconfig: str | None = None, context: str | None = None, *, deadlines: Deadlines | None = None
) -> Client:
    """Returns a client for the cluster of a kubeconfig (by default KUBECONFIG, then ~/.kube/config), or else for the
    cluster in which this pod runs.

    It sends no request. Raises NotConfigured if there is no configuration.
    """
    configuration = Configuration()
    if kubeconfig and not Path(kubeconfig).exists():
        raise NotConfigured(f"stat {kubeconfig}: no such file or directory")
    try:
        has_kubeconfig = kubeconfig or context or os.environ.get("KUBECONFIG")
        if not has_kubeconfig and _load_in_cluster(configuration):
            return _client_of(configuration, deadlines)
        config.load_kube_config(config_file=kubeconfig, context=context, client_configuration=configuration)
        return _client_of(configuration, deadlines)
    except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise NotConfigured(_describe_kubeconfig_problem(kubeconfig, context, error)) from error


def _describe_kubeconfig_problem(kubeconfig: str | None, context: str | None, error: Exception) -> str:
    """Returns why the kubeconfig does not give access to a cluster. If kubectl has a message for the problem, its words
    are used."""
    default = Path("~/.kube/config").expanduser()
    variable = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    paths = [kubeconfig] if kubeconfig else variable or [str(default)]
    if not any(Path(path).exists() for path in paths):
        return f"stat {paths[0]}: no such file or directory; name a kubeconfig with --kubeconfig or KUBECONFIG"
    names = _context_names(kubeconfig)
    if context and names is not None and context not in names:
        return f'the context "{context}" does not exist; the kubeconfig has {", ".join(sorted(names)) or "no contexts"}'
    return f"the kubeconfig {os.pathsep.join(paths)} names no cluster: {error}"


def name_cluster(kubeconfig: str | None = None, context: str | None = None) -> str:
    """Returns the name by which users know the cluster of `connect_to_cluster`: the context of the kubeconfig."""
    if context:
        return context
    try:
        _, active = config.list_kube_config_contexts(config_file=kubeconfig)
    except (ConfigException, OSError, ValueError, TypeError, KeyError):
        return "of this pod"
    return str(active["name"])


def _context_names(kubeconfig: str | None) -> list[str] | None:
    """Returns the names of the contexts in the kubeconfig, or None if they cannot be read."""
    try:
        contexts, _ = config.list_kube_config_contexts(config_file=kubeconfig)
    except (ConfigException, OSError, ValueError, TypeError, KeyError):
        return None
    return [context["name"] for context in contexts]


def _load_in_cluster(configuration: Configuration) -> bool:
    """Loads the configuration that Kubernetes gives to pods. Returns False if this process does not run in a pod."""
    try:
        config.load_incluster_config(client_configuration=configuration)
    except ConfigException:
        return False
    return True


def _client_of(configuration: Configuration, deadlines: Deadlines | None) -> Client:
    # By default urllib3 retries three times at once, and logs each retry.
    configuration.retries = False
    configuration.connection_pool_maxsize = 64
    return Client(ApiClient(configuration), deadlines)


def _read_body(response: urllib3.HTTPResponse, deadline: float, patience: float, doing: str) -> bytes:
    """Returns the body of a response. Raises Unreachable if it is not complete in time."""
    parts = []
    while _set_read_timeout(response, deadline - elapsed_seconds(), patience, doing) and (
        part := response.read1(1 << 20)
    ):
        parts.append(part)
    return b"".join(parts)


def _set_read_timeout(response: urllib3.HTTPResponse, seconds_left: float, patience: float, doing: str) -> bool:
    """Limits the next read to the remaining seconds, and returns True. If the connection is being closed, its socket is
    not accessible, and a read may take up to `patience` seconds. Raises Unreachable if no time is left."""
    if response.closed:
        return True  # the whole body is read
    socket = getattr(response.connection, "sock", None)
    if seconds_left < (0.001 if socket else patience):
        raise Unreachable(f"{doing}: the response did not end in time")
    if socket:
        socket.settimeout(seconds_left)
    return True


@contextlib.contextmanager
def _library_errors_as_faults(doing: str) -> Iterator[None]:
    """A context manager that turns the errors of libraries into a `KubeFault`."""
    try:
        yield
    except KubeFault:
        raise
    except (urllib3.exceptions.HTTPError, ApiException, OSError) as error:
        raise Unreachable(f"{doing}: {_describe_error(error)}") from error
    except ConfigException as error:
        raise NotConfigured(f"{doing}: {error}") from error


def _describe_error(error: Exception) -> str:
    if isinstance(error, ApiException):
        return str(error.reason).replace("\n", ": ")
    return str(error) or type(error).__name__
