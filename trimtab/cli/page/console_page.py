"""Renders what a report draws on a terminal as an HTML page in the layout of all pages.

Tables become tables with header cells, panels become sections with headings, and colours become the classes of the
style sheet. All text is escaped. On a phone, each row of a table is a block in which every cell has the name of its
column.
"""

from collections.abc import Iterable, Sequence
from importlib import resources
from io import StringIO
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from rich.console import Group
from rich.panel import Panel
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from trimtab.cli.page.style import page_style
from trimtab.cli.printable_text import ReportConsole

_CLASSES = {
    "green": "good",
    "bright_green": "good",
    "yellow": "careful",
    "bright_yellow": "careful",
    "red": "bad",
    "bright_red": "bad",
    "magenta": "odd",
    "bright_magenta": "odd",
    "bright_black": "soft",
}
"""The name of a terminal colour → the class of the style sheet; other colours have no effect on a page."""

_PARAGRAPH = Markup('<p class="text">{}</p>')
_HEADINGS = {2: Markup("<h2>{}</h2>"), 3: Markup("<h3>{}</h3>")}
_SECTION = Markup('<section class="card">{}{}</section>')
_TABLE = Markup('{}<div class="scroll" tabindex="0"{}><table class="drawn">{}<tbody>{}</tbody></table></div>')
_REGION = Markup(' role="region" aria-label="{}"')


class PageConsole(ReportConsole):
    """A console that collects what is printed as the parts of a page."""

    has_any_width = True

    def __init__(self, table_level: int = 2) -> None:
        """`table_level`: the level of the headings of tables, 3 if they are below headings of the page's own."""
        super().__init__(width=160, file=StringIO())
        self._heading = _HEADINGS[table_level]
        self._parts: list[Markup] = []

    def print(self, *objects: Any, **options: Any) -> None:
        """Add the objects to the page."""
        self._parts += [self._render_block(printed) for printed in objects if printed != ""]

    def add_heading(self, text: str) -> None:
        """Adds a heading of the second level to the page."""
        self._parts.append(_HEADINGS[2].format(text))

    def add_picture(self, picture: Markup) -> None:
        """Adds a picture to the page, with its key."""
        self._parts.append(picture)

    def render_page(
        self, title: str, headline: str = "", facts: Sequence[tuple[str, str]] = (), origin: Markup | None = None
    ) -> str:
        """Returns the whole HTML document. `headline`: the answer, if the page has one, above the title; `facts`: the
        key figures, each with its meaning; `origin`: the line that says what the page is about."""
        text = resources.files("trimtab.cli.page").joinpath("layout.html").read_text("utf-8")
        body = Markup("\n").join(self._parts)
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        template = environment.from_string(text)
        page = {"title": title, "headline": headline, "origin": origin or "", "facts": facts, "body": body}
        return template.render(page, style=page_style()) + "\n"

    def _render_block(self, printed: Any) -> Markup:
        if isinstance(printed, Table):
            return self._render_table(printed)
        if isinstance(printed, Panel):
            heading = self._heading.format(self._render_inline(printed.title)) if printed.title else Markup("")
            return _SECTION.format(heading, self._render_block(printed.renderable))
        if isinstance(printed, Group):
            return Markup("").join(map(self._render_block, printed.renderables))
        text = self._render_inline(printed)
        return _PARAGRAPH.format(text) if text.strip() else Markup("")

    def _render_table(self, table: Table) -> Markup:
        title = self._render_inline(table.title) if table.title else Markup("")
        heading = self._heading.format(title) if title else Markup("")
        labels = [
            self._render_inline(column.header).striptags() if table.show_header else "" for column in table.columns
        ]
        head = Markup("")
        if table.show_header:
            cells = Markup("").join(
                Markup('<th scope="col"{}>{}</th>').format(_alignment(column), label) if label else Markup("<td></td>")
                for column, label in zip(table.columns, labels, strict=True)
            )
            head = Markup("<thead><tr>{}</tr></thead>").format(cells)
        rows = zip(*(column.cells for column in table.columns), strict=True)
        body = Markup("\n").join(self._render_row(row, table.columns, labels) for row in rows)
        region = _REGION.format(title.striptags()) if title else Markup("")
        return _TABLE.format(heading, region, head, body)

    def _render_row(self, row: Iterable[Any], columns: list[Column], labels: list[str]) -> Markup:
        cells = (
            Markup("<td{}{}>{}</td>").format(
                _alignment(column),
                Markup(' data-label="{}"').format(label) if label else Markup(""),
                self._render_cell(cell),
            )
            for cell, column, label in zip(row, columns, labels, strict=True)
        )
        return Markup("<tr>{}</tr>").format(Markup("").join(cells))

    def _render_cell(self, cell: Any) -> Markup:
        if isinstance(cell, Table):
            return self._render_table(cell)
        if isinstance(cell, Group):
            return Markup("<br>").join(map(self._render_cell, cell.renderables))
        return self._render_inline(cell)

    def _render_inline(self, printed: Any) -> Markup:
        if isinstance(printed, str):
            printed = Text(printed)
        if isinstance(printed, Text):
            # `render` knows only the styles of parts, and `assemble` makes the style of the whole text one of them.
            segments = ((segment.text, segment.style) for segment in Text.assemble(printed).render(self))
            return Markup("").join(_render_span(text, style) for text, style in segments)
        # Everything else, such as a number or a progress bar, is the text that a terminal would show.
        with ReportConsole(width=160, no_color=True, file=StringIO()) as plain:
            plain.print(printed, end="")
            return Markup.escape(plain.file.getvalue())  # type: ignore[attr-defined]


def _alignment(column: Column) -> Markup:
    return Markup(' class="number"') if column.justify == "right" else Markup("")


def _render_span(text: str, style: Style | None) -> Markup:
    escaped = Markup.escape(text)
    if style is None or not text.strip():
        return escaped
    name = _CLASSES.get(style.color.name, "") if style.color else ("soft" if style.dim else "")
    if name:
        escaped = Markup('<span class="{}">{}</span>').format(name, escaped)
    return Markup("<b>{}</b>").format(escaped) if style.bold else escaped
