"""Draws the parts of `trimtab top` for a given width in characters; the state of a node is always a word, not only a
colour."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from trimtab.cli.reporting.columns import Column, Frame, number_column
from trimtab.cli.reporting.draw import build_table
from trimtab.cli.top.view import NodeBar, PoolOverview, TopView
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import find_common_domain
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.pool_state import HistoryEntry

FULL, EMPTY = "█", "░"
WIDE, MEDIUM = 110, 76
"""The widths in characters from which all columns fit, and from which all but memory fit."""
STATE_STYLES = {
    "draining": "bold yellow",
    "drained": "green",
    "next": "bold cyan",
    "planned": "cyan",
    "cordoned": "magenta",
    "not ready": "red",
}


def draw_headline(view: TopView) -> Text:
    """Returns one line with the time, the leader or the pause, and what was saved."""
    text = Text(format_timestamp(view.at)[11:19] + "Z  ")
    if view.paused:
        text.append(f"PAUSED: {view.paused}  ", "bold red")
    elif not view.leader:
        text.append("no compactor leads  ", "bold red")
    else:
        text.append(f"leader {view.leader}  ")
    return text.append(f"saved {view.saved}", "bold")


def draw_pools(pools: Sequence[PoolOverview], width: int) -> RenderableType:
    """Returns a line for each pool, and below it the next nodes and the condition for the next drain to start."""
    if not pools:
        return Text("There is no pool yet: a pool is a ConfigMap with the label trimtab.dev/pool.", "yellow")
    bar, has_memory = 12 if width >= WIDE else 6, width >= MEDIUM
    memory: Column[PoolOverview] = Column("MEMORY", lambda pool: draw_bar(pool.memory, bar))
    columns: tuple[Column[PoolOverview], ...] = (
        Column("POOL", lambda pool: Text(pool.name)),
        Column("MODE", lambda pool: pool.mode),
        number_column("NODES", lambda pool: pool.nodes, "{}"),
        Column("CPU", lambda pool: draw_bar(pool.cpu, bar)),
        *((memory,) if has_memory else ()),
        Column("SAVED", lambda pool: Text(pool.saved)),
    )
    return Group(build_table(pools, columns, frame=Frame.SCREEN), *map(_describe_pool, pools))


def _describe_pool(pool: PoolOverview) -> Text:
    text = Text(f"{pool.name}: ", "bold", overflow="fold")
    text.append(_describe_next(pool), "cyan")
    if pool.waits:
        text.append(f"; waits for: {pool.waits}", "yellow")
    return text


def _describe_next(pool: PoolOverview) -> str:
    if not pool.next:
        return "no node is drained next"
    named, later = pool.next[:4], pool.planned - len(pool.next)
    more = f" and {len(pool.next) - len(named)} more" if len(pool.next) > len(named) else ""
    after = f", {later} in later waves" if later > 0 else ""
    return f"drained next: {', '.join(named)}{more}{after}"


def draw_nodes(nodes: Sequence[NodeBar], width: int) -> RenderableType:
    """Returns a line for each node, with bars for its requested cpu and memory."""
    if not nodes:
        return Text("no node to show", "dim")
    bar, is_medium = 20 if width >= WIDE else 10 if width >= MEDIUM else 6, width >= MEDIUM
    domain = find_common_domain([node.name for node in nodes])
    pool: Column[NodeBar] = Column("POOL", lambda node: Text(node.pool or "–"))
    memory: Column[NodeBar] = Column("MEMORY", lambda node: draw_bar(node.memory, bar))
    pods: Column[NodeBar] = number_column("PODS", lambda node: node.pods, "{}")
    columns: tuple[Column[NodeBar], ...] = (
        Column("NODE", lambda node: Text(node.name.removesuffix(domain))),
        *((pool,) if is_medium else ()),
        Column("CPU", lambda node: draw_bar(node.cpu, bar)),
        *((memory, pods) if is_medium else ()),
        Column("STATE", lambda node: Text(_describe_state(node), STATE_STYLES.get(node.state, ""))),
    )
    table = build_table(nodes, columns, frame=Frame.SCREEN)
    return Group(table, Text(f"Names of nodes end in {domain}", "dim")) if domain else table


def _describe_state(node: NodeBar) -> str:
    if node.state == "draining":
        return f"draining, {format_count(node.leaving, 'pod')} left"
    return f"{node.state} #{node.turn}" if node.state in ("next", "planned") else node.state


def draw_bar(percent: int | None, width: int) -> Text:
    """Returns a bar with its number; a question mark if the share is not known."""
    if percent is None:
        return Text("?".ljust(width) + "   ?%", "dim")
    filled = max(0, min(width, round(percent * width / 100)))
    style = "red" if percent > 100 else "green" if percent >= 70 else "yellow" if percent >= 35 else "blue"
    text = Text()
    text.append(FULL * filled, style)
    text.append(EMPTY * (width - filled), "dim")
    return text.append(f"{percent:4}%")


def draw_decisions(decisions: Sequence[HistoryEntry], width: int, limit: int) -> RenderableType:
    """Returns the last decisions, the newest first."""
    if not decisions:
        return Text("the compactor has stored no decision", "dim")

    def format_what(entry: HistoryEntry) -> str:
        return f"{entry.what} (rehearsed)" if entry.rehearsed and width >= MEDIUM else entry.what

    columns: tuple[Column[HistoryEntry], ...] = (
        Column("", lambda entry: format_timestamp(entry.at)[5:16].replace("T", " ")),
        Column("", format_what),
        Column("", lambda entry: Text(entry.why), ratio=1),
    )
    return build_table(decisions[:limit], columns, frame=Frame.SCREEN)


def draw_once(view: TopView, width: int) -> Group:
    """Returns all parts one below the other, for a pipe or `--once`."""
    parts: list[RenderableType] = [draw_headline(view), Text(""), draw_pools(view.pools, width), Text("")]
    parts += [draw_nodes(view.nodes, width), Text(""), draw_decisions(view.decisions, width, 10)]
    parts += [Text(problem, "yellow") for problem in view.problems]
    return Group(*parts)
