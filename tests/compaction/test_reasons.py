"""Each reason why a pod, a node or a pool stays names the setting that changes it, or says that there is none."""

import re
from types import ModuleType

import pytest

from trimtab.cli.catalog import POOL_FIELD, load_catalog
from trimtab.cluster.reason import Code
from trimtab.compaction import reasons
from trimtab.compaction.drain import reasons as drain_reasons

NONE = "o setting of the pool changes th"
NOT_BLOCKERS = {"node-removable"}
POOL_FIELDS = {entry.name for entry in load_catalog() if entry.kind == POOL_FIELD}
SECTIONS = {name.rpartition(".")[0] for name in POOL_FIELDS} - {""}
SETTING = re.compile(
    r"\bTRIMTAB_COMPACTOR_[A-Z_]+[A-Z]\b"
    r"|(?<!\S)--[a-z-]+[a-z]"  # a flag of `trimtab install`, or of the cluster autoscaler
    r"|\b[a-z.-]+\.(?:dev|io|sh)/[a-z-]+\b"  # an annotation
    r"|`trimtab (?:compactor (?:resume|release)|why pod)\b[^`]*`"
)
WAITING = {
    "pool-closed",
    "pool-backs-off",
    "pool-uncordoned-recently",
    "compactor-paused",
    "pool-rate-limited",
    "drain-pod-terminating",
    "drain-waits-for-successors",
    "drain-budget-spent",
    "drain-waits-for-workload",
    "drain-waits-for-critical-workload",
    "drain-surging",
    "drain-waits-for-autoscaler",
}
"""The codes of drains for which a pool or a drain waits. The others say how a drain ended."""


def codes_of(module: ModuleType) -> list[Code]:
    return [value for value in vars(module).values() if isinstance(value, Code)]


BLOCKERS = [code for code in codes_of(reasons) if code.name not in NOT_BLOCKERS]
BLOCKERS += [code for code in codes_of(drain_reasons) if code.name in WAITING]


def named_settings(text: str) -> set[str]:
    """Every setting in the text; a field of a pool without a dot counts only in backticks."""
    fields = {
        field for field in POOL_FIELDS | SECTIONS if re.search(rf"(?<![\w.]){re.escape(field)}(?![\w]|\.\w)", text)
    }
    quoted = {re.split(r"[:\s]", one)[0] for one in re.findall(r"`([^`]+)`", text)}
    return {field for field in fields if "." in field or field in quoted} | set(SETTING.findall(text))


@pytest.mark.parametrize("code", BLOCKERS, ids=lambda code: code.name)
def test_a_blocker_names_its_setting_or_says_that_there_is_none(code: Code) -> None:
    assert bool(named_settings(code.todo)) or NONE in code.todo, code.todo


def test_every_waiting_code_exists() -> None:
    assert {code.name for code in codes_of(drain_reasons)} >= WAITING


def test_a_dotted_word_is_a_field_of_a_pool() -> None:
    """A misspelt or renamed field fails here."""
    words = {
        word
        for code in BLOCKERS
        for word in re.findall(r"(?<![\w./-])[a-z]+[a-zA-Z]*\.[a-z][a-zA-Z]+\b(?![./])", code.todo)
    }
    assert words - POOL_FIELDS - SECTIONS == set()


def test_the_room_for_the_largest_pod_names_its_setting() -> None:
    assert "keep.headroom.largestPod" in named_settings(reasons.PROMISED.todo)
