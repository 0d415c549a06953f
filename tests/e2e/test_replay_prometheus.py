"""`trimtab replay --prometheus` with the real Prometheus, and series as kube-state-metrics has them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.autoscaling.replay.simulated_captures import record_alone
from tests.autoscaling.replay.simulated_scrapes import record_scrapes, write_open_metrics
from tests.e2e.real_prometheus import missing, serving_file
from trimtab.autoscaling.churn.churn_cluster import EPOCH
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cluster.timestamps import format_timestamp
from trimtab.inputs.capture_series import SeriesFolder

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

CHURN = draw_churn(ChurnOptions(hours=2, cores=60, seed=2), generate_shapes())
BEGIN, EVERY = 300, 60


def replay(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "trimtab", "replay", *words, "--preset", "keen", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def ask_prometheus(url: str) -> tuple[str, ...]:
    return "--prometheus", url, "--now", format_timestamp(EPOCH + CHURN.seconds), "--hours", "2"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    write_open_metrics(folder / "metrics.txt", record_scrapes(CHURN, BEGIN, 30))
    with serving_file(folder, folder / "metrics.txt") as address:
        yield address


def test_prometheus_and_captures_of_the_same_hours_agree(url: str, tmp_path: Path) -> None:
    folder = SeriesFolder(tmp_path, EVERY)
    for at, content in record_alone(CHURN, BEGIN, EVERY):
        folder.append_round(at, content)
    captured, scraped = replay("--captures", str(tmp_path)), replay(*ask_prometheus(url))
    for before, after in zip(captured["variants"], scraped["variants"], strict=True):
        assert after["variant"] == before["variant"]
        assert after["coreHours"] == pytest.approx(before["coreHours"], rel=0.05)
    assert len(scraped["missing"]) > len(captured["missing"])


def test_without_the_labels_of_nodes_it_refuses_and_names_the_flag(tmp_path: Path) -> None:
    write_open_metrics(tmp_path / "metrics.txt", record_scrapes(CHURN, BEGIN, 60, with_node_labels=False))
    with serving_file(tmp_path, tmp_path / "metrics.txt") as address:
        command = [sys.executable, "-m", "trimtab", "replay", *ask_prometheus(address)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 2
    assert "--metric-labels-allowlist" in done.stderr
