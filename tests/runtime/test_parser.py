"""Which parser reads HTTP."""

import pytest

from trimtab.runtime import parser


@pytest.mark.parametrize("missing", [ImportError("no such file"), TypeError("an unexpected keyword argument")])
def test_a_parser_in_c_that_cannot_be_had_is_done_without(missing):
    def load():
        raise missing

    assert parser.chosen(load) == "python"
