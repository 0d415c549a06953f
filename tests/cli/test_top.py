"""`trimtab top`: the values on the screen, drawn at three widths, and the screen itself with its keys."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
from dataclasses import replace
from io import StringIO, TextIOWrapper
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from tests.cli.report_runs import run_verb
from tests.cluster_of import node, pod
from tests.reasons import has_facts
from trimtab.cli.top import draw
from trimtab.cli.top.app import TopScreen
from trimtab.cli.top.command import can_draw_screen
from trimtab.cli.top.view import TopView, build_top_view, select_part
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_config import PoolReading
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.inputs.compactor_state import CompactorState

NOW = 1_800_000_000
WEB = Pool(name="web", labels={"pool": "web"}, dry_run=False)
DB = Pool(name="db", labels={"pool": "db"})


def entry(what: str, at: int, pool: str = "web") -> HistoryEntry:
    return HistoryEntry(at=at, pool=pool, what=what, code="c", why=f"why {what}")


MEMORY = PoolState(
    plan=("w2", "w1", "w3"),
    plan_wave=1,
    drains={"w4": "d", "w5": "e"},
    empty=("w5",),
    saved=2,
    worth={"micro-dollars an hour": 384_000},
    ring=(entry("started", NOW - 5), entry("emptied", NOW)),
)


def state(memory: PoolState = MEMORY, *, paused: str = "", leader: str = "compactor-0") -> CompactorState:
    items = [node(f"w{number}", labels={"pool": "web"}) for number in range(1, 7)]
    items += [node("d1", labels={"pool": "db"}), node("other")]
    items += [pod("a", "w1", "3"), pod("b", "w6", "1"), pod("c", "other", "2"), pod("gone", "w6", "2", phase="Failed")]
    reading = build_snapshot([Document(file="x", index=number, value=item) for number, item in enumerate(items)])
    return CompactorState(
        read_at=NOW,
        namespace="trimtab-system",
        snapshot=reading.snapshot,
        pools=PoolReading((WEB, DB)),
        pool_states={"web": memory},
        problems=(),
        leader=leader,
        paused=paused,
    )


VIEW = build_top_view(state())


def text(part: RenderableType, width: int = 120) -> str:
    console = Console(file=StringIO(), width=width, no_color=True)
    console.print(part)
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def test_every_node_is_there_once_with_what_becomes_of_it() -> None:
    assert [(bar.name, bar.pool, bar.state, bar.turn) for bar in VIEW.nodes] == [
        ("d1", "db", "", 0),
        ("w4", "web", "draining", 0),
        ("w5", "web", "drained", 0),
        ("w2", "web", "next", 1),
        ("w1", "web", "planned", 2),
        ("w3", "web", "planned", 3),
        ("w6", "web", "", 0),
        ("other", "", "", 0),
    ]


def test_a_bar_is_what_is_requested_of_allocatable_by_pods_that_run() -> None:
    bars = {bar.name: bar for bar in VIEW.nodes}
    assert (bars["w1"].cpu, bars["w6"].cpu, bars["w2"].cpu) == (75, 25, 0)
    assert (bars["w6"].pods, bars["w2"].pods) == (1, 0)
    assert {pool.name: pool.cpu for pool in VIEW.pools} == {"web": 17, "db": 0}


def test_an_amount_that_cannot_be_read_is_unknown_and_not_zero() -> None:
    items = [node("n1"), pod("a", "n1", "a lot")]
    reading = build_snapshot([Document(file="x", index=number, value=item) for number, item in enumerate(items)])
    [bar] = build_top_view(replace(state(), snapshot=reading.snapshot)).nodes
    assert (bar.cpu, bar.memory) == (None, None)
    assert "?%" in text(draw.draw_nodes([bar], 100))


def test_the_next_wave_and_what_it_waits_for_are_named() -> None:
    lines = text(draw.draw_pools(VIEW.pools, 116), 116)
    assert has_facts(lines, "next: w2", "2 in later waves", "drain of w4")
    assert has_facts(lines, "db", "no node is drained", "mode: act")
    assert has_facts(lines, "2 nodes", "$280 a month")


def test_the_headline_says_who_leads_or_that_all_is_paused() -> None:
    assert "leader compactor-0" in text(draw.draw_headline(VIEW))
    assert "PAUSED: by hand" in text(draw.draw_headline(build_top_view(state(paused="by hand"))))
    assert "no compactor leads" in text(draw.draw_headline(build_top_view(state(leader=""))))


def test_the_newest_decision_is_first() -> None:
    assert [line.split()[2] for line in text(draw.draw_decisions(VIEW.decisions, 100, 9)).splitlines()] == [
        "emptied",
        "started",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_names_and_states_are_whole(width: int) -> None:
    drawn = text(draw.draw_once(VIEW, width), width)
    assert all(len(line) <= width for line in drawn.splitlines())
    assert all(name in drawn for name in ("w1", "w6", "draining", "next #1", "planned #2"))


def test_a_cluster_without_pools_says_what_a_pool_is() -> None:
    empty = build_top_view(replace(state(), pools=PoolReading(()), pool_states={}))
    assert "trimtab.dev/pool" in text(draw.draw_pools(empty.pools, 80))


def test_a_part_can_be_selected() -> None:
    assert {node.pool for node in select_part(VIEW, "web").nodes} == {"web"}
    assert [node.name for node in select_part(VIEW, None, only_leaving=True).nodes] == ["w4", "w5", "w2", "w1", "w3"]
    assert select_part(VIEW, "db").decisions == ()


def screen_text(screen: TopScreen, part: str) -> str:
    from textual.widgets import Static

    visual = screen.query_one(part, Static).content
    return text(visual, screen.size.width)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 50)])
def test_the_screen_shows_all_parts_and_its_keys_select(size: tuple[int, int]) -> None:
    async def use() -> None:
        screen = TopScreen(lambda: VIEW, 60)
        async with screen.run_test(size=size) as pilot:
            await screen.workers.wait_for_complete()
            await pilot.pause()
            assert "leader compactor-0" in screen_text(screen, "#headline")
            assert "other" in screen_text(screen, "#node-bars")
            assert "why emptied" in screen_text(screen, "#decision-lines")
            for part in ("#headline", "#pools", "#nodes", "#decisions"):
                region = screen.query_one(part).region
                assert region.height > 0, f"{part} has no room"
                assert region.right <= size[0]
            await pilot.press("p")
            assert screen.pool == "db"
            assert "w1" not in screen_text(screen, "#node-bars")
            await pilot.press("p", "p", "l")
            assert screen.pool is None
            assert "w6" not in screen_text(screen, "#node-bars")
            await pilot.press("d")
            assert not screen.query_one("#decisions").display
            await pilot.press("q")

    asyncio.run(use())


def test_a_read_that_fails_leaves_the_last_view_and_says_why() -> None:
    views: list[TopView] = [VIEW]

    def read() -> TopView:
        if not views:
            raise OSError("the API server does not answer")
        return views.pop()

    async def use() -> None:
        screen = TopScreen(read, 60)
        async with screen.run_test(size=(100, 30)) as pilot:
            await screen.workers.wait_for_complete()
            await pilot.press("r")
            await screen.workers.wait_for_complete()
            await pilot.pause()
            assert "does not answer" in screen_text(screen, "#problem")
            assert "w1" in screen_text(screen, "#node-bars")

    asyncio.run(use())


def test_without_a_login_the_error_is_kubectls() -> None:
    result = run_verb("top", "--once", "--kubeconfig", "/nonexistent")
    assert result.exit_code == 2
    assert has_facts(result.output, "error", "/nonexistent")


def test_a_screen_is_drawn_only_where_every_stream_is_a_terminal(tmp_path: Path) -> None:
    """With standard error in a file the screen would be drawn into the file, and the terminal stay empty."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r+b", buffering=0) as raw, (tmp_path / "errors").open("w") as file:
        terminal = TextIOWrapper(raw)
        assert can_draw_screen((terminal, terminal, terminal))
        assert not can_draw_screen((terminal, terminal, file))
        terminal.detach()
    os.close(ours)


def test_the_command_itself_needs_no_textual() -> None:
    """The image does not have it."""
    code = "import sys; import trimtab.cli.top.command; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
