"""The Event at the beginning of a drain says which tool cordoned the node and how to undo it."""

from __future__ import annotations

from typing import Any

from tests.reasons import has_facts
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compactor.decision_events import EventRecorder
from trimtab.kube.events import About


class Notes:
    """Keeps the notes of Events."""

    def __init__(self) -> None:
        self.notes: dict[tuple[str, str], str] = {}

    def record_event(self, about: About, reason: str, note: str, *, action: str, warning: bool = False) -> bool:
        self.notes[about.kind, reason] = note
        return True


def recorded(what: str) -> dict[tuple[str, str], str]:
    recorder: Any = Notes()
    entry = HistoryEntry(at=1, pool="web", what=what, code="c", why="the drain of node n1 begins", node="n1")
    EventRecorder(recorder, "trimtab-system", lambda pool: None).record_events(entry)
    notes: dict[tuple[str, str], str] = recorder.notes
    return notes


def test_the_event_of_a_cordon_names_the_tool_and_the_way_back() -> None:
    note = recorded("started")["Node", "DrainStarted"]
    assert has_facts(note, "drain of node n1 begins", "compactor cordoned the node")
    assert "compactor release --yes n1" in note


def test_other_events_say_only_what_happened() -> None:
    assert recorded("emptied") == {("Node", "NodeDrained"): "the drain of node n1 begins"}
