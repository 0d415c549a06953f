"""One page of one pod over real sockets: kept-alive, verified, unpacked, and never longer than its deadline."""

import contextlib
import gzip
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.controlplane.certificates import Authority
from trimtab.cluster.reason import Code, Reason
from trimtab.metricsapi.exposition import MAX_BODY_BYTES, ScrapedBody, SeriesFilter
from trimtab.metricsapi.reasons import BODY_MALFORMED, BODY_TOO_LARGE, SCRAPE_FAILED, SCRAPE_FILE_MISSING
from trimtab.metricsapi.rules import ScrapeEndpoint
from trimtab.metricsapi.scraper import PodScraper, Scrape
from trimtab.metricsapi.targets import ScrapeTarget

FILTERS = (SeriesFilter("requests_total"),)
PAGE = b'requests_total{code="200"} 5\nrequests_total{code="500"} 2\n'
Answer = Callable[[bytes], bytes | None]
"""The head of a request → what is sent; None: nothing, and the connection stays open."""


def respond(body: bytes, *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@dataclass
class PlayedPod:
    """A server that keeps what it was asked."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0


@contextmanager
def serving(
    answer: Answer, context: ssl.SSLContext | None = None, *, closes: bool = False, resets: bool = False
) -> Iterator[PlayedPod]:
    """Serves pages. `closes`: each connection ends after its first response; `resets`: a moment later, as when the
    process is killed."""
    pod = PlayedPod()
    listener = socket.create_server(("127.0.0.1", 0))
    pod.port = listener.getsockname()[1]
    opened: list[socket.socket] = []

    def talk(connection: socket.socket) -> None:
        text = b""
        try:
            if context is not None:
                connection = context.wrap_socket(connection, server_side=True)
                opened.append(connection)
            while data := connection.recv(65536):
                text += data
                while b"\r\n\r\n" in text:
                    head, _, text = text.partition(b"\r\n\r\n")
                    pod.heads.append(head)
                    if (sent := answer(head)) is not None:
                        connection.sendall(sent)
                    if resets:
                        time.sleep(0.1)
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        connection.close()
                        return
                    if closes:
                        connection.shutdown(socket.SHUT_RDWR)
                        connection.close()
                        return
        except OSError:
            return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            pod.connections += 1
            opened.append(connection)
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield pod
    finally:
        listener.close()
        for one in opened:
            one.close()


def target(pod: PlayedPod, token: str = "", **endpoint: str | bool) -> ScrapeTarget:
    return ScrapeTarget("uid", "127.0.0.1", ScrapeEndpoint(port=pod.port, **endpoint), token, ("requests",))  # type: ignore[arg-type]


def total(scrape: Scrape) -> float | str:
    """The sum, or the code of the reason."""
    if isinstance(scrape.body, Reason):
        return scrape.body.code.name
    [values] = scrape.body.values
    return values.code.name if isinstance(values, Reason) else sum(values.values())


@pytest.fixture
def scraper(tmp_path: Path) -> Iterator[PodScraper]:
    """Reads its files from `tmp_path`; its connections are closed at the end."""
    pod_scraper = PodScraper(tmp_path, 5.0)
    yield pod_scraper
    pod_scraper.keep_connections(frozenset())


def scraped(scraper: PodScraper, answer: Answer) -> float | str:
    with serving(answer) as pod:
        return total(scraper.scrape(target(pod), FILTERS))


@pytest.mark.parametrize(
    "response",
    [
        respond(PAGE),
        respond(gzip.compress(PAGE), "Content-Encoding: gzip"),
        respond(gzip.compress(PAGE), "Content-Encoding: GZIP", "Connection: close"),
        respond(PAGE, "Content-Encoding: none-that-is-known"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(PAGE), PAGE),
        b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + respond(PAGE),
    ],
    ids=["plain", "gzip", "closing", "unknown encoding", "chunked", "interim response"],
)
def test_a_page_is_read_however_it_is_sent(response: bytes, scraper: PodScraper) -> None:
    assert scraped(scraper, lambda head: response) == 7


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (respond(PAGE, status="503 Service Unavailable"), SCRAPE_FAILED),
        (respond(b"", "Location: http://127.0.0.1:1/", status="302 Found"), SCRAPE_FAILED),
        (respond(gzip.compress(PAGE)[:-9], "Content-Encoding: gzip"), SCRAPE_FAILED),
        (respond(PAGE, "Content-Encoding: gzip"), SCRAPE_FAILED),
        (respond(b"requests_total many\n"), BODY_MALFORMED),
        (b"nonsense\r\n\r\n", SCRAPE_FAILED),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n", SCRAPE_FAILED),
        (respond(gzip.compress(b"a" * (MAX_BODY_BYTES + 1)), "Content-Encoding: gzip"), BODY_TOO_LARGE),
    ],
    ids=["status", "redirect", "cut gzip", "no gzip", "no number", "no HTTP", "many headers", "bomb"],
)
def test_what_is_no_whole_page_has_a_reason_and_no_value(response: bytes, code: Code, scraper: PodScraper) -> None:
    assert scraped(scraper, lambda head: response) == code.name


def test_a_page_that_ends_too_early_is_no_page(scraper: PodScraper) -> None:
    with serving(lambda head: respond(PAGE, length=len(PAGE) + 10), closes=True) as pod:
        actual_total = total(scraper.scrape(target(pod), FILTERS))
    assert actual_total in (BODY_MALFORMED.name, SCRAPE_FAILED.name)


def test_a_connection_is_kept_and_a_new_one_is_made_when_the_pod_has_closed_it(scraper: PodScraper) -> None:
    with serving(lambda head: respond(PAGE)) as pod:
        assert [total(scraper.scrape(target(pod), FILTERS)) for _ in range(3)] == [7, 7, 7]
        assert (pod.connections, len(pod.heads)) == (1, 3)
        scraper.keep_connections(frozenset())
        assert total(scraper.scrape(target(pod), FILTERS)) == 7
        assert pod.connections == 2


def test_a_pod_that_closed_the_idle_connection_is_asked_again_at_once(scraper: PodScraper) -> None:
    with serving(lambda head: respond(PAGE), closes=True) as pod:
        assert [total(scraper.scrape(target(pod), FILTERS)) for _ in range(3)] == [7, 7, 7]


@pytest.mark.parametrize(
    ("page", "expected"), [(PAGE, 7), (PAGE[:-1], BODY_MALFORMED.name), (PAGE[:-2], BODY_MALFORMED.name)]
)
def test_a_page_without_a_length_is_whole_only_with_its_last_line(
    page: bytes, expected: float | str, scraper: PodScraper
) -> None:
    """A pod that ends, or a deadline, cuts numbers: 12345 became 12."""
    with serving(lambda head: b"HTTP/1.1 200 OK\r\n\r\n" + page, closes=True) as pod:
        assert total(scraper.scrape(target(pod), FILTERS)) == expected


def test_a_page_without_a_length_that_ends_at_the_deadline_is_no_page(scraper: PodScraper) -> None:
    scraper.timeout_seconds, over = 0.3, threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def stay_silent() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + PAGE)
            over.wait(20)

    def watch() -> None:
        while not over.wait(0.05):
            scraper.end_overdue_scrapes()

    threads = [threading.Thread(target=step, daemon=True) for step in (stay_silent, watch)]
    for thread in threads:
        thread.start()
    try:
        pod = PlayedPod(port=listener.getsockname()[1])
        assert total(scraper.scrape(target(pod), FILTERS)) == SCRAPE_FAILED.name
    finally:
        over.set()
        for thread in threads:
            thread.join()
        listener.close()


def test_a_pod_that_is_not_there_has_a_reason(scraper: PodScraper) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = PlayedPod(port=server.getsockname()[1])
    assert total(scraper.scrape(target(gone), FILTERS)) == SCRAPE_FAILED.name


def test_a_silent_pod_costs_no_more_than_the_timeout(scraper: PodScraper) -> None:
    begun = time.monotonic()
    scraper.timeout_seconds = 0.3
    assert scraped(scraper, lambda head: None) == SCRAPE_FAILED.name
    assert time.monotonic() - begun < 3


def test_a_pod_that_sends_one_byte_after_the_other_is_ended_at_its_deadline(scraper: PodScraper) -> None:
    """A socket's own timeout never passes here: the deadline is that of the whole scrape."""
    scraper.timeout_seconds, over = 0.5, threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            while not over.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    threading.Thread(target=drip, daemon=True).start()
    watcher = threading.Thread(target=lambda: [scraper.end_overdue_scrapes() or over.wait(0.05) for _ in range(60)])
    watcher.start()
    try:
        begun = time.monotonic()
        pod = PlayedPod(port=listener.getsockname()[1])
        assert total(scraper.scrape(target(pod), FILTERS)) == SCRAPE_FAILED.name
        assert time.monotonic() - begun < 3
    finally:
        over.set()
        watcher.join()
        listener.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "pods-ca")


def secure(authority: Authority, *names: str) -> ssl.SSLContext:
    pair = authority.server("-".join(names) or "none", list(names))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def test_tls_is_verified_against_the_name_of_the_rule(
    authority: Authority, scraper: PodScraper, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    with serving(lambda head: respond(PAGE), secure(authority, "web.shop.svc")) as pod:
        how = {"is_secure": True, "ca_file": "ca.crt"}
        for name, expected in (("web.shop.svc", 7), ("other.shop.svc", SCRAPE_FAILED.name)):
            scrape = scraper.scrape(target(pod, server_name=name, **how), FILTERS)
            assert total(scrape) == expected
        # The authorities of the system do not know this one.
        unknown = target(pod, is_secure=True, server_name="web.shop.svc")
        assert total(scraper.scrape(unknown, FILTERS)) == SCRAPE_FAILED.name


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "TLS"])
def test_a_kept_connection_that_was_reset_is_made_again(
    is_secure: bool, authority: Authority, scraper: PodScraper, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    context = secure(authority, "web.shop.svc") if is_secure else None
    how = {"is_secure": True, "ca_file": "ca.crt", "server_name": "web.shop.svc"} if is_secure else {}
    with serving(lambda head: respond(PAGE), context, resets=True) as pod:
        assert total(scraper.scrape(target(pod, **how), FILTERS)) == 7
        time.sleep(0.3)
        assert total(scraper.scrape(target(pod, **how), FILTERS)) == 7


def test_a_token_is_never_sent_before_the_certificate_is_verified(
    authority: Authority, scraper: PodScraper, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    (tmp_path / "token").write_text("secret\n")
    with serving(lambda head: respond(PAGE), secure(authority, "web.shop.svc")) as pod:
        how = {"is_secure": True, "ca_file": "ca.crt"}
        assert total(scraper.scrape(target(pod, "token", server_name="thief.svc", **how), FILTERS)) != 7
        assert pod.heads == []
        assert total(scraper.scrape(target(pod, "token", server_name="web.shop.svc", **how), FILTERS)) == 7
        assert b"Authorization: Bearer secret" in pod.heads[0]


@pytest.mark.parametrize("content", [None, "", "two\nlines", "caf\u00e9"])
def test_without_a_usable_token_the_pod_is_not_asked(content: str | None, scraper: PodScraper, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content, "utf-8")
    with serving(lambda head: respond(PAGE)) as pod:
        assert total(scraper.scrape(target(pod, "token"), FILTERS)) == SCRAPE_FILE_MISSING.name
        assert pod.heads == []


def test_without_the_file_of_authorities_the_pod_is_not_asked(scraper: PodScraper) -> None:
    with serving(lambda head: respond(PAGE)) as pod:
        missing = target(pod, is_secure=True, ca_file="none.crt")
        assert total(scraper.scrape(missing, FILTERS)) == SCRAPE_FILE_MISSING.name
        assert pod.connections == 0


def test_the_start_time_is_read_and_the_request_asks_for_text(scraper: PodScraper) -> None:
    with serving(lambda head: respond(PAGE + b"process_start_time_seconds 1.7e9\n")) as pod:
        scrape = scraper.scrape(target(pod, path="/other"), FILTERS)
        assert isinstance(scrape.body, ScrapedBody)
        assert scrape.body.started == 1.7e9
        assert pod.heads[0].startswith(b"GET /other HTTP/1.1")
        assert b"Accept-Encoding: gzip" in pod.heads[0]


GZIP_HEADER = gzip.compress(b"", mtime=0)[:10]
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "response",
    [
        CHUNKED + b"1\r\n#\r\n" * 2_000_000,
        CHUNKED + b"0\r\n" + b"a: b\r\n" * 2_000_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 500_000,
        CHUNKED + (b"1e\r\n" + b"#" * 30 + b"\r\n") * 60_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40_000_000,
        CHUNKED + b"1;" + b"y" * 40_000_000,
        respond(GZIP_HEADER + b"\x00\x00\x00\xff\xff" * 40_000_000, "Content-Encoding: gzip"),
    ],
    ids=[
        "chunks of one byte",
        "trailers",
        "interim responses",
        "a line in chunks",
        "a long header",
        "a long extension",
        "compressed nothing",
    ],
)
def test_no_pod_spends_the_processor_of_all_scrapes(response: bytes, scraper: PodScraper) -> None:
    """Such a response took the interpreter until the scrape's deadline, and again at the next scrape."""
    with serving(lambda head: response) as pod:
        begun = time.thread_time()
        assert total(scraper.scrape(target(pod), FILTERS)) in (SCRAPE_FAILED.name, BODY_TOO_LARGE.name)
        assert time.thread_time() - begun < 0.5


def test_a_pod_that_does_not_accept_costs_only_the_time_out_of_connections(tmp_path: Path) -> None:
    """As behind a NetworkPolicy that drops packets: here the queue of connections to be accepted is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as connections:
        address = listener.getsockname()
        for _ in range(8):
            waiting = connections.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(address)
        endpoint = ScrapeEndpoint(port=address[1])
        scraper = PodScraper(tmp_path, timeout_seconds=30.0, connect_timeout_seconds=0.2)
        begun = time.monotonic()
        scrape = scraper.scrape(ScrapeTarget("uid", "127.0.0.1", endpoint, "", ("requests",)), FILTERS)
    assert total(scrape) == SCRAPE_FAILED.name
    assert time.monotonic() - begun < 10
