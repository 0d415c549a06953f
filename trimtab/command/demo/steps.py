"""A pool goes from a rehearsal to the real thing, step by step, on a simulated cluster."""

from collections.abc import Iterable
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cluster.moment import seconds
from trimtab.command.demo.stage import Stage
from trimtab.command.plan.asked import Asked
from trimtab.compaction.drain.memory import Record
from trimtab.compaction.drain.terms import Terms
from trimtab.compactor.books import Books
from trimtab.compactor.drains import Drains
from trimtab.compactor.faults import Faults
from trimtab.compactor.loop import Loop
from trimtab.compactor.planning import Planning
from trimtab.compactor.rehearsal import Rehearsal
from trimtab.compactor.steering import Steering
from trimtab.runtime import log
from trimtab.runtime.stop import Stop

INTERVAL, SETTLE, TICK, ROUNDS = 60, 15, 5, 600
BEGIN = "2026-03-02T03:00:00Z"
"""A Monday at three in the morning, with nobody watching."""
_SHOWN = ("begun", "emptied", "taken", "released", "dropped", "closed")


def show(console: Console, asked: Asked) -> None:
    """What a rehearsal writes down, and then what is done."""
    [pool] = asked.pools
    stage = Stage(asked.inventory, replace(pool, dry_run=True), seconds(BEGIN) or 0)
    loop = _loop(stage)
    console.print(Text("\nFrom a rehearsal to the real thing (simulated: 30 s to start a pod)", style="bold"))
    console.print("[bold]mode: rehearse[/]  plans are written down, nothing is done", highlight=False)
    _rounds(stage, loop, 60)
    rehearsed, before = len(stage.records), len(stage.inventory.nodes)
    console.print(_table(stage.records))
    console.print(f"  nodes cordoned: {_cordoned(stage)}, pods evicted: {stage.evicted}", highlight=False)
    stage.pool = replace(stage.pool, dry_run=False)
    console.print("[bold]mode: act[/]       the same plan, carried out", highlight=False)
    _rounds(stage, loop, ROUNDS)
    console.print(_table(stage.records[rehearsed:]))
    console.print(
        f"  {before} nodes → {len(stage.inventory.nodes)}, {stage.evicted} pods evicted, {loop.drains.twice} of them "
        f"twice; budgets broken: {stage.short}",
        highlight=False,
    )


def _loop(stage: Stage) -> Loop:
    terms = Terms(rest=900)
    books, faults = Books(stage, (stage.tell,)), Faults(log.build("error"))
    return Loop(
        look=stage.look, books=books, drains=Drains(stage, books, terms, Stop(), faults),
        planning=Planning(stage, Rehearsal(), books, terms, SETTLE, faults), steering=Steering(stage),
        log=log.build("error"), interval=INTERVAL, tick=TICK, elapsed=lambda: float(stage.at),
    )  # fmt: skip


def _rounds(stage: Stage, loop: Loop, most: int) -> None:
    """Until nothing is under way and two plans have found nothing more."""
    quiet = 0
    for _ in range(most):
        told = len(stage.records)
        wait = loop.round()
        stage.pass_time(max(1, round(wait)))
        busy = len(stage.records) > told or _cordoned(stage) or loop.planning.intent is not None
        quiet = 0 if busy else quiet + 1
        if quiet > 3:
            return


def _cordoned(stage: Stage) -> int:
    return sum(node.cordoned for node in stage.inventory.nodes)


def _table(records: Iterable[Record]) -> Table:
    table = Table.grid(padding=(0, 2))
    start = seconds(BEGIN) or 0
    for record in records:
        if record.what in _SHOWN or (record.what == "planned" and record.rehearsed):
            passed = record.at - start
            style = {"taken": "green", "released": "red"}.get(record.what, "")
            what = f"would have {record.what}" if record.rehearsed and record.what != "planned" else record.what
            table.add_row(f"  03:{passed // 60:02d}:{passed % 60:02d}", Text(what, style=style), record.why)
    return table
