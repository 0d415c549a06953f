"""Money, and what others read."""

import pytest
from msgspec.structs import replace

from tests.build import owner_key
from tests.sizing.worlds import MI, used
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import ContainerUsage, Recommendations, decode, encode
from trimtab.sizing.cost import LIST_PRICE, average_price, divide_price
from trimtab.sizing.reasons import INSUFFICIENT
from trimtab.sizing.recommendation import build_container_usage, measure_change

NOT_YET = NotYet(reason=INSUFFICIENT("too little"), have="an hour", need="a day")


def test_a_machine_costs_what_its_cores_and_its_memory_cost() -> None:
    price = divide_price(96_000, 2, 8)
    assert price.monthly_cost(2000, 8 << 30) == pytest.approx(96_000 * 730 / 1e6)


def test_nodes_share_their_prices() -> None:
    assert average_price([(96_000, 2, 8), (192_000, 4, 16)]) == LIST_PRICE
    assert average_price([]) is None


def test_published_usage_is_read_as_it_was_written() -> None:
    container_usage = build_container_usage(used(p5=0.0371, p95=0.23), used("memory", p95=100.2 * MI))
    assert container_usage is not None
    read = decode("shard", encode({"shop/Deployment/web": {"app": container_usage}}))
    assert isinstance(read, dict)
    second_usage = Recommendations(read).find_usage(owner_key("Deployment/web", "shop"), "app")
    assert isinstance(second_usage, ContainerUsage)
    assert second_usage == container_usage
    assert second_usage.cpu is not None
    assert second_usage.memory is not None
    assert (second_usage.cpu.p5, second_usage.cpu.p95, second_usage.memory.p95) == ("38m", "230m", "101Mi")


def test_nothing_is_published_of_what_is_not_known() -> None:
    assert build_container_usage(NOT_YET, NOT_YET) is None
    half = build_container_usage(used(), NOT_YET)
    assert half is not None
    assert half.memory is None


def test_a_request_that_is_nearly_the_same_is_not_written_again() -> None:
    before = build_container_usage(used(p5=0.1, p95=0.2), used("memory", p95=100 * MI))
    assert before is not None
    for p5, p95, differ in ((0.1, 0.2, False), (0.104, 0.209, False), (0.106, 0.2, True), (0.1, 0.189, True)):
        after = build_container_usage(used(p5=p5, p95=p95), used("memory", p95=100 * MI))
        assert after is not None
        assert (measure_change(before, after) > 0) is differ, (p5, p95)


def test_what_became_known_is_written_and_so_is_a_day_more() -> None:
    before, after = build_container_usage(used(), NOT_YET), build_container_usage(used(), used("memory"))
    assert before is not None
    assert after is not None
    assert measure_change(before, after) > 0
    assert measure_change(after, before) > 0
    assert measure_change(None, after) > 0
    assert measure_change(after, replace(after, days=(after.days or 0) + 1)) > 0
    assert measure_change(after, replace(after, days=(after.days or 0) + 0.5)) == 0
