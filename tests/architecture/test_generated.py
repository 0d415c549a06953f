"""What is generated from the code is as the code says now."""

import pytest

from docs.generate import ROOT, everything

_EXPECTED = everything()


@pytest.mark.parametrize("name", sorted(_EXPECTED))
def test_a_generated_file_is_not_stale(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == _EXPECTED[name], "run `make generate`"
