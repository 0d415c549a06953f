"""What a page of the documentation tells its reader to type and to write."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, kind: str, section: str = "") -> list[str]:
    """Fenced blocks of one kind (`sh`, `yaml`) of a page, a path from the root, or of one of its sections, in their
    order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if section:
        text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [body for result, body in _BLOCK.findall(text) if result == kind]


def files(page: str) -> dict[str, str]:
    """Name → content of the YAML files that a page shows: those whose first line is a comment with their name."""
    results = {}
    for body in blocks(page, "yaml"):
        first, _, rest = body.partition("\n")
        if first.startswith("# "):
            results[first.removeprefix("# ")] = rest
    return results
