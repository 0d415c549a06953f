"""More clients than there is room for: those that ask are answered, those that only sit there make room."""

import asyncio
import itertools
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.server import Server, post, serving
from tests.webhook.worlds import review
from trimtab.runtime.body_budget import BodyBudget, TooManyBodies
from webhook import request_body


def silent(server: Server, count: int) -> list[ssl.SSLSocket]:
    """Connections over TLS that ask for nothing."""
    connections = [server.connect() for _ in range(count)]
    for connection in connections:
        connection.connect()
    return [connection.sock for connection in connections]


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_one_connection_too_many_ends_the_oldest_that_asked_for_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, MAX_CONNECTIONS="8") as server:
        used = server.connect()
        assert post(used, review())[0] == 200
        before = used.sock.getsockname()
        crowd = silent(server, 12)
        assert all(ended(client) for client in crowd[:5])
        assert post(used, review())[0] == 200
        assert used.sock.getsockname() == before
        assert post(server.connect(), review())[0] == 200


def test_who_never_asks_for_anything_sits_there_no_longer_than_a_kept_connection(tmp_path: Path) -> None:
    with serving(tmp_path, KEEPALIVE_SECONDS="1") as server:
        assert [ended(client) for client in silent(server, 2)] == [True, True]


def deaf(client: ssl.SSLSocket, busy: threading.Event) -> None:
    """Ask until sent away, and read none of the answers; `busy` once there are many."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    long = review("u" * 100_000)
    head = f"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(long)}\r\n\r\n"
    with suppress(OSError):
        for number in itertools.count():
            client.sendall(head.encode() + long)
            if number == 20:
                busy.set()


def answered(server: Server) -> bool:
    """Is a newcomer? A moment passes where it is not: answers lie for a second before that counts."""
    try:
        return post(server.connect(), review())[0] == 200
    except (ConnectionError, ssl.SSLError):
        time.sleep(0.2)
        return False


def test_who_reads_none_of_its_answers_makes_room(tmp_path: Path) -> None:
    with serving(tmp_path, MAX_CONNECTIONS="1") as server:
        (client,) = silent(server, 1)
        busy = threading.Event()
        asking = threading.Thread(target=deaf, args=(client, busy), daemon=True)
        asking.start()
        assert busy.wait(60)
        assert any(answered(server) for _ in range(100))
        asking.join()


def until_the_servers_farewell(client: ssl.SSLSocket) -> bytes:
    """All it says; who has read only the beginning is still being answered, and keeps its place."""
    return b"".join(iter(lambda: client.recv(4096), b""))


def test_who_was_answered_for_the_last_time_and_does_not_leave_makes_room(tmp_path: Path) -> None:
    with serving(tmp_path, MAX_CONNECTIONS="1") as server:
        (client,) = silent(server, 1)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert until_the_servers_farewell(client).startswith(b"HTTP/1.1 200")
        assert post(server.connect(), review())[0] == 200
        client.close()


def pieces(*sizes: int) -> request_body.Receive:
    """A body that comes in so many bytes at a time."""
    waiting = [{"type": "http.request", "body": b" " * size, "more_body": True} for size in sizes]
    waiting.append({"type": "http.request", "body": b"", "more_body": False})

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    return receive


def test_a_large_body_for_which_there_is_no_room_is_refused() -> None:
    with pytest.raises(TooManyBodies):
        asyncio.run(request_body.read_body(pieces(60_000, 60_000), 1, BodyBudget(50_000)))


def test_a_small_body_is_read_however_full_it_is() -> None:
    assert asyncio.run(request_body.read_body(pieces(30_000, 30_000), 1, BodyBudget(0))) == b" " * 60_000


@pytest.mark.parametrize("sizes", [(1, 70_000, 70_000), (70_000, 9_000_000), (70_000, 100_000, 100_000)])
def test_the_room_of_a_body_is_free_again_when_it_is_read_or_refused(sizes: tuple[int, ...]) -> None:
    room = BodyBudget(300_000)
    with suppress(TooManyBodies):
        asyncio.run(request_body.read_body(pieces(*sizes), 1, room))
    assert room.available_bytes == 300_000
