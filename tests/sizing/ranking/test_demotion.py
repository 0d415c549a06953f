"""Does a group that the cloud has no nodes for come last for an hour, and back after it?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.machines.expander_map import MAP_KEY, ExpanderMap, build_priorities, format_priorities, parse_expander_map
from trimtab.machines.go_regexp import quote_group_name
from trimtab.sizing.ranking.demotion import (
    BASE_ANNOTATION,
    DEMOTIONS_ANNOTATION,
    MANAGED_ANNOTATION,
    DemotedMap,
    MapLeftAlone,
    find_out_of_stock,
    is_exact_pattern,
    record_demotions,
    update_demotions,
)

GROUPS = ("best", "second", "old")
BASE = format_priorities(build_priorities([["best"], ["second"]], legacy=["old"]))
NOW = 1_000_000


def autoscaler(*out_of_stock: str, updated: int = NOW) -> Autoscaler:
    states = {name: "Backoff" if name in out_of_stock else "NoActivity" for name in GROUPS}
    groups = tuple(NodeGroupStatus(name=name, healthy=True, scale_up=state) for name, state in states.items())
    return Autoscaler(groups=groups, updated=updated)


def decide(
    status: Autoscaler, now: int = NOW, text: str = BASE, annotations: dict[str, str] | None = None
) -> DemotedMap | MapLeftAlone:
    notes = {MANAGED_ANNOTATION: "yes", **(record_demotions(BASE, {}) if annotations is None else annotations)}
    return update_demotions({MAP_KEY: text}, notes, replace(status, updated=status.updated), now)


def demoted(*out_of_stock: str) -> DemotedMap:
    decision = decide(autoscaler(*out_of_stock))
    assert isinstance(decision, DemotedMap)
    return decision


def best_of(text: str, *groups: str) -> tuple[str, ...]:
    parsed = parse_expander_map(text)
    assert isinstance(parsed, ExpanderMap)
    return parsed.best_groups(groups)


def test_a_group_in_backoff_is_demoted_for_an_hour() -> None:
    groups = [
        NodeGroupStatus(name="a", healthy=True, scale_up="Backoff"),
        NodeGroupStatus(name="b", healthy=True, scale_up="NoActivity"),
    ]
    assert find_out_of_stock(groups, {"b": 50, "c": 2000}, now=100) == {"a": 3700, "c": 2000}
    assert find_out_of_stock([], {"a": 3700}, now=3700) == {}


def test_the_next_group_is_chosen_meanwhile_and_the_first_one_where_no_other_helps() -> None:
    change = demoted("best")
    assert change.is_changed
    assert best_of(change.text, *GROUPS) == ("second",)
    assert best_of(change.text, "best", "old") == ("best",)


def test_groups_that_are_all_out_of_stock_stay_usable() -> None:
    assert best_of(demoted("best", "second").text, *GROUPS) == ("best", "second")


def test_the_base_comes_back_after_the_hour_even_for_a_recommender_that_started_since() -> None:
    before = demoted("best")
    later = NOW + 3601
    after = decide(autoscaler(updated=later), later, before.text, dict(before.annotations))
    assert isinstance(after, DemotedMap)
    assert (after.text, after.demotions) == (BASE, {})


def test_a_group_that_stays_in_backoff_is_not_written_at_every_look() -> None:
    before = demoted("best")
    soon, late = (
        decide(autoscaler("best", updated=NOW + wait), NOW + wait, before.text, dict(before.annotations))
        for wait in (60, 2400)
    )
    assert isinstance(soon, DemotedMap)
    assert not soon.is_changed
    assert isinstance(late, DemotedMap)
    assert late.demotions == {"best": NOW + 2400 + 3600}


def test_legacy_groups_and_those_that_only_the_catch_all_matches_are_not_demoted() -> None:
    status = Autoscaler(
        groups=tuple(NodeGroupStatus(name=name, healthy=True, scale_up="Backoff") for name in ("old", "unnamed")),
        updated=NOW,
    )
    decision = decide(status)
    assert isinstance(decision, DemotedMap)
    assert not decision.is_changed


def test_a_silent_autoscaler_demotes_nobody_and_earlier_demotions_end() -> None:
    before = demoted("best")
    decision = decide(autoscaler("best", "second", updated=NOW), NOW + 3601, before.text, dict(before.annotations))
    assert isinstance(decision, DemotedMap)
    assert decision.demotions == {}


@pytest.mark.parametrize(
    ("text", "annotations", "problem"),
    [
        ("not: [valid", {}, "not valid YAML"),
        ("", {}, "empty"),
        ("100: ['(']", {}, "pattern"),
        (BASE, {BASE_ANNOTATION: BASE, DEMOTIONS_ANNOTATION: "{"}, "not valid"),
        (BASE, {BASE_ANNOTATION: BASE, DEMOTIONS_ANNOTATION: '{"best": "soon"}'}, "not valid"),
        (BASE.replace("best", "mine"), {BASE_ANNOTATION: BASE}, "another client changed the priority map"),
        ("x" * 300_000, {}, "bytes"),
        ("100:\n  - '^(a+)+$'\n", {}, "Trimtab did not write the pattern"),
    ],
)
def test_a_map_that_is_not_as_it_was_written_stays(text: str, annotations: dict[str, str], problem: str) -> None:
    decision = decide(autoscaler("best"), text=text, annotations=annotations)
    assert isinstance(decision, MapLeftAlone)
    assert problem in decision.problem


def test_a_map_of_another_client_is_none_of_its_business() -> None:
    decision = update_demotions({MAP_KEY: BASE}, {}, autoscaler("best"), NOW)
    assert isinstance(decision, MapLeftAlone)
    assert decision.is_expected


@given(st.text(max_size=20))
def test_the_pattern_of_any_name_is_known_again(name: str) -> None:
    assert is_exact_pattern(quote_group_name(name))


@pytest.mark.parametrize("pattern", ["", "a", "^a", "a$", "^a.c$", "^(a+)+$", ".+", "^a\\", "$", "^"])
def test_other_patterns_are_not_taken_for_exact_ones(pattern: str) -> None:
    assert not is_exact_pattern(pattern)


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_text_stops_it(text: str, base: str, demotions: str) -> None:
    notes = {BASE_ANNOTATION: base, DEMOTIONS_ANNOTATION: demotions}
    assert isinstance(decide(autoscaler("best"), text=text, annotations=notes), DemotedMap | MapLeftAlone)
