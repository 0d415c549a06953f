"""What `trimtab compactor status` and `history` say."""

from dataclasses import replace

import pytest

from tests.cluster_of import node
from trimtab.cluster.documents import Document
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_file import PoolReading
from trimtab.cluster.snapshot import Snapshot, build
from trimtab.command.compactor import tell
from trimtab.command.compactor.asked import Found
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.memory import Memory, Record
from trimtab.compaction.drain.note import Note, write

NOW = 1_800_000_000


def found(memory: Memory, pool: Pool | None = None, **more: str) -> Found:
    pools = PoolReading((pool or Pool(name="web", dry_run=False),))
    told = {"leader": "one", "paused": "", "home": "trimtab-system", **more}
    return Found(at=NOW, snapshot=Snapshot(), pools=pools, memories={"web": memory}, unread=(), **told)


def test_whose_drain_it_is_is_said_where_another_namespaces_compactor_began_it() -> None:
    nodes = [node(f"n{home}", annotations={CORDONED_BY_US: note(home)}) for home in ("trimtab-system", "elsewhere")]
    reading = build([Document(file="x", index=number, value=item) for number, item in enumerate(nodes)])
    told = tell.status(replace(found(Memory()), snapshot=reading.snapshot)).drains
    assert [drain.phase for drain in told] == ["left to the compactor of namespace elsewhere", "emptying"]


def note(home: str) -> str:
    return write(Note(drain="d", pool="web", since=NOW, home=home))


def waits(memory: Memory, pool: Pool | None = None, **more: str) -> str:
    return tell.status(found(memory, pool, **more)).pools[0].waits_for


def test_what_a_pool_waits_for_is_said() -> None:
    ready = Memory(plan=("n1",))
    assert waits(ready) == ""
    assert waits(Memory()) == "a plan that frees a node"
    assert waits(ready, paused="said so") == "said so"
    assert waits(ready, leader="") == "no compactor leads"
    assert "rehearses" in waits(ready, Pool(name="web"))
    assert "drain of n1" in waits(Memory(plan=("n2",), drains={"n1": "d"}))
    assert "two" not in waits(Memory(strikes=2, closed=NOW - 10))
    assert "closed for another 3590 s" in waits(Memory(strikes=2, closed=NOW - 10))
    assert "ceiling" in waits(Memory(plan=("n1",), evictions=(NOW,) * 200))


def test_history_is_in_order_and_can_be_of_one_node() -> None:
    ring = tuple(Record(at=NOW - n, pool="web", what="begun", code="c", why="w", node=f"n{n}") for n in range(3))
    everything = tell.history(found(Memory(ring=ring)), None, None)
    assert [record.node for record in everything.records] == ["n2", "n1", "n0"]
    assert len(tell.history(found(Memory(ring=ring)), "web", "n1").records) == 1


@pytest.mark.parametrize("off", [-600, 600])
def test_a_pool_is_reopened_by_the_compactors_clock_whatever_ours_says(off: int) -> None:
    assert tell.reopening(Memory(closed=NOW), NOW + off) == NOW
    assert tell.reopening(Memory(), NOW) == NOW
