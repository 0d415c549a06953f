"""The moment, and what VPAs wrote down."""

import json

import pytest

from tests.reasons import has_facts
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.kube.errors import InvalidResponse
from trimtab.usage.metrics_api import decode_pod_metrics
from trimtab.usage.vpa_checkpoints import CheckpointSource

AT = 1767571200


def test_metrics_servers_suffixes_are_read() -> None:
    usage = {"cpu": "12345678n", "memory": "131072Ki"}
    pod = {
        "metadata": {"name": "web-0", "namespace": "shop"},
        "timestamp": "2026-01-05T00:00:00Z",
        "containers": [{"name": "app", "usage": usage}, {"name": "odd", "usage": {"cpu": "lots"}}],
    }
    objects = list(decode_pod_metrics(json.dumps({"items": [pod]}).encode()))
    assert [(s.container, s.resource, s.times[0], s.values[0]) for s in objects] == [
        ("app", "cpu", AT, 0.012345678),
        ("app", "memory", AT, 134217728.0),
    ]


def test_lists_that_go_writes_as_null_are_empty() -> None:
    assert list(decode_pod_metrics(b'{"items": null}')) == []
    pod = {"metadata": {"name": "a", "namespace": "b"}, "timestamp": "2026-01-05T00:00:00Z", "containers": None}
    assert list(decode_pod_metrics(json.dumps({"items": [pod]}).encode())) == []


def test_what_makes_no_sense_is_told() -> None:
    with pytest.raises(InvalidResponse):
        list(decode_pod_metrics(b"{"))


CHECKPOINT = """
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscalerCheckpoint
metadata: {name: web-app, namespace: shop}
spec: {vpaObjectName: web-vpa, containerName: app}
status:
  version: v3
  cpuHistogram: {referenceTimestamp: "2026-01-06T00:00:00Z", totalWeight: 10, bucketWeights: {"8": 10000, "36": 1000}}
  memoryHistogram: {totalWeight: 1, bucketWeights: {"50": 10000}}
  firstSampleStart: "2026-01-01T00:00:00Z"
  lastSampleStart: "2026-01-05T00:00:00Z"
  totalSamplesCount: 1100
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web-vpa, namespace: shop}
spec: {targetRef: {kind: StatefulSet, name: web}}
"""


def test_a_checkpoint_gives_cpu_and_no_memory() -> None:
    book, checkpoint_source = BatchHistory(), CheckpointSource.from_file("vpa.yaml", CHECKPOINT.encode())
    checkpoint_source.add_to_batch(book)
    it = ContainerKey("shop", "StatefulSet", "web", "app")
    assert (checkpoint_source.mistakes, book.list_containers()) == ([], [it])
    low, high = book.compressed_window(it, "cpu").compute_percentiles((0.5, 0.95))
    assert (low, high) == (pytest.approx(0.102, rel=0.1), pytest.approx(1.0, rel=0.1))
    assert book.compressed_window(it, "memory").merge_days().total_count == 0
    assert book.compressed_window(it, "cpu").observed_seconds == pytest.approx(
        1100 * 60, abs=7200
    )  # four days, of which it saw so much


def test_a_checkpoint_that_a_vpa_would_refuse_is_a_mistake() -> None:
    book, checkpoint_source = (
        BatchHistory(),
        CheckpointSource.from_file("vpa.yaml", CHECKPOINT.replace("v3", "v2").encode()),
    )
    checkpoint_source.add_to_batch(book)
    assert "has the version v2" in str(checkpoint_source.mistakes[0])


def test_a_file_without_checkpoints_is_a_mistake() -> None:
    assert "VPA checkpoints" in str(CheckpointSource.from_file("pod.yaml", b"kind: Pod\napiVersion: v1\n").mistakes[0])


RECOMMENDS = """
apiVersion: v1
kind: List
items:
- apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web-vpa, namespace: shop}
  spec: {targetRef: {kind: StatefulSet, name: web}, updatePolicy: {updateMode: "Off"}}
  status:
    recommendation:
      containerRecommendations:
      - {containerName: app, target: {cpu: 250m, memory: "314572800"}, upperBound: {cpu: 100T}}
      - {containerName: odd, target: {cpu: lots}}
"""


def test_a_recommendation_is_advice_and_no_usage() -> None:
    book, checkpoint_source = BatchHistory(), CheckpointSource.from_file("vpa.yaml", RECOMMENDS.encode())
    checkpoint_source.add_to_batch(book)
    app = ContainerKey("shop", "StatefulSet", "web", "app")
    assert (checkpoint_source.mistakes, book.list_containers(), book.dense_windows) == ([], [app], {})
    assert book.vpa_recommendations == {
        (app, "cpu"): VpaRecommendation("web-vpa", 250),
        (app, "memory"): VpaRecommendation("web-vpa", 300 << 20),
    }


def test_vpas_that_recommend_nothing_yet_are_a_mistake() -> None:
    silent = RECOMMENDS[: RECOMMENDS.index("  status:")]
    assert has_facts(str(CheckpointSource.from_file("vpa.yaml", silent.encode()).mistakes[0]), "VPAs", "not recommend")
