"""A console for text that users of the cluster write: messages of Events, annotations, schedules, arguments.

Such text may contain escape sequences that move the cursor, hide lines or set the title of the reader's terminal. So
control characters are replaced, before rich adds the escape sequences of Trimtab's own colours. A text is plain unless
`styled` made it: brackets in a name are brackets, and never a colour or a link. Lines that are not part of a report are
printed by `print_text.print_text`, and no command calls `click.echo` itself.
"""

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.text import Text

from trimtab.cluster.control_characters import replace_control_characters


class ReportConsole(Console):
    """A console that can print every report, whatever characters its texts contain."""

    has_any_width = False
    """Whether a line may have any length, as in a pipe and on a page."""

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
        segments = list(console.render(self._part, options))
        # All texts together: a console divides lines at will, and each character is replaced by one character.
        printable = replace_control_characters("".join(text for text, _, control in segments if not control))
        start = 0
        for text, style, control in segments:
            if control:
                yield Segment(text, style, control)
                continue
            yield Segment(printable[start : start + len(text)], style, control)
            start += len(text)
