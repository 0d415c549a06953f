"""What a rotation and a stop cost those who are sending: nothing."""

import http.client
import ssl
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import certs
from tests.webhook.server import Server, post, serving
from tests.webhook.worlds import review


@dataclass(slots=True)
class Tally:
    """What clients saw."""

    answered: int = 0
    lost: list[str] = field(default_factory=list)

    def note(self, status: int) -> None:
        """Count an answer; anything but 200 is a loss."""
        if status == 200:
            self.answered += 1
        else:
            self.lost.append(str(status))


def together(work: list[threading.Thread]) -> None:
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()


def test_two_rotations_under_a_thousand_new_connections_lose_no_review(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        folder, tally = certs.read_folder(server.certs), Tally()
        trust = ssl.create_default_context(cadata=folder.bundle.decode())
        rotations = threading.Thread(target=lambda: rotate(server, folder, tally))
        clients = [threading.Thread(target=lambda: fresh(server, trust, tally, 125)) for _ in range(8)]
        together([rotations, *clients])
        assert (tally.lost, tally.answered) == ([], 1000)
        assert [line["event"] for line in server.log].count("certificate reloaded") >= 2


def rotate(server: Server, folder: certs.CertificateFiles, tally: Tally) -> None:
    """Two new pairs of the same authority, after a third of a thousand others and after two thirds."""
    for days in (1, 2):
        while tally.answered + len(tally.lost) < days * 333:
            time.sleep(0.01)
        now = certs.read_folder(server.certs).pair.read_leaf().not_valid_before_utc
        certs.write_folder(server.certs, certs.renew(folder, ["localhost"], now=now, serial=days))


def fresh(server: Server, trust: ssl.SSLContext, tally: Tally, count: int) -> None:
    """`count` reviews, each over a connection of its own."""
    for _ in range(count):
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=trust)
        try:
            tally.note(post(connection, review())[0])
        except OSError as e:
            tally.lost.append(repr(e))
        finally:
            connection.close()


def test_one_of_two_replicas_stops_under_load_and_no_review_is_lost(tmp_path: Path) -> None:
    with serving(tmp_path / "one", SHUTDOWN_DELAY_SECONDS="2") as one, serving(tmp_path / "two") as two:
        tally, until = Tally(), time.monotonic() + 4
        stopping = threading.Thread(target=lambda: (time.sleep(1), one.stop()))
        clients = [threading.Thread(target=lambda: keeping([one, two], tally, until)) for _ in range(8)]
        together([stopping, *clients])
        assert not tally.lost
        assert tally.answered > 100
        assert one.process.wait(30) == 0


def test_new_connections_leave_no_memory_behind(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        trust = ssl.create_default_context(cadata=certs.read_folder(server.certs).bundle.decode())
        tally = Tally()
        fresh(server, trust, tally, 150)
        before = server.memory
        fresh(server, trust, tally, 400)
        assert not tally.lost
        assert server.memory - before < 15_000_000


def keeping(servers: list[Server], tally: Tally, until: float) -> None:
    """Reviews over one kept connection; to the next replica when a server asks to close it."""
    waiting = list(servers)
    connection = waiting.pop(0).connect()
    while time.monotonic() < until:
        try:
            connection.request("POST", "/mutate", review(), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException) as e:
            tally.lost.append(repr(e))
            return
        tally.note(answer.status)
        if answer.headers.get("Connection") == "close":
            connection = waiting.pop(0).connect()
        time.sleep(0.005)


def test_a_connection_that_asks_for_nothing_is_ended_in_time_and_one_that_asks_is_kept(tmp_path: Path) -> None:
    with serving(tmp_path, KEEPALIVE_SECONDS="2") as server:
        asks, silent = server.connect(), server.connect()
        assert post(silent, review())[0] == 200
        until = time.monotonic() + 2.4
        while time.monotonic() < until:
            assert post(asks, review())[0] == 200
            time.sleep(0.2)
        assert silent.sock.recv(1) == b""
        socket_in_use = asks.sock
        assert (post(asks, review())[0], asks.sock) == (200, socket_in_use)
