"""A console for text that users of the cluster write: messages of Events, annotations, schedules, arguments.

Such text may contain escape sequences that move the cursor, hide lines or set the title of the reader's terminal. So
control characters are replaced, before rich adds the escape sequences of Trimtab's own colours. Text in brackets that
rich cannot read as markup is printed unchanged, so that it does not stop the report.
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
"""Characters that make a terminal show the text after them in another order."""
_REPLACED = {**_CONTROL_CHARACTERS, **_REORDERING}


def replace_control_characters(text: str) -> str:
    """Returns the text with all control characters replaced, except line ends and tabs."""
    return text if text.isascii() and text.isprintable() else text.translate(_REPLACED)


class ReportConsole(Console):
    """A console that can print every report, whatever characters its texts contain."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.push_render_hook(_PrintableText())

    def render_str(self, text: str, **options: Any) -> Text:
        try:
            return super().render_str(text, **options)
        except MarkupError:
            return Text(text)


def parse_markup(text: str) -> Text:
    """Returns the text with its markup applied; if the markup is invalid, the text unchanged."""
    try:
        return Text.from_markup(text)
    except MarkupError:
        return Text(text)


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
