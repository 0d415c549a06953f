"""A fact is a whole name or number of one sentence, and a reason has a code."""

import pytest

from tests.reasons import assert_reason, has_facts
from trimtab.cluster.reason import Code

SHORT = Code("owner-short", "means", "todo")
TEXT = "3 nodes → 1: 12 can be drained in 1 wave, $0.384 each"


@pytest.mark.parametrize("facts", [("3 nodes", 1, 12), ("12", "1 wave"), ("$0.384",), ("3 nodes\n → 1",)])
def test_names_and_numbers_of_a_text_are_facts(facts: tuple[object, ...]) -> None:
    assert has_facts(TEXT, *facts)


@pytest.mark.parametrize("facts", [(2,), ("nodes → 12",), (12, "3 nodes"), ("1 wav",), (384,), ("$0.38",)])
def test_parts_of_them_or_another_order_are_none(facts: tuple[object, ...]) -> None:
    assert not has_facts(TEXT, *facts)


def test_facts_far_from_each_other_are_of_different_sentences() -> None:
    assert not has_facts(f"3 nodes {'and more ' * 40} 12 pods", "3 nodes", "12 pods")


def test_no_fact_at_all_is_a_mistake_of_the_test() -> None:
    with pytest.raises(AssertionError, match="no facts"):
        has_facts(TEXT)


def test_one_of_several_texts_has_them_all() -> None:
    assert has_facts(["3 nodes", "12 pods"], "12 pods")
    assert not has_facts(["3 nodes", "12 pods"], "3 nodes", "12 pods")


def test_a_reason_has_its_code_and_its_facts() -> None:
    reason = SHORT("Deployment shop/web has 1 ready pod of 2")
    assert_reason([reason], "owner-short", owner="shop/web", ready=1, replicas=2)
    assert_reason({"reasons": [{"code": "owner-short", "text": str(reason)}]}, "owner-short", ready=1)


@pytest.mark.parametrize(("code", "ready"), [("owner-gone", 1), ("owner-short", 3)])
def test_another_code_or_another_fact_fails(code: str, ready: int) -> None:
    with pytest.raises(AssertionError, match="owner-short"):
        assert_reason(SHORT("Deployment shop/web has 1 ready pod of 2"), code, ready=ready)
