"""The rules that ship, read from deploy/rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "rules"
FILES = ("recording.yaml", "alerts.yaml")
OLD_NAMES = ("estafette.yaml",)
"""Another compactor's metrics under their names: applied only by whoever moves over from it."""
RUNBOOKS = "docs/how-to/runbooks.md"
"""Where every `runbook_url` leads, from the root of the sources: we cannot know where you serve these pages."""


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    asks: str
    alert: bool
    written: dict[str, Any]


def everything(names: Iterable[str] = FILES) -> list[Rule]:
    """The rules of these files."""
    groups = [group for name in names for group in yaml.safe_load((FOLDER / name).read_text("utf-8"))["groups"]]
    return [
        Rule(rule.get("alert") or rule["record"], rule["expr"], "alert" in rule, rule)
        for group in groups
        for rule in group["rules"]
    ]
