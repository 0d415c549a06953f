"""Every workload has its place among the shards, and is never in none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.shards import MOST, Homes, Layout, TooMuch

NAMES = st.sets(st.builds(lambda n, w: f"team-{n}/Deployment/web-{w}", st.integers(0, 5), st.integers(0, 9)))
LAYOUTS = st.builds(
    lambda power, width: Layout(2**power, {"team-1": 2 ** min(power, width)}), st.integers(0, 5), st.integers(0, 5)
)


@given(st.text(min_size=1), st.text(), st.text(), st.integers(0, 10))
def test_a_namespace_is_in_one_shard_among_those_there_are(namespace: str, one: str, other: str, power: int) -> None:
    layout, namespace = Layout(2**power), namespace.replace("/", "")
    assert layout.place(f"{namespace}/Job/{one}") == layout.place(f"{namespace}/CronJob/{other}") < layout.count


def test_too_many_namespaces_are_told_apart_by_twice_as_many_shards() -> None:
    assert Layout().grown(["a/Job/x", "b/Job/x"]) == Layout(2)


def test_a_namespace_that_fills_a_shard_alone_is_spread() -> None:
    layout = Layout(4).grown(["a/Job/x", "a/Job/y"])
    assert layout == Layout(4, {"a": 2})
    assert len({layout.place(f"a/Job/{n}") for n in range(50)}) == 2
    assert Layout(1).grown(["a/Job/x"]) == Layout(2, {"a": 2})


def test_it_ends_somewhere() -> None:
    with pytest.raises(TooMuch, match="1024 shards"):
        Layout(MOST).grown(["a/Job/x", "b/Job/x"])


@given(NAMES, LAYOUTS, LAYOUTS, st.integers(0, 40), st.randoms())
def test_whoever_dies_between_two_writes_leaves_nothing_nowhere(
    names: set[str], before: Layout, after: Layout, writes: int, order: object
) -> None:
    homes, stored = Homes(), {}
    for layout, left in ((before, 1000), (after, writes)):
        plan = homes.plan(layout, names)
        for shard in list(plan)[:left]:
            stored[shard] = {*plan[shard], *homes.waiting(shard, layout, names)}
            homes.moved(shard, plan[shard])
    assert set().union(*stored.values()) == names if names else True


def test_who_is_gone_has_no_home() -> None:
    homes = Homes({"a/Job/x": 1, "a/Job/y": 2})
    homes.forget({"a/Job/y"})
    assert homes.of == {"a/Job/y": 2}
