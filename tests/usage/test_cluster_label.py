"""Matchers, and labels that tell clusters apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.usage.cluster_label import Matchers, Mixed, NoMatcher, Origins, escape_value


@given(st.text(), st.text())
def test_a_value_matches_itself_alone_however_it_is_written(value: str, other: str) -> None:
    matchers = Matchers.from_text(f'cluster="{escape_value(value)}"')
    if "\n" not in value:  # written as \n, which a file's label never holds
        assert matchers.matches_labels({"cluster": value})
        assert matchers.matches_labels({"cluster": other}) is (value == other)


@pytest.mark.parametrize(
    ("text", "labels", "allowed"),
    [
        ('cluster="a",namespace!="b"', {"cluster": "a", "namespace": "c"}, True),
        ('cluster="a", namespace!="b",', {"cluster": "a", "namespace": "b"}, False),
        ("cluster=~'a|b'", {"cluster": "ab"}, False),
        ('cluster!~"dev-.*"', {"cluster": "dev-us"}, False),
        ('tenant=""', {}, True),
        ("", {"cluster": "a"}, True),
    ],
)
def test_conditions_are_those_of_promql(text: str, labels: dict[str, str], allowed: bool) -> None:
    assert Matchers.from_text(text).matches_labels(labels) is allowed


@pytest.mark.parametrize("text", ["cluster", "cluster=a", 'cluster="a"b', '="a"', 'a=~"("'])
def test_what_is_no_condition_is_told(text: str) -> None:
    with pytest.raises(NoMatcher):
        Matchers.from_text(text)


def test_a_label_that_a_matcher_names_may_have_several_values() -> None:
    origins = Origins(Matchers.from_text('cluster=~".+"').matched_labels)
    for cluster in ("a", "b"):
        origins.add_series((("cluster", cluster), ("tenant", "t")))
    assert origins.mixed_labels() == ()
    origins.add_series(())
    assert origins.mixed_labels() == (Mixed("tenant", ("", "t")),)
