"""The compactor asks for the use of pods that request nothing, and for no other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.recommending import kubeconfig
from tests.cluster_of import cluster, pod
from tests.usage.fake_prometheus import Answer, Asked, serving
from trimtab.cluster.pod import PodInfo
from trimtab.compactor.use_reader import MAX_AGE_SECONDS, RETRY_SECONDS, UseReader
from trimtab.kube.client import connect_to_cluster
from trimtab.usage.metrics_api import READ_INTERVAL_SECONDS

OWNER = ("default", "ReplicaSet", "web")
BARE: tuple[PodInfo, ...] = cluster(pod("web-0", "a", ""), pod("web-1", "a", "")).pods
SIZED: tuple[PodInfo, ...] = cluster(pod("web-0", "a", "1", "1Gi")).pods


class Metrics:
    """A metrics API whose answer and clock the test sets."""

    def __init__(self) -> None:
        self.cpu: str | None = "700m"
        """What web-1 uses; None: the API is not served."""
        self.asked = 0
        self.now = 0.0

    def answer(self, asked: Asked) -> Answer:
        self.asked += 1
        if self.cpu is None:
            return 404, {"kind": "Status", "reason": "NotFound", "message": "not served"}
        items = [
            {
                "metadata": {"name": name, "namespace": "default"},
                "timestamp": "2026-01-02T00:00:00Z",
                "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "1Mi"}}],
            }
            for name, cpu in (("web-0", "5m"), ("web-1", self.cpu))
        ]
        return 200, {"kind": "PodMetricsList", "items": items}


@contextmanager
def reading(folder: Path, metrics: Metrics) -> Iterator[UseReader]:
    with serving(metrics.answer) as server:
        client = connect_to_cluster(str(kubeconfig(folder, server.url)), None)
        try:
            yield UseReader(client, lambda: metrics.now)
        finally:
            client.close()


def test_the_largest_use_of_an_owners_pods_is_read_once_a_minute(tmp_path: Path) -> None:
    metrics = Metrics()
    with reading(tmp_path, metrics) as reader:
        assert reader.read_use(BARE) == {OWNER: {"cpu": 700, "memory": 1 << 20}}
        metrics.cpu = "900m"
        assert reader.read_use(BARE)[OWNER]["cpu"] == 700
        metrics.now = READ_INTERVAL_SECONDS
        assert reader.read_use(BARE)[OWNER]["cpu"] == 900
    assert metrics.asked == 2


def test_where_every_pod_has_requests_nobody_is_asked(tmp_path: Path) -> None:
    metrics = Metrics()
    with reading(tmp_path, metrics) as reader:
        assert reader.read_use(SIZED) == {}
    assert metrics.asked == 0


def test_an_answer_counts_for_a_while_where_no_newer_one_comes(tmp_path: Path) -> None:
    metrics = Metrics()
    with reading(tmp_path, metrics) as reader:
        reader.read_use(BARE)
        metrics.cpu, metrics.now = None, READ_INTERVAL_SECONDS
        assert reader.read_use(BARE)[OWNER]["cpu"] == 700
        metrics.now = MAX_AGE_SECONDS + 1
        assert reader.read_use(BARE) == {}


def test_without_a_metrics_api_it_is_seldom_asked_again(tmp_path: Path) -> None:
    metrics = Metrics()
    metrics.cpu = None
    with reading(tmp_path, metrics) as reader:
        assert reader.read_use(BARE) == {}
        metrics.now = READ_INTERVAL_SECONDS
        assert (reader.read_use(BARE), metrics.asked) == ({}, 1)
        metrics.cpu, metrics.now = "1", RETRY_SECONDS
        assert reader.read_use(BARE)[OWNER]["cpu"] == 1000
