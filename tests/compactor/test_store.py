"""Names under which books are kept."""

import re

import pytest

from trimtab.compactor.store import name_of


@pytest.mark.parametrize("pool", ["web", "web.a-1", "Web", "web_a", "web-a"])
def test_every_pool_has_a_name_of_its_own_that_an_object_may_have(pool: str) -> None:
    assert re.fullmatch(r"trimtab-state-[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name_of(pool))
    assert len({name_of(name) for name in ("web", "Web", "web_a", "web-a")}) == 4
