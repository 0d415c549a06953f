"""What messages and pages call a setting is one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\bTRIMTAB_[A-Z_]+[A-Z]\b")
NONE = {"TRIMTAB_PORT"}
"""Named where it is said that there is none."""
REFERENCE = "docs/reference/settings.md"


def named(path: Path) -> set[str]:
    return set(NAME.findall(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("where", ["trimtab/**/*.py", "webhook/**/*.py", "docs/**/*.md", "deploy/**/*.yaml"])
def test_every_setting_that_is_named_is_one(where: str) -> None:
    facts = named(ROOT / REFERENCE) | NONE
    unknown = {str(path.relative_to(ROOT)): named(path) - facts for path in ROOT.glob(where)}
    assert {path: names for path, names in unknown.items() if names} == {}
