"""Does every request end within its deadline, wherever the silence is?"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest
from kubernetes.client import ApiClient, Configuration

from tests.kube.test_client import kubeconfig, pem
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.errors import Unreachable


def test_slow_in_the_handshake_in_the_head_and_in_the_body_is_still_one_deadline(tmp_path: Path) -> None:
    pem(tmp_path, "server", pem(tmp_path, "ca", None))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            plain, _ = listener.accept()
            time.sleep(1)
            with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as one:
                one.recv(65536)
                time.sleep(1)
                one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
                done.wait(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = connect_to_cluster(kubeconfig(tmp_path, f"https://127.0.0.1:{listener.getsockname()[1]}", "ca"))
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="evict: "):
            client.request("POST", "/x", deadline=2.4, body={}, doing="evict")
        took = time.monotonic() - begun
        done.set()
        thread.join(30)
        client.close()
    assert took < 4, "each silence for itself would be within the deadline: 4.4 s"


def test_what_comes_late_but_in_time_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            one, _ = listener.accept()
            with one:
                one.recv(65536)
                one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nearly")
                time.sleep(1.6)
                one.sendall(b" late")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        configuration = Configuration(host=f"http://127.0.0.1:{listener.getsockname()[1]}", retries=False)  # type: ignore[arg-type]
        client = Client(ApiClient(configuration))
        assert client.request("GET", "/x", deadline=3) == b"early late"
        thread.join(30)
        client.close()
