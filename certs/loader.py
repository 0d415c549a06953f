"""The TLS context of a folder, renewed when its files change, never broken by a half-written pair."""

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from certs.errors import Missing, Unusable
from certs.folder import CERTIFICATE, KEY
from certs.problem import Problem

Signature = tuple[tuple[int, int, int], ...]


class Loader:
    """Hands out an `SSLContext` for the pair that stands in a folder.

    `front` is the context a server listens with. Each handshake asks it which context to use, and
    gets the newest pair that was whole; so a new pair is served from the next connection on, in any
    server that takes an `SSLContext`. Built before a fork, it works in every child.
    """

    def __init__(
        self, folder: Path, told: Callable[[Problem | None], None] = lambda _: None, clients: Path | None = None
    ) -> None:
        """Load the pair, or raise `Missing` or `Unusable`: a server must not start without one.

        `clients` names a file of authorities, followed as the pair is: see `context`. `told` hears of each change:
        None when new files were taken, the problem when they were refused (once per problem, not once per handshake).
        """
        self._folder, self._clients = folder, clients
        self._told = told
        self._refused: Problem | None = None
        self._seen = self._signature()
        self._current = context(folder, clients)
        self.front = context(folder, clients)
        self.front.sni_callback = self._choose

    def current(self) -> ssl.SSLContext:
        """The context of the newest whole pair. Costs two stat calls when nothing changed; never raises."""
        try:
            seen = self._signature()
            if seen != self._seen:
                self._current, self._seen = context(self._folder, self._clients), seen
                self._tell(None)
        except (Missing, Unusable) as e:
            # Not remembered as seen: the next handshake tries again, whatever the file times say.
            self._tell(e.problem)
        return self._current

    def _choose(self, connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext) -> None:
        # OpenSSL calls this for every ClientHello, with None as name where the client sent none.
        connection.context = self.current()

    def _signature(self) -> Signature:
        watched = (self._folder / CERTIFICATE, self._folder / KEY, *([self._clients] if self._clients else []))
        return tuple(_stamp(file) for file in watched)

    def _tell(self, problem: Problem | None) -> None:
        if problem is None or problem != self._refused:
            self._told(problem)
        self._refused = problem


CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: what every API server speaks, with a key of its own for each connection and authenticated. TLS 1.3 has
nothing less."""


def context(folder: Path, clients: Path | None = None) -> ssl.SSLContext:
    """A server context with the folder's pair: TLS 1.2 or newer, HTTP/1.1, no session tickets.

    `clients`: authorities in PEM. A client is asked for a certificate then; one that shows somebody else's is refused
    in the handshake, one that shows none is not: who answers requests looks at that, since a kubelet's probe has none.
    Raises `Missing` or `Unusable`; OpenSSL itself refuses a key that is not the certificate's.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(CIPHERS)
    made.set_alpn_protocols(["http/1.1"])
    # The API server keeps no session cache; a ticket would be two writes per handshake for nobody.
    made.options |= ssl.OP_NO_TICKET
    made.num_tickets = 0
    try:
        made.load_cert_chain(folder / CERTIFICATE, folder / KEY, password=_no_password)
    except FileNotFoundError as e:
        raise Missing(Problem("missing", f"{CERTIFICATE} or {KEY} is not in {folder}")) from e
    except (OSError, ValueError) as e:
        raise Unusable(Problem("unusable-pair", f"{CERTIFICATE} and {KEY} are not a pair: {_why(e)}")) from e
    if clients is not None:
        _ask_for_certificates(made, clients)
    return made


def _ask_for_certificates(made: ssl.SSLContext, authorities: Path) -> None:
    try:
        made.load_verify_locations(cafile=authorities)
    except FileNotFoundError as e:
        raise Missing(Problem("missing", f"{authorities} is not there")) from e
    except (OSError, ValueError) as e:
        raise Unusable(Problem("unusable-authorities", f"{authorities} holds no authorities: {_why(e)}")) from e
    made.verify_mode = ssl.CERT_OPTIONAL


def _stamp(file: Path) -> tuple[int, int, int]:
    try:
        found = os.stat(file)
    except OSError as e:
        raise Missing(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal and stop the process.
    raise ValueError("the key is encrypted")


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or getattr(error, "strerror", None) or error)
