"""Cut off while the version it knows is compacted away and the server that kept it in memory is gone."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.controlplane.cluster import Cluster
from tests.e2e.test_watch import KINDS, changes, compact, is_equal, streams
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.informers import ClusterInformers
from trimtab.kube.watch_state import WatchSettings


class Line:
    """Carries bytes to the API server; `cut` until `join`."""

    def __init__(self, to: tuple[str, int]) -> None:
        self.to, self.open, self.pairs = to, True, list[socket.socket]()
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            if not self.open:
                here.close()
                continue
            try:
                there = socket.create_connection(self.to)
            except OSError:
                here.close()
                continue
            self.pairs += [here, there]
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.open = False
        for end in self.pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def join(self) -> None:
        self.open = True


@contextlib.contextmanager
def a_line(cluster: Cluster, folder: Path) -> Iterator[tuple[Line, Path]]:
    server = cluster.api.server
    where = urlsplit(server)
    assert where.hostname is not None
    assert where.port is not None
    line = Line((where.hostname, where.port))
    named = folder / "kubeconfig"
    text = cluster.kubeconfig.read_text()
    named.write_text(text.replace(server, f"https://127.0.0.1:{line.listener.getsockname()[1]}"))
    try:
        yield line, named
    finally:
        line.cut()
        line.listener.close()


def test_a_watch_that_was_cut_off_over_a_compaction_lists_anew_and_is_equal(cluster: Cluster, tmp_path: Path) -> None:
    cluster.needs_own("an etcd to compact")
    direct = connect_to_cluster(str(cluster.kubeconfig))
    with a_line(cluster, tmp_path) as (line, named):
        client = connect_to_cluster(str(named))
        with ClusterInformers(client, KINDS, terms=WatchSettings(page_size=50)) as watch:
            assert watch.wait_until_synced(20)
            cluster.eventually(lambda: streams(watch, True))
            pods = watch.health_by_list()["pods"].lists
            line.cut()
            cluster.eventually(lambda: streams(watch, False))
            changes(cluster, 90)
            compact(cluster)
            cluster.take_down("kube-apiserver", signal.SIGKILL)
            cluster.bring_back("kube-apiserver")
            changes(cluster, 30)
            before = watch.oldest_age()
            assert before is not None
            assert before > 1
            line.join()
            is_equal(cluster, direct, watch, within=60)
            assert watch.health_by_list()["pods"].lists > pods
        client.close()
    direct.close()
