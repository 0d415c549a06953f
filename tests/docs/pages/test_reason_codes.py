"""The codes of the product are a value that is read from its modules: creating one changes nothing elsewhere."""

from types import ModuleType

import pytest

from docs.pages.reason_codes import declared_codes, product_codes
from trimtab.cluster.reason import Code


def module(**constants: object) -> ModuleType:
    declaring = ModuleType("declaring")
    vars(declaring).update(constants)
    return declaring


def test_the_codes_are_the_constants_of_the_modules_by_name() -> None:
    late, early = Code("late", "means", "todo"), Code("early", "means", "todo")
    assert declared_codes([module(LATE=late, text="late"), module(EARLY=early, ALSO=late)]) == (early, late)


def test_two_codes_of_one_name_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="late"):
        declared_codes([module(A=Code("late", "means", "todo")), module(B=Code("late", "means", "something else"))])


def test_a_code_of_a_test_is_not_one_of_the_product() -> None:
    before = product_codes()
    Code("of-a-test", "means", "todo")
    product_codes.cache_clear()
    assert product_codes() == before
    assert len({code.name for code in before}) == len(before) > 400
