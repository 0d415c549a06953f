"""One usage, whatever form its file has; and what is no usage is refused by name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reasons import has_facts
from trimtab.usage.metric_names import Quantity
from trimtab.usage.usage_file import UsageFile

START = 20_000 * 86400
STEP = 60
NAME = "container_cpu_usage_seconds_total"
APP = {"namespace": "shop", "pod": "web-7d4b9c6f5d-x2x4k", "container": "app"}
Usage = list[tuple[str, str, list[int], list[float]]]


def matrix(points: list[tuple[int, float]], **labels: str) -> dict[str, Any]:
    return {"metric": {**APP, **labels}, "values": [[at, repr(value)] for at, value in points]}


def answer(*series: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}, **more}).encode()


def exported(points: list[tuple[int, float]], **labels: str) -> bytes:
    line = {
        "metric": {**APP, **labels},
        "values": [value for _, value in points],
        "timestamps": [at * 1000 for at, _ in points],
    }
    return json.dumps(line).encode() + b"\n"


def csv(column: str, points: list[tuple[int, float]]) -> bytes:
    rows = [f"{at},{APP['namespace']},{APP['pod']},{APP['container']},{value!r}" for at, value in points]
    return f"timestamp,namespace,pod,container,{column}\n".encode() + "\n".join(rows).encode()


def read(content: bytes, stated: Quantity | None = None) -> Usage:
    file = UsageFile("usage", content, stated)
    usage = [
        (one.container, one.resource, list(one.times), [round(v, 6) for v in one.values]) for one in file.iter_series()
    ]
    assert not file.mistakes
    return usage


def refusal(content: bytes, stated: Quantity | None = None) -> str:
    file = UsageFile("usage", content, stated)
    assert list(file.iter_series()) == []
    return "\n".join(map(str, file.mistakes))


@given(st.lists(st.integers(0, 4000).map(lambda milli: milli / 1000), min_size=2, max_size=30), st.booleans())
def test_one_usage_of_cpu_is_the_same_as_counter_and_as_rate_in_every_form(cores: list[float], restarts: bool) -> None:
    times = [START + (n + 1) * STEP for n in range(len(cores))]
    rates = list(zip(times, cores, strict=True))
    seconds, counter = 50.0, [(START, 50.0)]
    for at, value in rates:
        is_restart = restarts and at == times[-1] and value * STEP < seconds
        seconds = value * STEP + (0 if is_restart else seconds)
        counter.append((at, seconds))
    expected = [("app", "cpu", times, [round(value, 6) for value in cores])]
    for content in (
        answer(matrix(rates, __name__="container_cpu_usage")),
        answer(matrix(counter, __name__=NAME)),
        json.dumps([matrix(counter, __name__=NAME)]).encode(),
        json.dumps(matrix(counter, __name__=NAME)).encode(),
        exported(counter, __name__=NAME),
        exported(rates, __name__=f"pod_container:{NAME}:sum_irate"),
        csv("cpu", rates),
        csv("cpu_seconds_total", counter),
    ):
        assert read(content) == expected
    assert read(answer(matrix(rates)), Quantity.CORES) == expected


@given(st.lists(st.integers(4096, 1 << 40).map(float), min_size=1, max_size=30))
def test_one_usage_of_memory_is_the_same_in_every_form(amounts: list[float]) -> None:
    points = [(START + n * STEP, value) for n, value in enumerate(amounts)]
    expected = [("app", "memory", [at for at, _ in points], amounts)]
    name = "container_memory_working_set_bytes"
    for content in (answer(matrix(points, __name__=name)), exported(points, __name__=name), csv("memory", points)):
        assert read(content) == expected
    assert read(answer(matrix(points)), Quantity.BYTES) == expected


def test_a_series_without_a_name_is_never_guessed() -> None:
    points = [(START, 0.3), (START + STEP, 0.4)]
    for content in (answer(matrix(points)), exported(points), exported([(START, 3e9)])):
        assert "--quantity cores|cpu-seconds|bytes" in refusal(content)


def test_whole_pods_pause_containers_and_single_cpus_are_no_containers() -> None:
    points = [(START, 0.3), (START + STEP, 0.4)]
    name = "container_cpu_usage"
    others = [
        matrix(points, __name__=name, **labels)
        for labels in ({"container": ""}, {"container": "POD"}, {"cpu": "cpu00"})
    ]
    file = UsageFile("usage", answer(matrix(points, __name__=name), *others))
    assert [one.container for one in file.iter_series()] == ["app"]
    pods, processors = file.notes
    assert has_facts(pods, "usage", "2 series", "whole pods", "left out")
    assert has_facts(processors, "usage", "1 series", "single CPUs", "left out")
    assert "keep the label container" in refusal(answer(*others[:2]))


def test_rows_of_whole_pods_are_no_containers() -> None:
    content = b"timestamp,pod,container,cpu\n2026-01-05,web-0,,1\n2026-01-05,web-0,POD,1\n2026-01-05,web-0,app,1\n"
    assert [container for container, _, _, _ in read(content)] == ["app"]


def test_other_metrics_are_refused_alone_and_left_out_beside_usage() -> None:
    other = matrix([(START, 5.0)], __name__="http_requests_total")
    assert "got http_requests_total" in refusal(answer(other))
    file = UsageFile("usage", answer(other, matrix([(START, 0.5)], __name__="container_cpu_usage")))
    assert (len(list(file.iter_series())), file.mistakes) == (1, [])
    [note] = file.notes
    assert has_facts(note, "usage", "left out", "http_requests_total")


@pytest.mark.parametrize("stated", list(Quantity))
def test_what_the_user_states_changes_no_name(stated: Quantity) -> None:
    points = [(START + n * STEP, 1e6 + 30 * n) for n in range(3)]
    assert read(answer(matrix(points, __name__=NAME)), stated)[0][3] == [0.5, 0.5]
    if stated is not Quantity.CPU_SECONDS:
        assert "requests_total" in refusal(answer(matrix(points, __name__="requests_total")), stated)


def ramp(first: float, step: float, count: int = 30) -> list[tuple[int, float]]:
    return [(START + n * STEP, first + n * step) for n in range(count)]


@pytest.mark.parametrize(
    ("quantity", "points"),
    [
        (Quantity.CORES, ramp(1_500_000, 20)),
        (Quantity.CORES, ramp(2000, 20)),
        (Quantity.BYTES, ramp(0.1, 0.001)),
        (Quantity.BYTES, ramp(2.0**47, 2.0**40)),
        (Quantity.CPU_SECONDS, [(START + n * STEP, n % 3 / 10) for n in range(30)]),
        (Quantity.CPU_SECONDS, [(START + n * 7200, float(n)) for n in range(30)]),
    ],
)
def test_readings_that_cannot_be_what_is_said_are_refused(quantity: Quantity, points: list[tuple[int, float]]) -> None:
    assert f"expected usage in {quantity}" in refusal(answer(matrix(points)), quantity)
    column = {Quantity.CORES: "cpu", Quantity.BYTES: "memory", Quantity.CPU_SECONDS: "cpu_seconds_total"}[quantity]
    assert f"expected usage in {quantity}" in refusal(csv(column, points))


def test_usage_that_grows_within_a_machine_is_read() -> None:
    assert len(read(answer(matrix(ramp(0.1, 0.5))), Quantity.CORES)) == 1
    assert len(read(answer(matrix(ramp(1e9, 1e8))), Quantity.BYTES)) == 1


def test_an_answer_of_one_moment_is_read() -> None:
    one = {"metric": {**APP, "__name__": "container_cpu_usage"}, "value": [START, "0.3"]}
    content = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [one]}}).encode()
    assert read(content) == [("app", "cpu", [START], [0.3])]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "of the type scalar"),
        (b'{"status":"success","data":{"resultType":"string","result":[1,"x"]}}', "of the type string"),
        (b'{"status":"success","data":{"resultType":"streams","result":[]}}', "of the type streams"),
        (b'{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}', "a partial answer"),
        (b'{"status":"error","errorType":"bad_data","error":"no"}', "no"),
        (b'{"results":{"A":{"frames":[]}}}', "Grafana"),
        (b'{"node":{},"pods":[]}', "a summary of a kubelet"),
        (b'{"a":1}', "JSON without series"),
        (b"[1, 2]", "JSON without series"),
        (b"<html>", "an HTML page"),
        (b"# HELP up Up.\n# TYPE up gauge\nup 1\n", "a page of metrics"),
        (b'up{job="a"} 1 1767571200000\n', "a page of metrics"),
        (b'up{job="a"} => 1 @[1767571200]\n', "the text that promtool prints"),
        (b"NAMESPACE   NAME   CPU(cores)   MEMORY(bytes)\nshop  web-0  1m  2Mi\n", "the output of kubectl top"),
        (b'"Time","{pod=""web-0""}"\n2026-01-05,1\n', "a table of Grafana"),
    ],
)
def test_a_form_that_is_not_read_has_a_name(content: bytes, words: str) -> None:
    assert words in refusal(content)


def test_a_warning_of_the_server_is_a_note() -> None:
    points = [(START, 0.3)]
    file = UsageFile("usage", answer(matrix(points, __name__="container_cpu_usage"), warnings=["a store is down"]))
    assert len(list(file.iter_series())) == 1
    [note] = file.notes
    assert has_facts(note, "usage", "warning", "a store is down")


def test_a_line_of_victoriametrics_without_a_time_for_each_value_is_refused() -> None:
    line = json.dumps({"metric": {**APP, "__name__": NAME}, "values": [1, 2], "timestamps": [1]}).encode()
    assert has_facts(refusal(line), "2 values", "1 timestamps")


def test_values_that_are_missing_in_an_export_are_counted() -> None:
    line = {
        "metric": {**APP, "__name__": "container_cpu_usage"},
        "values": [None, 0.5, "Infinity"],
        "timestamps": [START * 1000, (START + 60) * 1000, (START + 120) * 1000],
    }
    (series,) = UsageFile("usage", json.dumps(line).encode()).iter_series()
    assert (list(series.values), series.dropped_values) == ([0.5], 2)
