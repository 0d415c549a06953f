"""The real server over TLS: pairs swapped on disk, rude clients, and a stop that loses nothing."""

import json
import re
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

import certs
from tests.reasons import has_facts
from tests.webhook.server import Server, post, serving
from tests.webhook.worlds import review


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def server(one_server: Server) -> Iterator[Server]:
    yield one_server
    one_server.hang_up()


@pytest.fixture
def over() -> Iterator[ExitStack]:
    """What a test opens and closes at its end, however that is."""
    with ExitStack() as stack:
        yield stack


def served(server: Server, host: str = "localhost") -> x509.Certificate:
    connection = server.connect(host)
    connection.connect()
    der = connection.sock.getpeercert(binary_form=True)
    connection.close()
    return x509.load_der_x509_certificate(der)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_review_is_answered_by_name_and_by_address(server: Server, host: str) -> None:
    status, body = post(server.connect(host), review("u-9"))
    assert (status, json.loads(body)["response"]["uid"]) == (200, "u-9")


def test_many_reviews_share_one_connection(server: Server) -> None:
    connection = server.connect()
    connection.connect()
    before = connection.sock.getsockname()
    assert {post(connection, review(f"u-{i}"))[0] for i in range(200)} == {200}
    assert connection.sock.getsockname() == before


def test_a_request_that_comes_in_pieces_gets_the_bytes_of_one_that_comes_whole(server: Server) -> None:
    body = review()
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    for last in (b"\r\n", b"Connection: close\r\n\r\n"):
        whole, pieces = (answer_to(server, *sent) for sent in ([head + last + body], [head, last, body[:9], body[9:]]))
        assert whole.startswith(b"HTTP/1.1 200")
        assert whole == pieces


def answer_to(server: Server, *pieces: bytes) -> bytes:
    """The response to a request in these pieces, without its date."""
    connection = server.connect()
    connection.connect()
    for piece in pieces:
        connection.sock.sendall(piece)
        time.sleep(0.05)
    return re.sub(rb"Date: [^\r]+\r\n", b"", connection.sock.recv(65536))


def test_reviews_over_64_kb_keep_their_connection(server: Server) -> None:
    connection = server.connect()
    connection.connect()
    before = connection.sock.getsockname()
    large = review() + b" " * 100_000
    assert {post(connection, large)[0] for _ in range(40)} == {200}
    assert connection.sock.getsockname() == before


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_the_other_routes_are_there(server: Server, path: str) -> None:
    connection = server.connect()
    connection.request("GET", path)
    assert connection.getresponse().status == 200


def test_a_body_of_10_mb_is_refused_in_words(server: Server) -> None:
    status, body = post(server.connect(), b" " * 10_000_000)
    assert status == 413
    assert has_facts(json.loads(body)["error"], "body", "too large")


def test_http_1_1_is_spoken_and_nothing_below_tls_1_2(server: Server) -> None:
    trust = server.trust()
    trust.set_alpn_protocols(["h2", "http/1.1"])
    best = server.connect(trust=trust)
    best.connect()
    assert (best.sock.selected_alpn_protocol(), best.sock.version()) == ("http/1.1", "TLSv1.3")
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    least = server.connect(trust=trust)
    least.connect()
    assert least.sock.version() == "TLSv1.2"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_pair_swapped_on_disk_is_served_to_new_connections(server: Server, host: str) -> None:
    connection = server.connect(host)
    assert post(connection, review())[0] == 200
    second = server.issue()
    certs.write_folder(server.certs, second)
    assert served(server, host) == second.pair.read_leaf()
    assert post(connection, review())[0] == 200


def test_a_half_written_pair_keeps_the_old_one(server: Server) -> None:
    before, second = certs.read_folder(server.certs), server.issue()
    (server.certs / "tls.key").write_bytes(second.pair.key)
    assert served(server) == before.pair.read_leaf()
    certs.write_folder(server.certs, second)
    assert served(server) == second.pair.read_leaf()
    codes = [line.get("code") for line in server.log if line["level"] == "warning"]
    assert codes == ["unusable-pair"]


def test_an_expired_pair_in_a_folder_of_somebody_elses_is_served_and_told(server: Server) -> None:
    whole, then = server.issue(), datetime.now(UTC) - timedelta(days=30)
    certs.write_folder(server.certs, certs.reissued_pair(whole, ["localhost"], now=then, life=timedelta(days=1)))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        server.connect().connect()
    assert "expired" in [line.get("code") for line in server.log if line["event"] == "certificate"]
    certs.write_folder(server.certs, whole)
    assert served(server) == whole.pair.read_leaf()


def test_plain_http_on_the_tls_port_disturbs_nobody(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 10) as plain:
        plain.sendall(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        with suppress(ConnectionError):
            assert b"200" not in plain.recv(1000)
    assert post(server.connect(), review())[0] == 200


def test_slow_and_silent_clients_disturb_nobody(server: Server, over: ExitStack) -> None:
    silent = [over.enter_context(socket.create_connection(("127.0.0.1", server.port), 10)) for _ in range(16)]
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    for client in silent[:8]:
        client.sendall(hello)
    halves = [server.connect() for _ in range(16)]
    for number, half in enumerate(halves):
        half.connect()
        path = b"/mutate" if number % 2 else b"/validate"
        half.sock.sendall(
            b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{"[: None if number % 3 else 20]
        )
    began = time.monotonic()
    assert post(server.connect(), review())[0] == 200
    probe = server.connect()
    probe.request("GET", "/healthz")
    assert probe.getresponse().status == 200
    assert time.monotonic() - began < 5


def test_a_body_that_stops_half_way_is_refused_when_its_caller_has_given_up(server: Server) -> None:
    connection = server.connect()
    connection.putrequest("POST", "/mutate?timeout=300ms")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", "99")
    connection.endheaders(b"{")
    assert connection.getresponse().status == 408


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_a_client_that_leaves_without_its_answer_disturbs_nobody(server: Server, path: str) -> None:
    for _ in range(3):
        leaving = server.connect()
        leaving.request("POST", path, review(), {"Content-Type": "application/json"})
        leaving.close()
    assert post(server.connect(), review(), path)[0] == 200


def test_malformed_http_gets_a_4xx_and_the_next_client_an_answer(server: Server) -> None:
    connection = server.connect()
    connection.connect()
    connection.sock.sendall(b"\x00\x01\x02 nonsense\r\n\r\n")
    assert connection.sock.recv(1000).startswith(b"HTTP/1.1 400")
    assert post(server.connect(), review())[0] == 200


def test_no_line_of_the_log_is_a_traceback(server: Server) -> None:
    assert not [line for line in server.log if "exception" in line or line["level"] == "error"]


def until(said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ready(server: Server) -> int:
    probe = server.connect()
    probe.request("GET", "/readyz")
    status = probe.getresponse().status
    probe.close()
    return status


def test_a_stop_answers_what_is_under_way_and_what_still_comes(tmp_path: Path) -> None:
    with serving(tmp_path, SHUTDOWN_DELAY_SECONDS="2.5") as server:
        connection, checked = server.connect(), list[int]()
        assert post(connection, review())[0] == 200
        slow = threading.Thread(target=lambda: checked.append(post(server.connect(), review(), "/validate")[0]))
        slow.start()
        until(lambda: "checking" in [line["event"] for line in server.log])
        server.stop()
        until(lambda: ready(server) == 503)
        assert post(connection, review())[0] == 200
        assert post(server.connect(), review())[0] == 200
        slow.join(30)
        assert checked == [200]
        assert server.process.wait(30) == 0
        assert server.log[-1]["event"] == "closed"


def test_a_kept_connection_does_not_hold_the_process_for_ever(tmp_path: Path) -> None:
    with serving(tmp_path, SHUTDOWN_DELAY_SECONDS="0", GRACEFUL_TIMEOUT_SECONDS="8") as server:
        idle = server.connect()
        assert post(idle, review())[0] == 200
        server.stop()
        assert server.process.wait(30) == 0
        assert server.log[-1]["event"] == "closed"
        assert not [line for line in server.log if line["level"] == "error"]


def test_an_interrupt_stops_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, SHUTDOWN_DELAY_SECONDS="60", GRACEFUL_TIMEOUT_SECONDS="90") as server:
        server.stop(signal.SIGINT)
        server.process.wait(30)
