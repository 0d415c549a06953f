"""What of a node is ours, and what stays on it when that is taken off."""

import pytest

from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.api.node import Node as Shape
from trimtab.cluster.api.node import NodeSpec, Taint
from trimtab.cluster.node import Node, read
from trimtab.command.install.traces import marked, noted, others, surged
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.note import Note, write
from trimtab.compactor.steering import LEAVING

HOME = "trimtab-system"
OURS = Taint(key=LEAVING, value=HOME, effect="PreferNoSchedule")
THEIRS = Taint(key="dedicated", value="gpu", effect="NoSchedule")


def node(note: str = "", *taints: Taint) -> Node:
    meta = Metadata(name="n1", annotations={CORDONED_BY_US: note} if note else {"other": "1"})
    return read(Shape(metadata=meta, spec=NodeSpec(taints=taints, unschedulable=True)))


def of(home: str) -> str:
    found = Note(drain="d", pool="p", since=0, home=home, surges={"a/web": 1, "a/api": 1}, surged={"a/web": 5})
    return write(found)


@pytest.mark.parametrize(("note", "ours"), [
    (of(HOME), True), (of(""), True), ("what is this", True), (of("elsewhere"), False), ("", False),
])  # fmt: skip
def test_a_note_is_ours_unless_another_installation_signed_it(note: str, ours: bool) -> None:
    assert noted(node(note), HOME) is marked(node(note), HOME) is ours


def test_our_taint_alone_marks_a_node_and_does_not_make_its_cordon_ours() -> None:
    assert marked(node("", OURS), HOME)
    assert not noted(node("", OURS), HOME)


def test_other_taints_stay_in_their_order() -> None:
    elsewhere = Taint(key=LEAVING, value="elsewhere", effect="PreferNoSchedule")
    assert others(node("", THEIRS, OURS, elsewhere), HOME) == (THEIRS, elsewhere)


def test_where_none_is_ours_taints_are_not_written() -> None:
    assert others(node(of(HOME), THEIRS), HOME) is None


def test_only_what_was_given_a_second_replica_is_scaled_back() -> None:
    assert surged(node(of(HOME)), HOME) == {"a/web": 1}
    assert surged(node(of("elsewhere")), HOME) == {}
    assert surged(node("what is this"), HOME) == {}
