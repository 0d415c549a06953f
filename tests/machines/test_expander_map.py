"""What does the cluster autoscaler make of a priority map?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reasons import has_facts
from trimtab.machines.expander_map import (
    ExpanderMap,
    InvalidMap,
    UnjudgedMap,
    build_priorities,
    demote_groups,
    format_priorities,
    parse_expander_map,
    replay_priorities,
)

GROUPS = ("pool-a-z1", "pool-a-z10", "pool-b-z1")


def read(text: str) -> ExpanderMap:
    expander_map = parse_expander_map(text)
    assert isinstance(expander_map, ExpanderMap), expander_map
    return expander_map


def test_the_highest_priority_wins() -> None:
    assert read("10: ['a']\n20: ['pool-b']\n").best_groups(GROUPS) == ("pool-b-z1",)


def test_a_pattern_is_not_anchored() -> None:
    assert read("10: ['pool-a-z1']\n").best_groups(GROUPS) == ("pool-a-z1", "pool-a-z10")
    assert read("10: ['^pool-a-z1$']\n").best_groups(GROUPS) == ("pool-a-z1",)


def test_a_negative_priority_never_wins_and_no_match_leaves_all() -> None:
    assert read("-5: ['.*']\n").best_groups(GROUPS) == GROUPS
    assert read("10: ['nothing']\n").best_groups(GROUPS) == GROUPS
    assert read("-5: ['.*']\n1: ['pool-b']\n").best_groups(GROUPS) == ("pool-b-z1",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "10: pool",
        "ten: ['a']",
        "10: ['(']",
        "- 10",
        "10: {a: b}",
        "10: [['a']]",
        "10: ['a++']",
        "10: ['[']",
        r"10: ['\8']",
    ],
)
def test_the_autoscaler_ignores_a_map_that_is_not_valid(text: str) -> None:
    assert isinstance(parse_expander_map(text), InvalidMap)


@pytest.mark.parametrize(
    "text",
    [
        r"10: ['\pL']",
        "10: ['(?i)a']",
        "010: ['a']",
        "10: [~]",
        "10: [true]",
        "1: [a]\n---\n2: [b]",
        "10: ['[[:alpha:]]']",
    ],
)
def test_what_python_might_read_differently_is_not_judged(text: str) -> None:
    assert isinstance(parse_expander_map(text), UnjudgedMap)


names = st.text("abcz019-./_+$()[]", min_size=1, max_size=12)


@given(st.lists(names, min_size=1, max_size=12, unique=True), st.data())
def test_a_map_of_ours_gives_every_group_its_own_tier(groups: list[str], data: st.DataObject) -> None:
    tiers = [[group] for group in groups]
    legacy = data.draw(st.lists(st.sampled_from(groups), unique=True))
    demoted = data.draw(st.lists(st.sampled_from(groups), unique=True))
    priorities = demote_groups(build_priorities(tiers, legacy), demoted)
    expected = {
        group: 1
        if group in legacy
        else 2
        if group in demoted
        else max(
            100 - 10 * number
            for number in range(9)
            if priorities.get(100 - 10 * number)
            and any(read(format_priorities({5: priorities[100 - 10 * number]})).priority_of(group) == 5 for _ in "x")
        )
        for group in groups
    }
    assert replay_priorities(format_priorities(priorities), expected) == []
    assert read(format_priorities(priorities)).priority_of("somebody-else") == 0


def test_after_a_demotion_the_next_tier_is_chosen() -> None:
    tiers = [["best"], ["second"], ["third"]]
    before = read(format_priorities(build_priorities(tiers, legacy=["old"])))
    after = read(format_priorities(demote_groups(build_priorities(tiers, legacy=["old"]), ["best"])))
    groups = ("old", "third", "second", "best")
    assert before.best_groups(groups) == ("best",)
    assert after.best_groups(groups) == ("second",)
    # Where nothing else helps, a demoted group is still used, and before a legacy one.
    assert after.best_groups(("old", "best")) == ("best",)


def test_a_replay_names_what_is_wrong() -> None:
    [problem] = replay_priorities("100: ['pool-a-z1']\n0: ['.*']\n", {"pool-a-z10": 0})
    assert has_facts(problem, "pool-a-z10", "priority 100", 0)
    assert "cannot be used" in replay_priorities("100: ['(']", {"a": 100})[0]
