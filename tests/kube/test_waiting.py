"""Does a watch end at once, also where the server is frozen?"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.test_client import kubeconfig, pem
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.errors import Unreachable
from trimtab.kube.informers import ClusterInformers

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"


@contextlib.contextmanager
def frozen(folder: Path, said: bytes) -> Iterator[tuple[str, threading.Event]]:
    """A server that freezes after it has said this much; its kubeconfig, and whether somebody waits."""
    pem(folder, "server", pem(folder, "ca", None))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    waited_for, done = threading.Event(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            plain, _ = listener.accept()
            with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as one:
                one.recv(65536)
                one.sendall(said)
                waited_for.set()
                done.wait(30)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield kubeconfig(folder, f"https://127.0.0.1:{listener.getsockname()[1]}", "ca"), waited_for
        done.set()
        thread.join(5)


@pytest.mark.parametrize("said", [b"", HEAD[:20], HEAD, HEAD + b'{"items": ['])
def test_a_watch_of_a_frozen_server_ends_at_once(tmp_path: Path, said: bytes) -> None:
    with frozen(tmp_path, said) as (config, waited_for):
        client = connect_to_cluster(config)
        watch = ClusterInformers(client, ["Node"]).start()
        assert waited_for.wait(30)
        assert watch.stop(within=3), "it would wait for 15 s"
        assert watch.reflectors[0]._thread_id is None
        client.close()


def test_who_does_not_wait_is_not_interrupted(tmp_path: Path) -> None:
    with frozen(tmp_path, HEAD) as (config, waited_for):
        client, raised = connect_to_cluster(config), []

        def ask() -> None:
            with pytest.raises(Unreachable) as result:
                client.get("/x")
            raised.append(result.value)

        client.interrupt_request(threading.get_ident())
        thread = threading.Thread(target=ask)
        thread.start()
        assert waited_for.wait(30)
        client.interrupt_request(threading.get_ident())
        thread.join(0.05)
        assert thread.is_alive()
        until = time.monotonic() + 10
        while thread.is_alive() and time.monotonic() < until:
            client.interrupt_request(thread.ident or 0)  # again: it may just have been between two waits
            thread.join(0.05)
        assert raised
        client.close()
