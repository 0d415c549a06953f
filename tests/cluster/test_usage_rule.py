"""The grammar of usage rules."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.usage_rule import ADAPTIVE, UsageRule, parse

RULES = st.builds(
    UsageRule,
    st.one_of(st.none(), st.integers(1, 999).map(lambda tenths: Decimal(tenths) / 10), st.just(Decimal(100))),
    st.integers(0, 1000),
)


@given(RULES)
def test_a_rule_is_read_as_it_was_written(rule: UsageRule) -> None:
    assert parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("p99", UsageRule(Decimal(99))),
        ("P99.5 + 15 %", UsageRule(Decimal("99.5"), 15)),
        ("max", UsageRule(Decimal(100))),
        ("max+10%", UsageRule(Decimal(100), 10)),
        ("adaptive", ADAPTIVE),
        ("+15%", UsageRule(None, 15)),
        (" p95 ", UsageRule(Decimal(95))),
    ],
)
def test_what_people_write(text: str, rule: UsageRule) -> None:
    assert parse(text) == rule


def test_headroom_alone_goes_on_top_of_the_default() -> None:
    assert parse("+15%", UsageRule(Decimal(95), 5)) == UsageRule(Decimal(95), 15)


@pytest.mark.parametrize(
    "text", ["", " ", "p0", "p100", "p99.55", "99", "p95 15%", "p95 +15", "max -5%", "p95 +1001%", "+%", "p٩٩"]
)
def test_what_is_no_rule_says_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"p95|p0|1000%"):
        parse(text)


@given(st.integers(0, 1 << 50), st.integers(0, 1000))
def test_headroom_is_never_less_than_it_says_and_less_than_one_more(amount: int, percent: int) -> None:
    grown = UsageRule(None, percent).with_headroom(amount)
    assert 0 <= 100 * grown - amount * (100 + percent) < 100


def test_published_percentiles_are_named() -> None:
    assert [parse(text).is_published for text in ("adaptive +5%", "p99", "max", "p98")] == [True, True, True, False]
