"""A console for text that users of the cluster write: messages of Events, annotations, schedules, arguments.

Such text may contain escape sequences that move the cursor, hide lines or set the title of the reader's terminal. So
control characters are replaced, before rich adds the escape sequences of Trimtab's own colours. A text is plain unless
`styled` made it: brackets in a name are brackets, and never a colour or a link. Lines that are not part of a report are
printed by `print_text.print_text`, and no command calls `click.echo` itself.
"""

import re
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from trimtab.cluster.control_characters import replace_control_characters


def csv_cell(value: object) -> object:
    """Returns the value of a cell. A text that a spreadsheet would compute as a formula begins with an apostrophe, so
    that the spreadsheet shows it as text; control characters are replaced. Numbers and quantities stay as they are."""
    if not isinstance(value, str):
        return value
    text = replace_control_characters(value)
    is_formula = text.lstrip().startswith(_FORMULA_SIGNS) and _NUMBER.fullmatch(text) is None
    return f"'{text}" if is_formula else text


_FORMULA_SIGNS = ("=", "+", "-", "@", "\N{FULLWIDTH EQUALS SIGN}", "\N{FULLWIDTH PLUS SIGN}",
                  "\N{FULLWIDTH HYPHEN-MINUS}", "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip
"""How a formula begins in a spreadsheet (OWASP, CSV Injection)."""


_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?[A-Za-z]{0,2}")
"""A number, or a quantity such as +50m and -256Mi: its first character is a digit, so it names no cell and no
function."""


class ReportConsole(Console):
    """A console that can print every report, whatever characters its texts contain."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_PrintableText())

    def render_str(self, text: str, **options: Any) -> Text:
        """Returns the text as it is: brackets and colons are no markup and no emoji."""
        return super().render_str(text, **{**options, "markup": False, "emoji": False})


def styled(markup: str) -> Text:
    """Returns a literal of Trimtab's own with its markup applied. This is the only place where markup is read; texts of
    others are joined to it with `Text.assemble`."""
    return Text.from_markup(markup, emoji=False)


class _PrintableText(RenderHook):
    """A hook of a console that replaces control characters in every text that it prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(part) for part in renderables]


class _Printable:
    def __init__(self, part: ConsoleRenderable) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._segments(console, options)

    def _segments(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self._part, options):
            yield Segment(text if control else replace_control_characters(text), style, control)
