"""`savings` and `compactor history` read the same of a capture as of the live cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.snapshots import told, trimtab
from tests.golden.snapshots import NOW, load_snapshot


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    load_snapshot("pools").write(tmp_path)
    return tmp_path / "cluster.json"


def test_a_capture_has_the_decisions_of_the_compactor(capture: Path) -> None:
    records = told("compactor", "history", "--cluster", capture)["records"]
    assert [record["what"] for record in records] == ["planned", "started", "evicted"]


def test_ages_count_back_from_the_time_of_the_capture(capture: Path) -> None:
    since_then = ("compactor", "history", "--cluster", capture, "--since", "1h", "--now")
    assert len(told(*since_then, NOW)["records"]) == 2
    assert told(*since_then, "2026-02-20T12:00:00Z")["records"] == []


def test_savings_are_read_of_a_capture(capture: Path) -> None:
    report = told("savings", "--cluster", capture, "--now", NOW)
    assert [pool["name"] for pool in report["pools"]] == ["web"]
    assert report["until"] == NOW


def test_what_others_wrote_into_their_namespace_counts_for_nothing(capture: Path) -> None:
    document = json.loads(capture.read_text())
    for item in document["items"]:
        if item["kind"] == "ConfigMap":
            item["metadata"]["namespace"] = "shop"
    capture.write_text(json.dumps(document))
    assert told("compactor", "history", "--cluster", capture)["records"] == []


def test_a_file_has_nothing_new_to_wait_for(capture: Path) -> None:
    result = trimtab("compactor", "history", "--cluster", capture, "--watch")
    assert (result.exit_code, "--watch: expected" in result.stderr) == (2, True)
