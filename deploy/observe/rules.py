"""The rules that ship, read from deploy/rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "rules"
FILES = ("recording.yaml", "alerts.yaml")
RUNBOOKS = "docs/how-to/runbooks.md"
"""Where every `runbook_url` leads, from the root of the sources: we cannot know where you serve these pages."""


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    asks: str
    alert: bool
    written: dict[str, Any]


def everything() -> list[Rule]:
    groups = [group for name in FILES for group in yaml.safe_load((FOLDER / name).read_text("utf-8"))["groups"]]
    return [
        Rule(rule.get("alert") or rule["record"], rule["expr"], "alert" in rule, rule)
        for group in groups
        for rule in group["rules"]
    ]
