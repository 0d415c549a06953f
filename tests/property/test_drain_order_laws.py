"""Laws of DrainOrders, over faults, deletions and lost rights at any time of an order."""

from hypothesis import given
from hypothesis import strategies as st

from tests.compactor.played import Killed
from tests.compactor.played_orders import PlayedOrders
from tests.compactor.test_drain_orders import world
from tests.property.test_plan_laws import EASY

FAULTS = st.dictionaries(st.integers(0, 40), st.sampled_from(("killed", "lost", "changed", "failed")), max_size=4)
EVENTS = st.dictionaries(
    st.integers(0, 25), st.sampled_from(("delete", "lose rights", "silence", "talk", "release", "order")), max_size=4
)


def happen(orders: PlayedOrders, event: str) -> None:
    if event == "delete":
        orders.objects.clear()
    elif event == "lose rights":
        orders.lost["ann"] = "patch nodes"
    elif event in ("silence", "talk"):
        orders.silent = event == "silence"
    elif event == "order":
        orders.order("b", "c", uid="u-2", by="bob")
    elif orders.played.cordoned:
        item = orders.played.nodes[orders.played.cordoned[0]]
        item["spec"]["unschedulable"] = False
        orders.played._touch(item)


@EASY
@given(FAULTS, EVENTS, st.integers(1, 2))
def test_whatever_happens_no_budget_is_broken_and_a_deletion_leaves_nothing(
    faults: dict[int, str], events: dict[int, str], at_once: int
) -> None:
    orders = world()
    orders.played.faults = dict(faults)
    orders.order("a", "b", atOnce=at_once)
    loop = orders.loop()
    for number in range(40):
        if number in events:
            happen(orders, events[number])
        try:
            loop.run_round()
        except Killed:
            loop = orders.loop()
        orders.tick()
    assert not orders.played.short
    if "release" not in events.values():
        assert not orders.moved_twice
    evicted = [write for write in orders.played.writes if write.startswith("evict")]
    assert len(evicted) <= 6 + 6
    orders.objects.clear()
    orders.played.faults = {}
    orders.run(8, loop)
    assert not orders.notes()
    assert not orders.entries()
    assert not orders.played.cordoned
