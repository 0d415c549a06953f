"""Which parser reads HTTP."""

import pytest

from trimtab.runtime import gunicorn_patches


@pytest.mark.parametrize("missing", [ImportError("no such file"), TypeError("an unexpected keyword argument")])
def test_a_parser_in_c_that_cannot_be_had_is_done_without(missing):
    def load():
        raise missing

    assert gunicorn_patches.choose_parser(load) == "python"
