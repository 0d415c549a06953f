"""Usage from files."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.reasons import has_facts
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.usage.files import Rows, csv_rows, parquet_rows, parse_amount, parse_moment
from trimtab.usage.metric_names import Quantity
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series, add_all_series

MI = 1 << 20
NAMED = """\
timestamp,namespace,pod,container,cpu,memory
2026-01-05T00:05:00Z,shop,web-7d4b9c6f5d-x2x4k,app,300m,129Mi
2026-01-05T00:00:00Z,shop,web-7d4b9c6f5d-x2x4k,app,250m,128Mi
2026-01-05T00:00:00Z,shop,web-7d4b9c6f5d-zzzzz,app,1,
"""


def series(text: str) -> list[Series]:
    rows = csv_rows("usage.csv", text.encode())
    assert not rows.mistakes
    return list(rows.iter_series())


def test_a_csv_has_a_series_for_every_resource_of_every_pod() -> None:
    results = {(s.pod[-5:], s.resource): (list(s.times), list(s.values)) for s in series(NAMED)}
    at = 1767571200
    assert results["x2x4k", "cpu"] == ([at, at + 300], [0.25, 0.3])
    assert results["x2x4k", "memory"] == ([at, at + 300], [128 * MI, 129 * MI])
    assert ("zzzzz", "memory") not in results


def test_pods_of_one_workload_are_one_container() -> None:
    book = BatchHistory()
    add_all_series(book, series(NAMED), OwnerIndex())
    assert book.list_containers() == [ContainerKey("shop", "Deployment", "web", "app")]
    assert book.compressed_window(book.list_containers()[0], "cpu").merge_days().total_count == 3


def test_the_workload_may_be_named() -> None:
    actual_series = series("time;ns;workload;container;cores\n2026-01-05 00:00;shop;Rollout/web;app;0.5\n")
    book = BatchHistory()
    add_all_series(book, actual_series, OwnerIndex())
    assert book.list_containers() == [ContainerKey("shop", "Rollout", "web", "app")]


@pytest.mark.parametrize(("value", "resource"), [("250m", "cpu"), ("128Mi", "memory")])
def test_a_bare_series_tells_its_resource_by_its_unit(value: str, resource: str) -> None:
    for text in (f"2026-01-05T00:00:00,{value}\n", f"timestamp,value\n2026-01-05T00:00:00,{value}\n"):
        (actual_series,) = series(text)
        assert (actual_series.resource, actual_series.workload) == (resource, "Series/usage")


@pytest.mark.parametrize("value", ["0.25", "134217728", "1e9"])
def test_the_size_of_a_bare_number_says_nothing_and_the_user_may(value: str) -> None:
    text = f"2026-01-05T00:00:00,{value}\n".encode()
    assert has_facts(told(csv_rows("u.csv", text)), "value", "what the values are")
    assert [one.resource for one in csv_rows("u.csv", text, Quantity.BYTES).iter_series()] in (["memory"], [])


@pytest.mark.parametrize(
    ("column", "word", "resource"),
    [
        ("resource", "Memory", "memory"),
        ("resource", "cpu", "cpu"),
        ("metric", "container_cpu_usage", "cpu"),
        ("__name__", "container_memory_working_set_bytes", "memory"),
    ],
)
def test_a_column_may_say_what_a_value_is(column: str, word: str, resource: str) -> None:
    (actual_series,) = series(f"timestamp,pod,container,{column},value\n2026-01-05,web-0,app,{word},8192\n")
    assert actual_series.resource == resource


def test_values_of_another_metric_are_left_out_by_name() -> None:
    rows = csv_rows("u.csv", b"timestamp,pod,metric,value\n2026-01-05,web-0,container_fs_usage_bytes,9\n")
    assert list(rows.iter_series()) == []
    [note] = rows.dropped_notes()
    assert has_facts(note, "u.csv", "1 value", "container_fs_usage_bytes", "first in line 2")


def test_an_unknown_column_beside_values_without_a_pod_may_be_what_distinguishes_series() -> None:
    assert "expected columns" in told(csv_rows("u.csv", b"Series;Time;Value\nweb-0;2026-01-05;1\n"))


def test_a_counter_in_a_csv_is_read_as_its_rate() -> None:
    (actual_series,) = series("timestamp,container,cpu_seconds_total\n1767571200,app,10\n1767571260,app,40\n")
    assert (list(actual_series.times), list(actual_series.values), actual_series.resource) == (
        [1767571260],
        [0.5],
        "cpu",
    )


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2026-01-05T00:00:00Z", 1767571200),
        ("2026-01-05T01:00:00+01:00", 1767571200),
        ("2026-01-05", 1767571200),
        ("1767571200", 1767571200),
        ("1767571200000", 1767571200),
        ("noon", None),
        ("", None),
        ("nan", None),
        ("20260105", 1767571200),
        (20260105, 1767571200),
        ("20261399", 20261399),
        ("20260230", None),
        ("20260105000000", None),
        ("1767571200000000", None),
    ],
)
def test_times_are_read_as_people_write_them(written: object, seconds: int | None) -> None:
    assert parse_moment(written) == seconds


@pytest.mark.parametrize(
    ("written", "value"), [("250m", 0.25), ("12345n", 0.000012345), ("128Mi", 128 * MI), (0.5, 0.5), ("lots", None)]
)
def test_amounts_are_quantities(written: object, value: float | None) -> None:
    assert parse_amount(written) == value


def told(rows: Rows) -> str:
    return "\n".join(map(str, rows.mistakes))


def test_mistakes_have_lines_and_the_rest_is_read() -> None:
    rows = csv_rows("usage.csv", b"timestamp,cpu\nnoon,1\n1767571200,lots\n1767571260,1\n")
    assert has_facts(told(rows), "usage.csv:2", "timestamp", "a time")
    assert has_facts(told(rows), "usage.csv:3", "cpu", "a quantity")
    assert len(list(rows.iter_series())) == 1


def test_a_file_without_columns_of_ours_is_named() -> None:
    rows = csv_rows("usage.csv", b"timestamp,cpuu\n1,2\n")
    assert "did you mean 'cpu'" in told(rows)
    assert "UTF-8" in told(csv_rows("usage.csv", b"\xff\xfe\x00"))


def test_a_cell_that_is_longer_than_any_is_a_mistake_with_its_line() -> None:
    rows = csv_rows("usage.csv", b"timestamp,cpu\n1767571200,1\n1767571260," + b"1" * 200_000 + b"\n")
    assert told(rows).startswith("usage.csv:3: expected CSV, got")


def test_a_row_with_more_cells_than_columns_is_a_mistake_unless_they_are_empty() -> None:
    rows = csv_rows("usage.csv", b"timestamp,cpu\n1767571200,1,5\n1767571260,2,\n")
    assert has_facts(told(rows), "usage.csv:2", "2 cells", 3)
    assert [list(one.values) for one in rows.iter_series()] == [[2.0]]


def test_what_is_left_out_is_counted_with_its_first_line() -> None:
    text = "timestamp,pod,cpu,memory\n1767571200,a,-1,1Mi\n1767571260,a,NaN,\n1767571320,a,,\n1767571380\n"
    rows = csv_rows("usage.csv", text.encode())
    below_zero, empty = rows.dropped_notes()
    assert told(rows) == ""
    assert has_facts(below_zero, "usage.csv", "2 amounts", "below zero", "first in line 2")
    assert has_facts(empty, "usage.csv", "2 rows", "without an amount", "first in line 4")
    assert csv_rows("usage.csv", NAMED.encode()).dropped_notes() == []


def test_two_columns_need_no_header_and_more_do() -> None:
    (series,) = csv_rows("u.csv", b"2026-01-05;0.25\n2026-01-06;0.5\n", Quantity.CORES).iter_series()
    assert list(series.values) == [0.25, 0.5]
    assert has_facts(told(csv_rows("u.csv", b"2026-01-05;0,25\n")), "a quantity", "0,25")
    mistake = told(csv_rows("u.csv", b"2026-01-05;shop;web-0;0.25\n"))
    assert has_facts(mistake, "u.csv:1", "column names", "2026-01-05;shop;web-0;0.25")


# ── Parquet ──────────────────────────────────────────────────────────────
def parquet(**columns: Any) -> bytes:
    """As pyarrow writes it; skips where that is not installed."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install '.[parquet]'")
    writer, content = pytest.importorskip("pyarrow.parquet"), io.BytesIO()
    writer.write_table(arrow.table(columns), content)
    return content.getvalue()


def named(count: int, **amounts: Any) -> bytes:
    moments = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(minutes=5 * n) for n in range(count)]
    names = {"namespace": "shop", "pod": "web-7d4b9c6f5d-x2x4k", "container": "app"}
    return parquet(Timestamp=moments, **{name: [value] * count for name, value in names.items()}, **amounts)


def test_parquet_tells_the_same_as_csv() -> None:
    rows = parquet_rows("usage.parquet", named(2, cpu=[0.25, 0.3], memory=["128Mi", "129Mi"]))
    assert not rows.mistakes
    in_csv = series("\n".join(sorted(NAMED.splitlines()[:3], key=lambda line: (line[0] != "t", line))))
    assert list(rows.iter_series()) == in_csv


def test_parquet_knows_moments_as_numbers_and_amounts_that_are_missing() -> None:
    at = 1767571200
    for moments in ([at, at + 300], [at * 1000, (at + 300) * 1000], [float(at), float(at + 300)]):
        content = parquet(timestamp=moments, pod=["web-0"] * 2, cpu=[None, 0.5], memory=[float("nan"), 2.0**20])
        results = {
            s.resource: (list(s.times), list(s.values)) for s in parquet_rows("u.parquet", content).iter_series()
        }
        assert results == {"cpu": ([at + 300], [0.5]), "memory": ([at + 300], [2.0**20])}


def test_parquet_of_many_rows_is_read_in_parts() -> None:
    (series,) = parquet_rows("usage.parquet", named(25_000, cpu=[0.1] * 25_000)).iter_series()
    assert (len(series.times), series.times[-1] - series.times[0]) == (25_000, 24_999 * 300)


def test_parquet_of_something_else_names_its_columns() -> None:
    assert "columns timestamp and cpu" in told(parquet_rows("x.parquet", parquet(when=[1], what=[2.0])))


def test_parquet_that_is_cut_short_is_a_mistake() -> None:
    content = named(100, cpu=[0.1] * 100)
    assert "expected Parquet" in told(parquet_rows("usage.parquet", content[: len(content) // 2]))


def test_parquet_without_its_library_is_a_mistake_that_says_what_to_install() -> None:
    with without("pyarrow"):
        assert has_facts(told(parquet_rows("usage.parquet", b"PAR1")), "pip install '.[parquet]'")


@contextmanager
def without(library: str) -> Iterator[None]:
    """As if it were not installed: None in the table of modules is how Python says so."""
    holdings = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == library}
    sys.modules[library] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[library]
        sys.modules.update(holdings)


@pytest.mark.parametrize(
    ("header", "meant"), [("cpu_usage", "cpu"), ("container_name", "container"), ("memroy", "memory")]
)
def test_a_column_that_is_nearly_one_is_named(header: str, meant: str) -> None:
    (mistake,) = csv_rows("usage.csv", f"timestamp,{header}\n2026-01-05,1\n".encode()).mistakes
    assert f"did you mean {meant!r}" in mistake.todo
    assert has_facts(mistake.todo, "columns", "timestamp, namespace", "pod, container")
