"""The TLS context of a folder, renewed when its files change, never broken by a half-written pair."""

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from certs.files import CERTIFICATE, KEY
from certs.problems import MissingFile, Problem, UnusableFile

Stamp = tuple[int, int, int]
Signature = tuple[Stamp | None, ...]


class CertificateLoader:
    """Hands out an `SSLContext` for the pair that stands in a folder.

    `front` is the context a server listens with. Each handshake asks it which context to use, and
    gets the newest pair that was whole; so a new pair is served from the next connection on, in any
    server that takes an `SSLContext`. Built before a fork, it works in every child.
    """

    def __init__(
        self, folder: Path, told: Callable[[Problem | None], None] = lambda _: None, clients: Path | None = None
    ) -> None:
        """Load the pair, or raise `MissingFile` or `UnusableFile`: a server must not start without one.

        `clients` names a file of authorities, followed as the pair is: see `context`. A new pair does not wait for
        authorities that are no good: those of before stay in force beside it. `told` hears of each change: None when
        new files were taken, the problem when some were refused (once per problem, not once per handshake).
        """
        self._folder, self._clients = folder, clients
        self._told = told
        self._refused: Problem | None = None
        self._seen = self._signature()
        self._trusted = None if clients is None else authorities(clients)
        self._current = context(folder, self._trusted)
        self.front = context(folder, self._trusted)
        self.front.sni_callback = self._choose

    def current(self) -> ssl.SSLContext:
        """The context of the newest whole pair. Costs two or three stat calls when nothing changed; never raises."""
        try:
            seen = self._signature()
            if seen != self._seen:
                problem = self._follow_authorities()
                self._current = context(self._folder, self._trusted)
                # What was refused is not remembered as seen: the next handshake tries again, whatever the times say.
                self._seen = seen if problem is None else self._seen
                self._tell(problem)
        except (MissingFile, UnusableFile) as e:
            self._tell(e.problem)
        return self._current

    def _follow_authorities(self) -> Problem | None:
        """Take those of the file; the problem where they are no good, and those of before stay."""
        try:
            self._trusted = None if self._clients is None else authorities(self._clients)
        except (MissingFile, UnusableFile) as e:
            return e.problem
        return None

    def _choose(self, connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext) -> None:
        # OpenSSL calls this for every ClientHello, with None as name where the client sent none.
        connection.context = self.current()

    def _signature(self) -> Signature:
        pair = tuple(_stamp(self._folder / file) for file in (CERTIFICATE, KEY))
        return pair if self._clients is None else (*pair, _stamp_or_none(self._clients))

    def _tell(self, problem: Problem | None) -> None:
        if problem is None or problem != self._refused:
            self._told(problem)
        self._refused = problem


CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: what every API server speaks, with a key of its own for each connection and authenticated. TLS 1.3 has
nothing less."""


def context(folder: Path, trusted: str | None = None) -> ssl.SSLContext:
    """A server context with the folder's pair: TLS 1.2 or newer, HTTP/1.1, no session tickets.

    `trusted`: authorities in PEM. A client is asked for a certificate then; one that shows somebody else's is refused
    in the handshake, one that shows none is not: who answers requests looks at that, since a kubelet's probe has none.
    Raises `MissingFile` or `UnusableFile`; OpenSSL itself refuses a key that is not the certificate's.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_ciphers(CIPHERS)
    made.set_alpn_protocols(["http/1.1"])
    # The API server keeps no session cache; a ticket would be two writes per handshake for nobody.
    # OpenSSL 3 renegotiates with no client by itself, an older one would.
    made.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    made.num_tickets = 0
    try:
        made.load_cert_chain(folder / CERTIFICATE, folder / KEY, password=_no_password)
    except FileNotFoundError as e:
        raise MissingFile(Problem("missing", f"{CERTIFICATE} or {KEY} is not in {folder}")) from e
    except (OSError, ValueError) as e:
        raise UnusableFile(Problem("unusable-pair", f"{CERTIFICATE} and {KEY} are not a pair: {_why(e)}")) from e
    if trusted is not None:
        made.load_verify_locations(cadata=trusted)
        made.verify_mode = ssl.CERT_OPTIONAL
    return made


def authorities(file: Path) -> str:
    """Authorities in PEM, found good. Raises `MissingFile` or `UnusableFile`."""
    try:
        # Comments beside certificates may be in any language, and say nothing to us.
        found = file.read_bytes().decode("ascii", "ignore")
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=found)
    except FileNotFoundError as e:
        raise MissingFile(Problem("missing", f"{file} is not there")) from e
    except (OSError, ValueError) as e:
        raise UnusableFile(Problem("unusable-authorities", f"{file} holds no authorities: {_why(e)}")) from e
    return found


def _stamp_or_none(file: Path) -> Stamp | None:
    try:
        return _stamp(file)
    except MissingFile:
        return None


def _stamp(file: Path) -> Stamp:
    try:
        found = os.stat(file)
    except OSError as e:
        raise MissingFile(Problem("missing", f"{file.name} is not in {file.parent}")) from e
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal and stop the process.
    raise ValueError("the key is encrypted")


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or getattr(error, "strerror", None) or error)
