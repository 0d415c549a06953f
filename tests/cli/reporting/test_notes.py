"""Notes that say the same of different objects are one note with a count; others stay apart."""

from __future__ import annotations

import pytest

from tests.reasons import has_facts
from trimtab.cli.reporting.notes import group_notes

ASLEEP = "Deployment shop/{}: the usage covers less than two weeks (have {} of 168 hours, need 336)"


def test_notes_that_differ_in_names_and_numbers_are_one() -> None:
    notes = [
        ASLEEP.format(name, hours) for name, hours in (("cart", 24), ("till", 30), ("log", 7), ("web", 9), ("x", 1))
    ]
    [joined] = group_notes(notes)
    assert has_facts(joined, notes[0], "4 more notes", "Deployment shop/till", "Deployment shop/web, …")


def test_kinds_of_objects_are_names() -> None:
    assert len(group_notes([ASLEEP.format("a", 1), ASLEEP.format("b", 1).replace("Deployment", "StatefulSet")])) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "Without --usage Trimtab does not know which workloads could sleep.",
            "Without --summary Trimtab does not know how full PersistentVolumeClaims are.",
        ),
        ("the node web-0 removes the pod", "the node web-0 keeps the pod"),
        ("run `trimtab plan`", "run `trimtab lint`"),
        ("set --days to 3", "set --step to 3"),
    ],
)
def test_notes_with_other_words_stay_apart(first: str, second: str) -> None:
    assert group_notes([first, second]) == [first, second]


def test_pools_without_a_sign_in_their_names_are_names() -> None:
    notes = [
        "an invalid pool is ignored: the pool web has no nodes",
        "an invalid pool is ignored: the pool batch has no nodes",
    ]
    [joined] = group_notes(notes)
    assert has_facts(joined, "1 more note", ": batch")


def test_the_same_note_is_printed_once_and_the_order_stays() -> None:
    assert group_notes(["one", "two", "one", "three"]) == ["one", "two", "three"]


def test_notes_that_differ_in_numbers_alone_have_a_count() -> None:
    [joined] = group_notes(["waited 3 minutes", "waited 4 minutes"])
    assert has_facts(joined, "waited 3 minutes", "1 more note")
