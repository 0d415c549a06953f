"""A console for text that the cluster's users write: messages of Events, annotations, schedules, arguments.

With an escape sequence such text would move the cursor, hide lines or set the title of the terminal of whoever reads
the report. Colors are Trimtab's own: rich adds them after control characters are replaced. Text in brackets that rich
would read as invalid markup is printed as it is: it must not end the report.
"""

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.errors import MarkupError
from rich.segment import Segment
from rich.text import Text

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROL_CHARACTERS = {
    code: REPLACEMENT for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}  # fmt: skip
_REORDERING = dict.fromkeys((0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2066, 0x2067, 0x2068, 0x2069), REPLACEMENT)
"""Characters that show the text after them in another order than it has."""
_REPLACED = {**_CONTROL_CHARACTERS, **_REORDERING}


def replace_control_characters(text: str) -> str:
    """Returns the text without control characters, except line ends and tabs."""
    return text if text.isascii() and text.isprintable() else text.translate(_REPLACED)


class ReportConsole(Console):
    """A console that every report can be printed on, whatever its texts contain."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_PrintableText())

    def render_str(self, text: str, **options: Any) -> Text:
        try:
            return super().render_str(text, **options)
        except MarkupError:
            return Text(text)


def parse_markup(text: str) -> Text:
    """Returns the text with its markup; as it is if that is not valid."""
    try:
        return Text.from_markup(text)
    except MarkupError:
        return Text(text)


class _PrintableText(RenderHook):
    """A hook of a console: every text that it prints is printable."""

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
