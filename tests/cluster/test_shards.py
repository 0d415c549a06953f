"""Every workload has its place among the shards, and is never in none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.recommendation import MAX_SHARDS, ShardAssignment, ShardLayout, ShardOverflow

NAMES = st.sets(st.builds(lambda n, w: f"team-{n}/Deployment/web-{w}", st.integers(0, 5), st.integers(0, 9)))
LAYOUTS = st.builds(
    lambda power, width: ShardLayout(2**power, {"team-1": 2 ** min(power, width)}), st.integers(0, 5), st.integers(0, 5)
)


@given(st.text(min_size=1), st.text(), st.text(), st.integers(0, 10))
def test_a_namespace_is_in_one_shard_among_those_there_are(namespace: str, one: str, other: str, power: int) -> None:
    layout, namespace = ShardLayout(2**power), namespace.replace("/", "")
    assert layout.shard_of(f"{namespace}/Job/{one}") == layout.shard_of(f"{namespace}/CronJob/{other}") < layout.count


def test_too_many_namespaces_are_told_apart_by_twice_as_many_shards() -> None:
    assert ShardLayout().with_more_shards(["a/Job/x", "b/Job/x"]) == ShardLayout(2)


def test_a_namespace_that_fills_a_shard_alone_is_spread() -> None:
    layout = ShardLayout(4).with_more_shards(["a/Job/x", "a/Job/y"])
    assert layout == ShardLayout(4, {"a": 2})
    assert len({layout.shard_of(f"a/Job/{n}") for n in range(50)}) == 2
    assert ShardLayout(1).with_more_shards(["a/Job/x"]) == ShardLayout(2, {"a": 2})


def test_a_large_namespace_is_spread_where_many_shards_do_not_part_it_from_others() -> None:
    holdings = [f"{namespace}/Job/{n}" for namespace in ("a", "b") for n in range(10 if namespace == "a" else 5)]
    assert ShardLayout(8).with_more_shards(holdings) == ShardLayout(16)
    assert ShardLayout(16).with_more_shards(holdings) == ShardLayout(16, {"a": 2})
    assert ShardLayout(16).with_more_shards([f"{n}/Job/x" for n in range(9)]) == ShardLayout(32)


def test_by_workload_every_workload_has_its_own_place() -> None:
    layout = ShardLayout(8, by_workload=True)
    assert {layout.shard_of(f"a/Job/{n}") for n in range(100)} == set(range(8))
    assert layout.with_more_shards(["a/Job/x"]) == ShardLayout(16, by_workload=True)


def test_it_ends_somewhere() -> None:
    with pytest.raises(ShardOverflow, match="1024 ConfigMaps"):
        ShardLayout(MAX_SHARDS).with_more_shards([f"{n}/Job/x" for n in range(9)])


@given(NAMES, LAYOUTS, LAYOUTS, st.integers(0, 40), st.randoms())
def test_whoever_dies_between_two_writes_leaves_nothing_nowhere(
    names: set[str], before: ShardLayout, after: ShardLayout, writes: int, order: object
) -> None:
    homes, stored = ShardAssignment(), {}
    for layout, left in ((before, 1000), (after, writes)):
        plan = homes.plan_shards(layout, names)
        for shard in list(plan)[:left]:
            stored[shard] = {*plan[shard], *homes.workloads_to_move(shard, layout, names)}
            homes.record_move(shard, plan[shard])
    assert set().union(*stored.values()) == names if names else True


def test_who_is_gone_has_no_home() -> None:
    homes = ShardAssignment({"a/Job/x": 1, "a/Job/y": 2})
    homes.retain_only({"a/Job/y"})
    assert homes.shard_by_workload == {"a/Job/y": 2}
