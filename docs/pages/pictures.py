"""The pictures of a terminal in README.md and docs/: what a command prints, drawn as SVG."""

from io import StringIO

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from trimtab.cli.demo import sample_pool
from trimtab.cli.top.draw import draw_once
from trimtab.cli.top.view import NodeBar, PoolOverview, TopView
from trimtab.compaction.drain.pool_state import HistoryEntry

WIDTH = 116
"""Columns of the terminal."""

_THEME = TerminalTheme(
    (18, 22, 29),
    (229, 233, 240),
    [
        (18, 22, 29),
        (224, 108, 117),
        (127, 200, 127),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (200, 205, 214),
    ],
    [
        (140, 150, 166),
        (224, 108, 117),
        (127, 200, 127),
        (229, 192, 123),
        (97, 175, 239),
        (198, 120, 221),
        (86, 182, 194),
        (255, 255, 255),
    ],
)

# As rich's own form, without the fonts that it loads from the network.
_FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501  CSS


def draw_demo() -> str:
    """Return the part of `trimtab demo` about a pool, as SVG. The same on every machine."""
    console = _create_console()
    sample_pool.draw_sample_pool(console)
    return _export(console, "The plan of `trimtab demo`: nine nodes before and after a compaction", "trimtab demo")


def draw_top() -> str:
    """Return the screen of `trimtab top` during a compaction, as SVG."""
    console = _create_console()
    console.print(draw_once(_sample_view(), WIDTH))
    title = "`trimtab top`: two pools, their nodes as bars, the next wave and what it waits for, the last decisions"
    return _export(console, title, "trimtab top")


def _create_console() -> Console:
    return Console(
        record=True, file=StringIO(), width=WIDTH, color_system="truecolor", force_terminal=True, legacy_windows=False
    )


def _export(console: Console, title: str, window: str) -> str:
    return console.export_svg(
        title=window, theme=_THEME, code_format=_FORM.replace("TITLE", title), unique_id="trimtab"
    )


_AT = 1_800_000_000


def _sample_view() -> TopView:
    """Return two pools in the middle of a compaction; the values are made up."""
    web = [("draining", 0, 31, 3), ("drained", 0, 0, 0), ("next", 1, 34, 0), ("next", 2, 41, 0), ("planned", 3, 44, 0)]
    nodes = [
        NodeBar(
            name=f"web-{number}",
            pool="web",
            state=state,
            turn=turn,
            cpu=cpu,
            memory=cpu + 9,
            pods=cpu // 4,
            leaving=leaving,
        )
        for number, (state, turn, cpu, leaving) in enumerate([*web, *(("", 0, cpu, 0) for cpu in (78, 83, 91))], 1)
    ]
    nodes += [
        NodeBar(name=f"db-{number}", pool="db", state="", turn=0, cpu=cpu, memory=cpu + 20, pods=9, leaving=0)
        for number, cpu in enumerate((55, 62), 1)
    ]
    decisions = [
        ("evicted", "pod shop/cart-7d9f-k2x4p leaves node web-1"),
        ("emptied", "node web-2 has no more pods to evict: all successors are ready elsewhere"),
        ("started", "the drain of node web-1 begins: its 9 pods fit on 3 nodes"),
        ("removed", "node web-9 no longer exists"),
    ]
    return TopView(
        at=_AT,
        leader="trimtab-compactor-6c5f8-x7lq2",
        paused="",
        pools=(
            PoolOverview(
                name="db",
                mode="rehearse",
                nodes=2,
                cpu=59,
                memory=79,
                next=(),
                planned=0,
                waits="`mode: act` in the pool's ConfigMap, because the pool is in mode rehearse",
                saved="0 nodes",
            ),
            PoolOverview(
                name="web",
                mode="act",
                nodes=8,
                cpu=50,
                memory=59,
                next=("web-3", "web-4"),
                planned=3,
                waits="the end of the drain of web-1",
                saved="4 nodes, $561 a month",
            ),
        ),
        nodes=tuple(sorted(nodes, key=lambda node: node.pool)),
        decisions=tuple(
            HistoryEntry(at=_AT - 40 * number, pool="web", what=what, code="", why=why)
            for number, (what, why) in enumerate(decisions)
        ),
        saved="4 nodes, $561 a month",
        problems=(),
    )
