"""An order with `--surge-pods`: more pods first where a budget allows no eviction, and every count as before."""

import pytest
from msgspec.structs import replace

from tests.compactor.ordered import OrderedDrain
from tests.compactor.played import Played
from tests.compactor.played_autoscaler import PlayedAutoscaler
from trimtab.compaction.order.order_round import OrderRound
from trimtab.compaction.order.reasons import STOPPED
from trimtab.compaction.order.record import ORDER_ANNOTATION, encode_record


def three(played: Played | None = None) -> Played:
    """Three pods whose budget wants three, two of them on the nodes of the order; the others have room."""
    played = (played or Played()).with_nodes("a", "b", "c", "d")
    return played.with_app("web", "a", "b", "c", minimum=3).with_app("api", "a", "c", allowed=1)


def counts(drain: OrderedDrain) -> tuple[int, list[str], list[str]]:
    """What holds whatever happened: the count as before, no budget broken, no machine bought."""
    drain.played.tick(60)
    return drain.played.wanted["web"], drain.played.short, drain.played.bought


def scalings(drain: OrderedDrain) -> list[str]:
    return [write for write in drain.played.writes if write.startswith(("scale", "min"))]


def codes(result: OrderRound) -> set[str]:
    return {reason.code.name for reason in result.failures.values()}


def test_without_the_option_nothing_begins_and_the_reason_names_it() -> None:
    drain = OrderedDrain.of(three(), "a", "b")
    result = drain.run()
    assert codes(result) == {"order-node-blocked"}
    assert "--surge-pods 1" in str(result.stop)
    assert scalings(drain) == []


def test_each_pod_moves_after_one_more_was_there() -> None:
    drain = OrderedDrain.of(three(), "a", "b", surge_pods=1)
    assert drain.run().is_done
    assert (counts(drain), drain.played.refused) == ((3, [], []), 0)
    assert scalings(drain) == ["scale default/web 4", "scale default/web 3"] * 2
    assert [drain.played.on("a"), drain.played.on("b")] == [[], []]


def test_an_autoscaler_is_raised_and_set_back() -> None:
    played = PlayedAutoscaler()
    drain = OrderedDrain.of(three(played), "a", surge_pods=1)
    assert drain.run().is_done
    assert (played.lowest, played.least, played.short) == ([4, 2], 2, [])


@pytest.mark.parametrize("at_once", [1, 2])
def test_another_run_goes_on_after_a_death_at_any_write(at_once: int) -> None:
    whole = OrderedDrain.of(three(), "a", "b", at_once=at_once, surge_pods=1)
    whole.run()
    for number in range(1, whole.writes + 1):
        drain = OrderedDrain.of(three(), "a", "b", at_once=at_once, surge_pods=1)
        drain.dies_after = number
        drain.run()
        drain.dies_after = None
        drain.played.tick(30)
        assert drain.run().is_done, number
        assert counts(drain) == (3, [], []), number


def test_after_a_stop_at_any_round_the_count_goes_back() -> None:
    for number in range(20):
        drain = OrderedDrain.of(three(), "a", "b", surge_pods=1)
        for _ in range(number):
            drain._write(drain.decide())
            drain._pass_time()
        drain.run(stop=STOPPED("stopped"))
        assert counts(drain) == (3, [], []), number


def test_a_count_that_another_client_writes_in_the_middle_stays() -> None:
    drain = OrderedDrain.of(three(), "a", surge_pods=1)
    while drain.played.wanted["web"] == 3:
        drain._write(drain.decide())
        drain._pass_time()
    drain.played.wanted["web"] = 6
    assert drain.run().is_done
    assert counts(drain)[0] == 6


def test_who_takes_the_pods_back_each_time_keeps_the_pod() -> None:
    drain = OrderedDrain.of(three(), "a", surge_pods=1)
    for _ in range(60):
        result = drain.decide()
        if result.is_over:
            break
        drain._write(result)
        drain.played.wanted["web"] = 3
        drain._pass_time()
    assert codes(result) == {"drain-surge-reverted"}
    assert "web-0" in drain.played.on("a")


def test_a_resumed_order_without_the_option_gives_no_pods_and_takes_back_those_that_it_gave() -> None:
    drain = OrderedDrain.of(three(), "a", surge_pods=1)
    while drain.played.wanted["web"] == 3:
        drain._write(drain.decide())
        drain._pass_time()
    resumed = OrderedDrain.of(drain.played, "a")
    resumed.run()
    assert counts(resumed)[0] == 3
    assert len([write for write in scalings(resumed) if write.endswith("4")]) == 1


def test_a_node_that_goes_in_the_middle_leaves_no_count_behind() -> None:
    drain = OrderedDrain.of(three(), "a", surge_pods=1)
    while drain.played.wanted["web"] == 3:
        drain._write(drain.decide())
        drain._pass_time()
    drain.decide()
    del drain.played.nodes["a"]
    drain.played.pods = {uid: p for uid, p in drain.played.pods.items() if p["spec"]["nodeName"] != "a"}
    drain.run()
    assert counts(drain)[0] == 3


def test_a_record_with_surges_that_the_plan_did_not_make_scales_nothing_up_without_the_option() -> None:
    drain = OrderedDrain.of(Played().with_nodes("a", "b").with_app("web", "a", "b", allowed=1), "a")
    for _ in range(2):
        drain._write(drain.decide())
    [record] = drain.records().values()
    assert record.drain is not None
    forged = replace(record, drain=replace(record.drain, surges={"default/web": 2}, extras={"default/web": 3}))
    drain.played.nodes["a"]["metadata"]["annotations"][ORDER_ANNOTATION] = encode_record(forged)
    drain.run()
    assert scalings(drain) == []
