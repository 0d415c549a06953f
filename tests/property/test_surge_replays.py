"""Whatever the cluster is, and wherever the process dies: a replay with surges breaks no budget at any moment."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compactor.ordered import OrderedDrain
from tests.compactor.played import ACT, Killed, process
from tests.compactor.played_autoscaler import PlayedAutoscaler

NODES = ("a", "b", "c", "d")


@st.composite
def drawn_worlds(draw: st.DrawFn) -> PlayedAutoscaler:
    """Four nodes; `web` under an autoscaler of any bounds, and two apps beside it; each budget wants up to all pods."""
    places = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=4))
    least = draw(st.integers(1, len(places)))
    most = draw(st.integers(len(places), len(places) + 3))
    played = PlayedAutoscaler(least=least, most=most, load=draw(st.integers(least, most)))
    played.load = len(places)
    played.counted = len(places)
    played.window = draw(st.sampled_from((0, 30, 300)))
    played.with_nodes(*NODES)
    played.with_app("web", *places, cpu="500m", minimum=draw(st.integers(0, len(places))))
    for app in ("one", "two"):
        on = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=3))
        played.with_app(app, *on, cpu=draw(st.sampled_from(("300m", "1"))), minimum=draw(st.integers(0, len(on))))
    played.pools = (replace(ACT, surge=draw(st.integers(0, 3)), single_replicas=draw(st.booleans())),)
    return played


@settings(max_examples=40, deadline=None)
@given(drawn_worlds(), st.integers(0, 40), st.sampled_from(("killed", "lost", "failed", "changed")))
def test_no_budget_is_broken_at_any_moment_and_every_count_is_as_before(
    played: PlayedAutoscaler, write: int, fault: str
) -> None:
    before, least = dict(played.wanted), played.least
    played.faults[write] = fault
    loop = process(played)
    for _ in range(150):
        try:
            loop.run_round()
        except Killed:
            loop = process(played)
        played.tick()
    assert played.short == []
    assert played.bought == []
    assert (played.wanted, played.least) == (before, least)


@settings(max_examples=30, deadline=None)
@given(drawn_worlds(), st.integers(1, 25), st.integers(0, 3))
def test_an_order_that_dies_and_is_resumed_breaks_no_budget(
    played: PlayedAutoscaler, write: int, surge_pods: int
) -> None:
    before, least = dict(played.wanted), played.least
    drain = OrderedDrain.of(played, "a", "b", surge_pods=surge_pods, keeps_going=True)
    drain.dies_after = write
    drain.run(400)
    drain.dies_after = None
    drain.run(400)
    for _ in range(60):
        played.tick()
    assert played.short == []
    assert (played.wanted, played.least) == (before, least)
