"""Kubelets in a few lines that answer /stats/summary and /configz to the API server's node proxy.

The API server refuses to proxy to loopback (`isProxyableHostname`, pkg/registry/core/node/strategy.go, 1.36), so the
pages are at this machine's own address, one port for each node; what is sent there does not leave the machine.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.controlplane.certificates import Authority
from tests.controlplane.cluster import Cluster, NotHere

Page = Mapping[str, Any] | None
"""The JSON of a page; None: 404."""


@dataclass(frozen=True)
class KubeletPages:
    """What the kubelet of one node answers."""

    summary: Callable[[], Page]
    configz: Page = None


@dataclass
class Requests:
    """(node, path with its query) in the order in which they came."""

    asked: list[tuple[str, str]] = field(default_factory=list)


def own_address() -> str:
    """This machine's address that is not loopback. Raises NotHere without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent: connecting a datagram socket looks the route up.
            probe.connect(("192.0.2.1", 9))
            address = str(probe.getsockname()[0])
        except OSError:
            address = "127.0.0.1"
    if address.startswith("127."):
        raise NotHere("needs an address beside loopback: the API server's node proxy refuses loopback")
    return address


@contextmanager
def serving_kubelets(
    cluster: Cluster, pages: Mapping[str, KubeletPages], folder: Path, delay_seconds: float = 0.0
) -> Iterator[Requests]:
    """Each node's pages, after a delay; the nodes' addresses and kubelet ports lead to them from now on."""
    address, requests = own_address(), Requests()
    pair = Authority(folder, "kubelets").server("kubelets", [address])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)

    async def listen(node: str, answers: KubeletPages) -> asyncio.Server:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            requests.asked.append((node, path))
            await asyncio.sleep(delay_seconds)
            summary = answers.summary() if path.startswith("/stats/summary") else answers.configz
            body = json.dumps(summary or {"message": "404 page not found"}).encode()
            status = "200 OK" if summary is not None else "404 Not Found"
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            await writer.drain()
            writer.close()

        return await asyncio.start_server(answer, address, 0, ssl=context)

    ports: dict[str, int] = {}
    listening, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        servers = {node: await listen(node, answers) for node, answers in pages.items()}
        ports.update({node: server.sockets[0].getsockname()[1] for node, server in servers.items()})
        listening.set()
        while not stop.is_set():
            await asyncio.sleep(0.05)
        for server in servers.values():
            server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert listening.wait(30)
        for node, port in ports.items():
            status = {
                "addresses": [{"type": "InternalIP", "address": address}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }
            path = f"/api/v1/nodes/{node}/status"
            cluster.api.request("PATCH", path, {"status": status}, content_type="application/merge-patch+json")
        yield requests
    finally:
        stop.set()
        thread.join(10)
