"""The real server and clients that do their worst over HTTP: bounded, refused in time, and no trouble to others."""

import http.client
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.ca import create_authority
from tests.webhook.server import Server, post, serving
from tests.webhook.worlds import review

ELSEWHERE = "127.0.0.2"
"""Another machine's address, as far as the server can see."""

CHUNKED = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LARGE_PAGE = b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"
MIB = 2**20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("hostile")) as running:
        yield running


@pytest.fixture
def over() -> Iterator[ExitStack]:
    """What a test opens and closes at its end, however that is."""
    with ExitStack() as stack:
        yield stack


def plain(server: Server, over: ExitStack, address: str = ELSEWHERE) -> socket.socket:
    """A TCP connection from an address, without a handshake."""
    connection = socket.create_connection(("127.0.0.1", server.port), 30, source_address=(address, 0))
    return over.enter_context(connection)


def secure(server: Server, over: ExitStack, address: str = ELSEWHERE) -> ssl.SSLSocket:
    """A connection over TLS from an address."""
    connection = server.trust().wrap_socket(plain(server, over, address), server_hostname="localhost")
    return over.enter_context(connection)


def answer_to(client: ssl.SSLSocket, *pieces: bytes) -> bytes:
    """What the server says until it ends the connection; sending stops where it does not listen any more."""
    with suppress(OSError):
        for piece in pieces:
            client.sendall(piece)
    text = b""
    with suppress(ConnectionError, ssl.SSLError):
        while part := client.recv(65536):
            text += part
    return text


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except (ConnectionError, ssl.SSLError):
        return True


def probe(server: Server) -> int:
    connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=server.trust())
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    connection.close()
    return status


REFUSED = {
    "a length that wraps": (400, b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551618\r\n\r\n{}"),
    "a chunk size that wraps": (400, CHUNKED + b"10000000000000002\r\n{}\r\n0\r\n\r\n"),
    "a header that ends with LF": (400, b"GET /healthz HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"),
    "a folded header": (400, b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"),
    "too many headers": (431, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 4000),
    "a request line without an end": (414, b"GET /" + b"a" * 40_000),
    "ten thousand chunks and more": (400, CHUNKED + b"1\r\nx\r\n" * 20_000),
    "9 MB of a chunk extension": (400, CHUNKED + b"1;" + b"e" * 9_000_000),
    "9 MB of trailers": (431, CHUNKED + b"0\r\nA: " + b"b" * 9_000_000),
    "9 MB of short trailers": (431, CHUNKED + b"0\r\n" + b"A: b\r\n" * 1_500_000),
}


@pytest.mark.parametrize(("status", "request_bytes"), REFUSED.values(), ids=REFUSED)
def test_what_no_api_server_sends_is_refused_and_its_connection_ends(
    server: Server, over: ExitStack, status: int, request_bytes: bytes
) -> None:
    client = secure(server, over)
    answer = answer_to(client, *(request_bytes[at : at + 16_384] for at in range(0, len(request_bytes), 16_384)))
    # A client that is still sending may lose the answer with the connection.
    assert answer.startswith(b"HTTP/1.1 %d" % status) or (not answer and len(request_bytes) > 100_000)
    assert probe(server) == 200


def test_six_megabytes_of_chunks_of_one_byte_stop_nobody(server: Server, over: ExitStack) -> None:
    clients = [secure(server, over) for _ in range(4)]
    pieces = [b"1\r\nx\r\n" * 40_000] * 25
    sending = [threading.Thread(target=answer_to, args=(client, CHUNKED, *pieces)) for client in clients]
    for thread in sending:
        thread.start()
    assert [post(server.connect(), review(f"u-{number}"))[0] for number in range(20)] == [200] * 20
    assert probe(server) == 200
    for thread in sending:
        thread.join(60)
    assert all(ended(client) for client in clients)


SILENT = {
    "headers without an end": [b"POST /mutate HTTP/1.1\r\nHost: x\r\nA: ", *[b"b" * 60_000] * 40],
    "an extension without an end": [CHUNKED + b"1;", *[b"e" * 60_000] * 40],
    "trailers without an end": [CHUNKED + b"0\r\nA: ", *[b"b" * 60_000] * 40],
    "all just below their bounds": [CHUNKED + b"1;" + b"e" * 4000 + b"\r\nx\r\n0\r\nA: " + b"b" * 4000],
    "a page with a large body": [LARGE_PAGE, *[b" " * 60_000] * 40],
    "a page, and the next with a large body": [
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" + LARGE_PAGE,
        b" " * 200_000,
    ],
}


def test_ninety_connections_that_fall_silent_hold_little_memory(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert probe(server) == 200
        before = server.memory
        for pieces in SILENT.values():
            with ExitStack() as until:
                for _ in range(90):
                    client = secure(server, until)
                    with suppress(OSError):
                        for piece in pieces:
                            client.sendall(piece)
                assert server.memory - before < 64 * MIB
                assert probe(server) == 200


def test_a_strangers_page_with_a_large_body_holds_nothing_where_callers_are_known(
    tmp_path: Path, over: ExitStack
) -> None:
    (tmp_path / "clients.crt").write_bytes(create_authority(now=datetime.now(UTC)).certificate)
    with serving(tmp_path, CLIENT_CA_FILE=str(tmp_path / "clients.crt")) as server:
        before = server.memory
        clients = [secure(server, over) for _ in range(40)]
        for client in clients:
            answer = answer_to(client, LARGE_PAGE, *[b" " * 60_000] * 100)
            assert answer.startswith(b"HTTP/1.1 200") or not answer
        assert server.memory - before < 64 * MIB


def test_one_address_has_its_own_share_of_connections_handshakes_included(tmp_path: Path, over: ExitStack) -> None:
    with serving(tmp_path, MAX_CONNECTIONS="40", MAX_CONNECTIONS_PER_ADDRESS="8") as server:
        used = server.connect()
        assert post(used, review())[0] == 200
        before = used.sock.getsockname()
        bare = [plain(server, over) for _ in range(30)]
        silent = [secure(server, over) for _ in range(30)]
        assert all(ended(client) for client in bare)
        assert all(ended(client) for client in silent[:22])
        assert post(used, review())[0] == 200
        assert used.sock.getsockname() == before
        assert probe(server) == 200


def test_an_address_over_its_share_loses_what_was_never_used_first(tmp_path: Path, over: ExitStack) -> None:
    with serving(tmp_path, MAX_CONNECTIONS_PER_ADDRESS="4") as server:
        used = server.connect()
        assert post(used, review())[0] == 200
        before = used.sock.getsockname()
        bare = [plain(server, over, "127.0.0.1") for _ in range(6)]
        assert all(ended(client) for client in bare[:3])
        assert post(used, review())[0] == 200
        assert used.sock.getsockname() == before


def test_a_handshake_that_does_not_come_to_an_end_is_ended(server: Server, over: ExitStack) -> None:
    silent, half = plain(server, over), plain(server, over)
    half.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert (ended(silent), ended(half)) == (True, True)  # within the 30 s these sockets wait; it was 60


@pytest.mark.skipif(shutil.which("openssl") is None, reason="asks by openssl's own client")
def test_who_asks_for_another_handshake_on_its_connection_gets_none(server: Server) -> None:
    """One costs the server ten times what it costs the client, which could ask again and again."""
    command = ["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{server.port}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        for line in client.stdout:
            if b"Verify return code" in line:
                break
        client.stdin.write(b"R\n")
        client.stdin.flush()
        text = client.stdout.read()
    assert b"RENEGOTIATING" in text
    assert b"no renegotiation" in text
    assert probe(server) == 200


def test_every_page_of_many_that_came_together_is_answered_in_turn_with_the_others(
    server: Server, over: ExitStack
) -> None:
    client, count = secure(server, over), 3000
    page = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    sending = threading.Thread(target=client.sendall, args=(page * count,))
    sending.start()
    assert post(server.connect(), review())[0] == 200
    text = b""
    while text.count(b'"the process answers"}') < count:
        part = client.recv(65536)
        assert part
        text += part
    sending.join(30)
    assert text.count(b"HTTP/1.1 200") == count


def test_requests_whose_answers_lie_take_little_memory(server: Server, over: ExitStack) -> None:
    before = server.memory
    clients = [secure(server, over) for _ in range(30)]
    for client in clients:
        client.settimeout(0.3)
        with suppress(OSError):
            for _ in range(50):
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
    assert server.memory - before < 64 * MIB
    assert post(server.connect(), review())[0] == 200


def test_no_line_of_the_log_is_a_traceback(server: Server) -> None:
    assert not [line for line in server.log if "exception" in line or line["level"] in ("error", "warning")]
