"""The requests of a fleet: the same for any division into buckets, files and orders, and those of one process."""

import random
from pathlib import Path

import msgspec
import pytest

from tests.fleet.histories import FIRST_DAY, daily_rows, history_of, write_history
from trimtab.fleet import container_blocks
from trimtab.fleet.container_decisions import DecisionSettings, decide_container
from trimtab.fleet.engine import LocalEngine
from trimtab.fleet.run_decisions import FleetDecisions, decide_fleet
from trimtab.histogram.daily_rows import merge_rows
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.request import CurrentResources, Proposal, SizingSettings, propose_request
from trimtab.sizing.statistics import summarize_usage
from trimtab.usage.daily_store import DailyStore, rows_to_table

NOW = (FIRST_DAY + 14) * DAY
WORKLOADS = [f"w{number}" for number in range(12)]


def settings(location: Path, **more: object) -> DecisionSettings:
    return DecisionSettings(
        location=str(location), bucket_count=1, days=14, now=NOW, sizing=SizingSettings(), rows=100, **more
    )  # type: ignore[arg-type]


def fleet(folder: Path, days: int = 3) -> Path:
    rows = {
        name: [row for workload in WORKLOADS for row in daily_rows(f"{workload}", days, cores=0.1 * place + 0.1)]
        for place, name in enumerate(("east", "west"))
    }
    return write_history(folder, rows)  # type: ignore[arg-type]


def decide(folder: Path, shuffle: int | None = None, **more: object) -> FleetDecisions:
    files = DailyStore(str(folder)).list_days()
    if shuffle is not None:
        random.Random(shuffle).shuffle(files)
    return decide_fleet(LocalEngine(), files, [], settings(folder, **more), lambda _: [])


def encode(fleet_decisions: FleetDecisions) -> bytes:
    return msgspec.msgpack.encode(fleet_decisions.sums, order="sorted")


def test_any_number_of_buckets_and_any_order_of_files_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fleet(tmp_path)
    expected = encode(decide(folder))
    for bytes_per_bucket, seed in ((4000, 1), (900, 2)):
        monkeypatch.setattr(container_blocks, "BYTES_PER_BUCKET", bytes_per_bucket)
        fleet_decisions = decide(folder, seed)
        assert fleet_decisions.bucket_count > 1
        assert encode(fleet_decisions) == expected


def test_rows_of_a_day_in_several_files_add_up(tmp_path: Path) -> None:
    whole = fleet(tmp_path / "whole")
    store, parts = DailyStore(str(whole)), DailyStore(str(tmp_path / "parts"))
    for one in store.list_days():
        rows = list(store.read_rows(one))
        for number in range(2):
            path = one.path.replace("usage.parquet", f"part-{number}.parquet")
            parts.write_table(path, rows_to_table(rows[number::2]))
    whole_bytes, parts_bytes = (encode(decide(Path(one.location))) for one in (store, parts))
    assert whole_bytes == parts_bytes


def test_a_container_is_decided_as_from_a_history_in_one_process(tmp_path: Path) -> None:
    for workload in WORKLOADS[:4]:
        history = history_of(workload)
        (key,) = history.list_containers()
        decision = decide_container("c", key, merge_rows(daily_rows(workload), 14), None, settings(tmp_path))
        for resource, proposed in (("cpu", decision.cpu_proposed), ("memory", decision.memory_proposed)):
            statistics = summarize_usage(resource, history.compressed_window(key, resource), NOW, kind=key.kind)
            alone = propose_request(CurrentResources(resource=resource, request=None, limit=None), statistics)
            assert isinstance(alone, Proposal)
            assert proposed == alone.request


def test_every_decision_is_written_and_written_again_without_a_trace(tmp_path: Path) -> None:
    folder = fleet(tmp_path / "history")
    for _ in range(2):
        decide(folder, output=str(tmp_path / "decisions"))
    (file,) = (tmp_path / "decisions").iterdir()
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(file)
    assert table.num_rows == 2 * len(WORKLOADS)
    assert table.column("cluster").to_pylist() == ["east"] * len(WORKLOADS) + ["west"] * len(WORKLOADS)


def test_a_cluster_with_a_damaged_file_is_left_out_as_a_whole_and_the_rest_is_as_without_it(tmp_path: Path) -> None:
    folder = fleet(tmp_path / "both")
    damaged = next(one for one in DailyStore(str(folder)).list_days() if one.cluster == "west")
    (folder / damaged.path).write_bytes(b"PAR1 and no more")
    fleet_decisions = decide(folder)
    rows = [row for workload in WORKLOADS for row in daily_rows(workload, 3, cores=0.1)]
    alone = decide(write_history(tmp_path / "east", {"east": rows}))
    assert [failure.cluster for failure in fleet_decisions.failures] == ["west"]
    assert damaged.path in fleet_decisions.failures[0].problem
    assert fleet_decisions.sums == alone.sums
