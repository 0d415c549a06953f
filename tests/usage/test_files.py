"""Usage from files."""

import pytest

from trimtab.sketch.book import Book, Container
from trimtab.usage.files import Rows, csv_rows, moment, number, parquet_rows
from trimtab.usage.owners import Owners
from trimtab.usage.series import Series
from trimtab.usage.take import take

MI = 1 << 20
NAMED = """\
timestamp,namespace,pod,container,cpu,memory
2026-01-05T00:05:00Z,shop,web-7d4b9c6f5d-x2x4k,app,300m,129Mi
2026-01-05T00:00:00Z,shop,web-7d4b9c6f5d-x2x4k,app,250m,128Mi
2026-01-05T00:00:00Z,shop,web-7d4b9c6f5d-zzzzz,app,1,
"""


def series(text: str) -> list[Series]:
    found = csv_rows("usage.csv", text.encode())
    assert not found.mistakes
    return list(found.series())


def test_a_csv_has_a_series_for_every_resource_of_every_pod() -> None:
    found = {(s.pod[-5:], s.resource): (list(s.times), list(s.values)) for s in series(NAMED)}
    at = 1767571200
    assert found["x2x4k", "cpu"] == ([at, at + 300], [0.25, 0.3])
    assert found["x2x4k", "memory"] == ([at, at + 300], [128 * MI, 129 * MI])
    assert ("zzzzz", "memory") not in found


def test_pods_of_one_workload_are_one_container() -> None:
    book = Book()
    take(book, series(NAMED), Owners())
    assert book.containers() == [Container("shop", "Deployment", "web", "app")]
    assert book.window(book.containers()[0], "cpu").whole().total == 3


def test_the_workload_may_be_named() -> None:
    found = series("time;ns;workload;container;cores\n2026-01-05 00:00;shop;Rollout/web;app;0.5\n")
    book = Book()
    take(book, found, Owners())
    assert book.containers() == [Container("shop", "Rollout", "web", "app")]


@pytest.mark.parametrize(("value", "resource"), [("0.25", "cpu"), ("134217728", "memory")])
def test_a_bare_series_tells_its_resource_by_its_size(value: str, resource: str) -> None:
    for text in (f"2026-01-05T00:00:00,{value}\n", f"timestamp,value\n2026-01-05T00:00:00,{value}\n"):
        (found,) = series(text)
        assert (found.resource, found.workload) == (resource, "Series/usage")


def test_a_counter_in_a_csv_is_read_as_its_rate() -> None:
    (found,) = series("timestamp,container,cpu_seconds_total\n1767571200,app,10\n1767571260,app,40\n")
    assert (list(found.times), list(found.values), found.resource) == ([1767571260], [0.5], "cpu")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("2026-01-05T00:00:00Z", 1767571200), ("2026-01-05T01:00:00+01:00", 1767571200), ("2026-01-05", 1767571200),
     ("1767571200", 1767571200), ("1767571200000", 1767571200), ("noon", None), ("", None), ("nan", None)],
)  # fmt: skip
def test_times_are_read_as_people_write_them(written: str, seconds: int | None) -> None:
    assert moment(written) == seconds


@pytest.mark.parametrize(
    ("written", "value"), [("250m", 0.25), ("12345n", 0.000012345), ("128Mi", 128 * MI), (0.5, 0.5), ("lots", None)]
)
def test_amounts_are_quantities(written: object, value: float | None) -> None:
    assert number(written) == value


def told(found: Rows) -> str:
    return "\n".join(map(str, found.mistakes))


def test_mistakes_have_lines_and_the_rest_is_read() -> None:
    found = csv_rows("usage.csv", b"timestamp,cpu\nnoon,1\n1767571200,lots\n1767571260,1\n")
    assert told(found).startswith("usage.csv:2: timestamp: expected a time")
    assert "usage.csv:3: cpu: expected a quantity" in told(found)
    assert len(list(found.series())) == 1


def test_a_file_without_columns_of_ours_is_named() -> None:
    found = csv_rows("usage.csv", b"timestamp,cpuu\n1,2\n")
    assert "did you mean 'cpu'?" in told(found)
    assert "UTF-8" in told(csv_rows("usage.csv", b"\xff\xfe\x00"))


def test_parquet_without_its_library_is_a_mistake_that_says_what_to_install() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        assert "trimtab[parquet]" in told(parquet_rows("usage.parquet", b"PAR1"))
        return
    assert told(parquet_rows("usage.parquet", b"PAR1"))
