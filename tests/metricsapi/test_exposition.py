"""Series of a body, read part by part: the cases of other scrapers, and what they get wrong."""

import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest

from trimtab.cluster.reason import Reason
from trimtab.metricsapi.exposition import (
    MAX_BODY_BYTES,
    MAX_LABEL_BYTES,
    MAX_LINES,
    BodyReader,
    ScrapedBody,
    SeriesFilter,
)
from trimtab.metricsapi.reasons import BODY_MALFORMED, BODY_TOO_LARGE, SERIES_MISSING

NAME = "apiserver_request_total"


def read(body: bytes, *filters: SeriesFilter, part: int = 4096) -> ScrapedBody | Reason:
    reader = BodyReader(filters or (SeriesFilter(NAME),))
    for at in range(0, len(body), part):
        if (problem := reader.read_part(body[at : at + part])) is not None:
            return problem
    return reader.finish_body()


def total(body: bytes, *filters: SeriesFilter, part: int = 4096) -> float | str:
    """The sum of the first filter's series, or the code of the reason why there is none."""
    actual_body = read(body, *filters, part=part)
    first = actual_body if isinstance(actual_body, Reason) else actual_body.values[0]
    return first.code.name if isinstance(first, Reason) else sum(first.values())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'apiserver_request_total{code="200"} 5678', 5678),
        (b'apiserver_request_total{code="200"} 15\nother_metric 50\napiserver_request_total{code="201"} 16\n', 31),
        (b'apiserver_request_total{code="200"} -10000000000', -1e10),
        (b'apiserver_request_total{code="200"} 1.0056e4', 10056),
        (b"apiserver_request_total 15", 15),
        (b'apiserver_request_total \t{code="200"} 15', 15),
        (b" \tapiserver_request_total 15\n", 15),
        (b"\n\n  \napiserver_request_total 15\n\n", 15),
        (b'apiserver_request_total{code="200"} 1.5', 1.5),
        (b'apiserver_request_total{code="200"} 15 1712345678901', 15),
        (b'apiserver_request_total{code="200"} 15\r\n', 15),
        (b'apiserver_request_total{path="/a}b",code="200",} 15', 15),
        (b'apiserver_request_total{path="say \\"hi\\" {"} 15', 15),
        (b"# HELP apiserver_request_total apiserver_request_total 9\napiserver_request_total 15", 15),
        (b"apiserver_request_total_x nonsense\napiserver_request_total 15", 15),
        (b'other{about="apiserver_request_total 9"} 1\napiserver_request_total 15', 15),
    ],
)
def test_a_series_is_read_as_prometheus_reads_it(body: bytes, expected: float) -> None:
    assert total(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        b'apiserver_request_total{code="200"} BadValue',
        b'apiserver_request_total{code="200"} 99999999999999999999',
        b'apiserver_request_total{code="200" 15',
        b'apiserver_request_total{code="200"}',
        b"apiserver_request_total",
        b"apiserver_request_total NaN",
        b"apiserver_request_total +Inf",
        b"apiserver_request_total 1_000",
        b"apiserver_request_total\x00 15",
        b"\x1f\x8b\x08\x00\x00\x00apiserver_request_total 15",
        b"apiserver_request_total 15 16 17",
    ],
)
def test_a_line_that_is_no_sample_spoils_the_whole_sum(body: bytes) -> None:
    assert total(b"apiserver_request_total 1\n" + body) == BODY_MALFORMED.name


@pytest.mark.parametrize("body", [b"", b"other_metric 5\n", b"apiserver_request_total_sum 5\n"])
def test_no_series_is_not_zero(body: bytes) -> None:
    assert total(body) == SERIES_MISSING.name


def test_a_rule_takes_only_series_with_its_labels() -> None:
    body = b'apiserver_request_total{code="200",verb="GET"} 15\napiserver_request_total{code="500"} 2\n'
    assert total(body, SeriesFilter(NAME, {"code": "200"})) == 15


def test_a_label_is_compared_as_it_was_before_it_was_escaped() -> None:
    assert total(b'apiserver_request_total{path="a\\\\b\\"c\\n"} 4', SeriesFilter(NAME, {"path": 'a\\b"c\n'})) == 4


def test_rules_of_one_body_do_not_spoil_each_other() -> None:
    body = read(b"good 1\nbad x\n", SeriesFilter("good"), SeriesFilter("bad"))
    assert isinstance(body, ScrapedBody)
    assert [isinstance(value, Reason) for value in body.values] == [False, True]


def test_the_order_of_labels_does_not_make_another_series() -> None:
    first, second = (read(b"apiserver_request_total{%s} 5" % labels) for labels in (b'a="1",b="2"', b'b="2",a="1"'))
    assert isinstance(first, ScrapedBody)
    assert isinstance(second, ScrapedBody)
    assert first.values == second.values


def test_the_start_of_the_process_is_read_where_it_is_exposed() -> None:
    body = read(b"apiserver_request_total 5\nprocess_start_time_seconds 1.76e9\n")
    assert isinstance(body, ScrapedBody)
    assert body.started == 1.76e9


def test_a_body_of_19_megabytes_is_read_and_one_of_21_is_not() -> None:
    line = b'other_metric{code="200"} 5678\n'
    assert total(line * (19_380_000 // len(line)) + b"apiserver_request_total 15", part=1 << 16) == 15
    assert total(line * ((21 << 20) // len(line)) + b"apiserver_request_total 15", part=1 << 20) == BODY_TOO_LARGE.name


def test_a_line_without_an_end_is_given_up() -> None:
    assert total(b'apiserver_request_total{code="' + b"x" * (2 << 20), part=1 << 16) == BODY_TOO_LARGE.name


def test_too_many_series_are_given_up() -> None:
    body = b"".join(b'apiserver_request_total{id="%d"} 1\n' % number for number in range(10_001))
    assert total(body) == BODY_TOO_LARGE.name


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), st.floats(0, 1e12)
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda pair: pair[0],
    ),
    st.integers(1, 64),
)
def test_what_the_client_library_writes_is_read_however_it_arrives(pairs: list[tuple[str, float]], part: int) -> None:
    registry = CollectorRegistry()
    counter = Counter("requests", 'Says {so} "much".', ["path"], registry=registry)
    for path, value in pairs:
        counter.labels(path).inc(value)
    expected = sum(value for _, value in pairs)
    assert total(generate_latest(registry), SeriesFilter("requests_total"), part=part) == pytest.approx(expected)


@given(st.binary(max_size=200), st.integers(1, 64))
def test_no_body_raises(body: bytes, part: int) -> None:
    total(NAME.encode() + body, part=part)


def test_a_compressed_body_is_unpacked_before_it_is_read() -> None:
    assert total(gzip.decompress(gzip.compress(b"apiserver_request_total 15"))) == 15


LINE = b" " * (1 << 20) + NAME.encode() + b" 1\n"


def test_spaces_before_a_name_cost_no_more_than_other_bytes() -> None:
    """Each space was looked at by itself: twenty megabytes of them took seconds, of the one interpreter that scrapes
    every pod."""
    body = (LINE * 20)[: MAX_BODY_BYTES - 20] + b"\n"
    begun = time.thread_time()
    read(body, part=1 << 16)
    assert time.thread_time() - begun < 0.5


@pytest.mark.parametrize(
    "line",
    [b"apiserver_request_total 1\n", b'apiserver_request_total{code="1"} 1\n', b"process_start_time_seconds 1\n"],
)
def test_a_body_of_nothing_but_one_series_is_not_read_to_its_end(line: bytes) -> None:
    assert read(line * (MAX_LINES - 1)) != BODY_TOO_LARGE
    problem = read(line * (MAX_LINES + 1000), SeriesFilter(NAME), SeriesFilter(NAME, {"code": "2"}))
    assert isinstance(problem, Reason)
    assert problem.code is BODY_TOO_LARGE


@pytest.mark.parametrize(
    "line",
    [
        b'apiserver_request_total{path="/"} 3 # {trace_id="7f"} 1 1668808476.29',
        b"apiserver_request_total 3 1668808476.291 # {} 1",
        b"apiserver_request_total 3 1.668808476e9",
        b'apiserver_request_total{path="/"} 3 1668808476 # {trace_id="a\\"}b",span="2"} 0.5',
    ],
)
def test_exemplars_and_fractions_of_seconds_are_read_as_openmetrics_has_them(line: bytes) -> None:
    assert total(line + b"\n# EOF\n") == 3


def test_of_a_series_that_is_there_twice_the_first_counts() -> None:
    assert total(b'apiserver_request_total{code="200"} 3\napiserver_request_total{code="200"} 4\n') == 3


def test_labels_are_parsed_once_however_many_rules_read_the_line() -> None:
    """Twenty rules with labels on one series of many megabytes once took a minute."""
    label = b'text="' + b"x" * 4000 + b'"'
    body = b"".join(b'apiserver_request_total{id="%d",%s} 1\n' % (number, label) for number in range(1000))
    filters = [SeriesFilter(NAME, {"id": str(number)}) for number in range(20)]
    seconds = []
    for count in (1, 20):
        begun = time.thread_time()
        assert isinstance(read(body, *filters[:count]), ScrapedBody)
        seconds.append(time.thread_time() - begun)
    assert seconds[1] < 3 * seconds[0] + 0.05


def test_a_body_with_too_many_bytes_of_labels_is_given_up() -> None:
    line = b'apiserver_request_total{text="' + b"x" * 500_000 + b'"} 1\n'
    body = line * (MAX_LABEL_BYTES // len(line) + 2)
    problem = read(body, SeriesFilter(NAME, {"code": "2"}), part=1 << 16)
    assert isinstance(problem, Reason)
    assert problem.code is BODY_TOO_LARGE
    assert isinstance(read(body, part=1 << 16), ScrapedBody)
