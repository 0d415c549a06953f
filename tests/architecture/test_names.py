"""Our top-level names are ours alone."""

import sys
from importlib.metadata import packages_distributions

import pytest

NAMES = ("trimtab", "webhook", "policies", "certs")


@pytest.mark.parametrize("name", NAMES)
def test_no_other_distribution_and_no_standard_module_owns_our_name(name: str) -> None:
    owners = set(packages_distributions().get(name, ())) - {"trimtab"}
    assert not owners
    assert name not in sys.stdlib_module_names
