"""Prices from OpenCost's API and from Prometheus: what a node costs an hour; what has no cost is unknown, not free."""

import json
from typing import Any

import pytest

from tests.machines.test_price_file import machine
from trimtab.machines.price_answers import is_answer, read_price_answer

REGION = {"label_topology_kubernetes_io_region": "eu-west-1"}


def asset(name: str = "a", cost: Any = 2.4, minutes: Any = 1440, **more: Any) -> dict[str, Any]:
    return {
        "type": "Node",
        "properties": {"name": name, "cluster": "one"},
        "labels": REGION,
        "minutes": minutes,
        "nodeType": "m5.large",
        "totalCost": cost,
        "preemptible": 0,
        **more,
    }


def series(amount: str = "0.1", **labels: str) -> dict[str, Any]:
    return {"metric": {"node": "a", **labels}, "value": [1790000000, amount]}


def assets(*result: Any) -> bytes:
    return json.dumps({"code": 200, "data": dict(enumerate(result))}).encode()


def vector(*result: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        assets(asset()),
        json.dumps({"data": [{"x": asset()}]}).encode(),
        vector(series()),
        vector({"metric": {"exported_node": "a", "node": ""}, "values": [[1, "0.3"], [2, "0.1"]]}),
        vector({"metric": {"instance": "A"}, "value": [1, "0.1"]}),
    ],
)
def test_a_node_costs_what_the_answer_says_for_an_hour(answer: bytes) -> None:
    price_file, mistakes = read_price_answer("answer", answer)
    assert (price_file.price_of(machine()), mistakes) == (100_000, [])


@pytest.mark.parametrize(
    "answer",
    [
        assets(asset("b"), asset("c", cost=7.2)),
        vector(
            series("0.1", node="b", instance_type="m5.large", region="eu-west-1"),
            series("0.3", node="c", instance_type="m5.large", region="eu-west-1"),
        ),
    ],
)
def test_a_type_costs_the_mean_of_its_nodes_in_the_region(answer: bytes) -> None:
    price_file, _ = read_price_answer("answer", answer)
    assert price_file.price_of(machine()) == 200_000
    assert price_file.price_of(machine(region="us-east-1")) is None


def test_spot_nodes_do_not_count_in_the_price_of_their_type() -> None:
    price_file, _ = read_price_answer("answer", assets(asset("b"), asset("c", cost=0.24, preemptible=1)))
    assert price_file.price_of(machine()) == 100_000
    assert price_file.price_of(machine("c")) == 10_000


@pytest.mark.parametrize(
    "answer",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"data": null}',
        b'{"data": [1, {"x": 1}]}',
        assets(),
        assets(asset(cost=0)),
        assets(asset(minutes=0)),
        assets(asset(cost=-1)),
        assets(asset(cost=True)),
        assets(asset(type="Disk")),
        assets(asset(properties={})),
        assets({"type": "Node", "totalCost": 1, "minutes": 1}),
        vector(),
        vector(series("0")),
        vector(series("NaN")),
        vector(series("+Inf")),
        vector({"metric": {}, "value": [1, "1"]}),
        vector({"metric": {"node": "a"}, "value": "1"}),
        vector({"metric": 3, "values": [3]}),
        b'{"data": {"resultType": "vector", "result": {"a": 1}}}',
        b"[" * 100_000,
    ],
)
def test_an_answer_without_a_price_is_a_mistake(answer: bytes) -> None:
    price_file, mistakes = read_price_answer("answer", answer)
    assert (dict(price_file.nodes), dict(price_file.types)) == ({}, {})
    assert "node_total_hourly_cost" in str(mistakes[0])


def test_a_csv_file_is_no_answer() -> None:
    assert not is_answer(b"InstanceID,Region\n")
    assert is_answer(b'\n {"data": {}}')
