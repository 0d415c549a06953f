"""`trimtab recommend --prometheus` with the real Prometheus: a thousand containers, two weeks, the right answers."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import real_prometheus
from tests.e2e.real_prometheus import DAYS, MI, everybody, missing, serving
from trimtab.histogram.histogram import MAX_RELATIVE_ERROR

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

ASKED = ("--now", "2026-01-19T00:00:00Z", "--step", "1800", "--rate", "2h", "--days", str(DAYS))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("prometheus"), everybody()) as url:
        yield url


def recommend(url: str, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "trimtab", "recommend", "--prometheus", url, *ASKED, "-o", "json", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture(scope="module")
def told(prometheus: str) -> dict[str, dict[str, Any]]:
    return {container["workload"]: container for container in recommend(prometheus)["containers"]}


def cores(text: str) -> float:
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def mebibytes(text: str) -> float:
    return float(text[:-2]) * (1024 if text.endswith("Gi") else 1)


def test_every_container_is_found_and_belongs_to_its_deployment(told: dict[str, dict[str, Any]]) -> None:
    assert told.keys() == {one.workload for one in everybody()}
    assert {result["kind"] for result in told.values()} == {"Deployment"}
    assert len({result["namespace"] for result in told.values()}) == 20


def test_cpu_is_told_within_the_error_of_a_sketch(told: dict[str, dict[str, Any]]) -> None:
    for one in everybody():
        cpu = told[one.workload]["cpu"]
        for name, value in {"p5": one.base, "p50": one.base, "p95": 3 * one.base}.items():
            assert cores(cpu[name]) == pytest.approx(value, rel=MAX_RELATIVE_ERROR, abs=0.0011), (one, name, cpu[name])
        # The adaptive rule keeps a little above what two weeks never passed.
        assert 3 * one.base * (1 - MAX_RELATIVE_ERROR) <= cores(cpu["proposed"]) <= 3.6 * one.base + 0.0011, (
            one,
            cpu["proposed"],
        )


def test_memory_is_told_by_its_peaks(told: dict[str, dict[str, Any]]) -> None:
    for one in everybody():
        memory = told[one.workload]["memory"]
        for name, value in {"p50": one.held / MI, "p95": 2 * one.held / MI, "max": 2 * one.held / MI}.items():
            assert mebibytes(memory[name]) == pytest.approx(value, rel=MAX_RELATIVE_ERROR, abs=1.01), (
                one,
                name,
                memory[name],
            )


def test_two_weeks_make_sure(told: dict[str, dict[str, Any]]) -> None:
    assert {result["memory"]["confidence"] for result in told.values()} == {1.0}
    assert all(result["cpu"]["days"] >= DAYS - 0.2 for result in told.values())


def test_a_namespace_alone_is_asked_for_alone(prometheus: str) -> None:
    containers = recommend(prometheus, "--namespace", "team-7")["containers"]
    assert {one["namespace"] for one in containers} == {"team-7"}
    assert len(containers) == real_prometheus.CONTAINERS // 20


def test_half_an_hour_of_history_proposes_nothing(prometheus: str) -> None:
    early = ("--now", "2026-01-05T00:30:00Z", "--days", "1", "--namespace", "team-7", "--step", "1800", "--rate", "2h")
    command = [sys.executable, "-m", "trimtab", "recommend", "--prometheus", prometheus, *early, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    containers = json.loads(done.stdout)["containers"]
    assert containers
    for result in containers:
        assert result["memory"]["missing"]["reason"]["code"] == "insufficient-history"
        assert result["memory"]["proposed"] is None


def test_reading_a_cluster_stays_small(told: dict[str, dict[str, Any]]) -> None:
    assert told
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    assert peak < 600, f"{peak:.0f} MiB"
