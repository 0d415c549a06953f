"""Loads the TLS context from a certificate folder, and reloads it when the files change; a mismatched pair is
ignored."""

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from certs.pem_files import CERTIFICATE, KEY
from certs.problems import MissingFile, Problem, UnusableFile

Stamp = tuple[int, int, int]
Signature = tuple[Stamp | None, ...]


class CertificateLoader:
    """Provides an `SSLContext` for the pair in a folder.

    `front` is the context that a server listens with. In each handshake its SNI callback switches to the context of the
    newest complete pair; so a new pair is served from the next connection on, by any server that takes an `SSLContext`.
    An instance created before a fork works in every child.
    """

    def __init__(
        self, folder: Path, on_change: Callable[[Problem | None], None] = lambda _: None, clients: Path | None = None
    ) -> None:
        """Loads the pair; raises `MissingFile` or `UnusableFile`, because a server must not start without one.

        `clients` names a file of authorities for client certificates, which is reloaded like the pair: see
        `create_context`. If new authorities are invalid, the previous ones stay in force, and a new pair is served all
        the same. `on_change` is called after each change: with None if new files were loaded, with the problem if they
        were rejected (once per problem, not once per handshake).
        """
        self._folder, self._clients = folder, clients
        self._on_change = on_change
        self._last_problem: Problem | None = None
        self._loaded_signature = self._file_signature()
        self._client_authorities = None if clients is None else read_client_authorities(clients)
        self._current = create_context(folder, self._client_authorities)
        self.front = create_context(folder, self._client_authorities)
        self.front.sni_callback = self._select_context

    def current_context(self) -> ssl.SSLContext:
        """Returns the context of the newest complete pair. Costs two or three stat calls if nothing changed; never
        raises."""
        try:
            signature = self._file_signature()
            if signature != self._loaded_signature:
                problem = self._reload_authorities()
                self._current = create_context(self._folder, self._client_authorities)
                # After a rejection the old signature is kept, so that the next handshake tries again.
                self._loaded_signature = signature if problem is None else self._loaded_signature
                self._notify(problem)
        except (MissingFile, UnusableFile) as e:
            self._notify(e.problem)
        return self._current

    def _reload_authorities(self) -> Problem | None:
        """Loads the authorities; returns the problem if they are invalid, and the previous ones stay."""
        try:
            self._client_authorities = None if self._clients is None else read_client_authorities(self._clients)
        except (MissingFile, UnusableFile) as e:
            return e.problem
        return None

    def _select_context(self, connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext) -> None:
        # OpenSSL calls this for every ClientHello, with None as name where the client sent none.
        connection.context = self.current_context()

    def _file_signature(self) -> Signature:
        pair = tuple(_file_stamp(self._folder / file) for file in (CERTIFICATE, KEY))
        return pair if self._clients is None else (*pair, _stamp_if_exists(self._clients))

    def _notify(self, problem: Problem | None) -> None:
        if problem is None or problem != self._last_problem:
            self._on_change(problem)
        self._last_problem = problem


CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2: supported by every API server, with forward secrecy and authenticated encryption. All suites of TLS 1.3
have both."""


def create_context(folder: Path, trusted: str | None = None) -> ssl.SSLContext:
    """Returns a server context with the folder's pair: TLS 1.2 or newer, HTTP/1.1, no session tickets.

    `trusted`: authorities in PEM. The server then requests a client certificate; one by another authority is rejected
    in the handshake, a missing one is not, because a kubelet's probe has none: the application checks that. Raises
    `MissingFile` or `UnusableFile`; OpenSSL itself rejects a key that does not match the certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # The API server keeps no session cache, so tickets would cost two useless writes per handshake.
    # OpenSSL 3 disables client-initiated renegotiation by default; older versions do not.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    try:
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY, password=_no_password)
    except FileNotFoundError as e:
        raise MissingFile(Problem("missing", f"{CERTIFICATE} or {KEY} is not in {folder}")) from e
    except (OSError, ValueError) as e:
        raise UnusableFile(
            Problem("unusable-pair", f"{CERTIFICATE} and {KEY} are not a pair: {_error_reason(e)}")
        ) from e
    if trusted is not None:
        context.load_verify_locations(cadata=trusted)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def read_client_authorities(file: Path) -> str:
    """Returns the file's authorities in PEM. Raises `MissingFile` or `UnusableFile`."""
    try:
        # Comments between certificates may be in any encoding; PEM itself is ASCII.
        pem = file.read_bytes().decode("ascii", "ignore")
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem)
    except FileNotFoundError as e:
        raise MissingFile(Problem("missing", f"{file} does not exist")) from e
    except (OSError, ValueError) as e:
        raise UnusableFile(Problem("unusable-authorities", f"{file} holds no authorities: {_error_reason(e)}")) from e
    return pem


def _stamp_if_exists(file: Path) -> Stamp | None:
    try:
        return _file_stamp(file)
    except MissingFile:
        return None


def _file_stamp(file: Path) -> Stamp:
    try:
        file_status = os.stat(file)
    except OSError as e:
        raise MissingFile(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    return (file_status.st_mtime_ns, file_status.st_size, file_status.st_ino)


def _no_password() -> str:
    # Without a callback OpenSSL prompts on the terminal, and the process blocks.
    raise ValueError("the key is encrypted")


def _error_reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or getattr(error, "strerror", None) or error)
