"""The screen of `trimtab top`, with Textual. It only reads: no key changes anything in the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from trimtab.cli.top.draw import draw_decisions, draw_headline, draw_nodes, draw_pools
from trimtab.cli.top.view import TopView, select_part

ReadView = Callable[[], TopView]


class TopScreen(App[None]):
    """The screen: pools at the top, nodes in the middle, decisions at the bottom. `read_view` is called in a thread,
    and may fail."""

    TITLE = "trimtab top"
    CSS = """
    Screen { layout: vertical; }
    #headline { height: auto; padding: 0 1; background: $panel; }
    #pools { height: auto; max-height: 35%; padding: 0 1; border-bottom: solid $panel; }
    #nodes { height: 1fr; padding: 0 1; }
    #decisions { height: auto; max-height: 30%; padding: 0 1; border-top: solid $panel; }
    #problem { height: auto; padding: 0 1; color: $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "next_pool", "Pool"),
        Binding("l", "toggle_leaving", "Only drained nodes"),
        Binding("d", "toggle_decisions", "Decisions"),
        Binding("r", "refresh_now", "Refresh"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, read_view: ReadView, interval_seconds: float, pool: str | None = None) -> None:
        super().__init__()
        self._read_view, self._interval_seconds = read_view, interval_seconds
        self.pool = pool
        """The only pool that is shown; None shows all."""
        self.only_leaving = False
        self.view: TopView | None = None

    def compose(self) -> ComposeResult:
        yield Static("reading the cluster …", id="headline")
        with VerticalScroll(id="pools"):
            yield Static(id="pool-lines")
        with VerticalScroll(id="nodes"):
            yield Static(id="node-bars")
        with VerticalScroll(id="decisions"):
            yield Static(id="decision-lines")
        yield Static(id="problem")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#nodes").focus()
        self.action_refresh_now()
        self.set_interval(self._interval_seconds, self.action_refresh_now)

    def on_resize(self) -> None:
        self.show_view()

    def action_refresh_now(self) -> None:
        """Start to read the state in a thread; if a read is under way, its result is dropped."""
        self.run_worker(self._read, thread=True, exclusive=True)

    def _read(self) -> None:
        try:
            view = self._read_view()
        except Exception as error:  # noqa: BLE001 - whatever fails is shown, and the next read may succeed
            self.call_from_thread(self.accept_view, self.view, str(error) or type(error).__name__)
        else:
            self.call_from_thread(self.accept_view, view, "")

    def accept_view(self, view: TopView | None, problem: str) -> None:
        """Show the view that was read last, and the problem of the last read if it failed."""
        self.view = view
        problems = (problem,) if problem else view.problems if view is not None else ()
        self.query_one("#problem", Static).update("\n".join(problems[:3]))
        self.show_view()

    def action_next_pool(self) -> None:
        """Show only the next pool; after the last pool, show all of them."""
        names = [pool.name for pool in self.view.pools] if self.view is not None else []
        place = names.index(self.pool) + 1 if self.pool in names else 0
        self.pool = names[place] if place < len(names) else None
        self.show_view()

    def action_toggle_leaving(self) -> None:
        """Show only the nodes that are being removed, or all nodes again."""
        self.only_leaving = not self.only_leaving
        self.show_view()

    def action_toggle_decisions(self) -> None:
        """Hide the decisions, which gives nodes more room, or show them again."""
        decisions = self.query_one("#decisions")
        decisions.display = not decisions.display

    def show_view(self) -> None:
        """Draw the last view in the present size of the screen."""
        if self.view is None:
            return
        view = select_part(self.view, self.pool, only_leaving=self.only_leaving)
        width = max(20, self.size.width - 4)
        self.query_one("#headline", Static).update(draw_headline(view))
        self.query_one("#pool-lines", Static).update(draw_pools(view.pools, width))
        self.query_one("#node-bars", Static).update(draw_nodes(view.nodes, width))
        self.query_one("#decision-lines", Static).update(draw_decisions(view.decisions, width, 50))
