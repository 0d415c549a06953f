"""What the cluster's users write neither steers a terminal nor ends a report."""

from io import StringIO

import pytest
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trimtab.cli.page.console_page import PageConsole
from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.printable_text import ReportConsole
from trimtab.cluster.control_characters import replace_control_characters

HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\rd\x9be\u202ef"
INVALID_MARKUP = "[/nothing] [bold"


def table(text: str) -> Table:
    drawn = Table("name", title="Pods")
    drawn.add_row(Text(text, style="red"))
    return drawn


@pytest.mark.parametrize(
    "part", [Text(HOSTILE), HOSTILE, table(HOSTILE), Panel(Group(Text(HOSTILE)), title="Frame")], ids=type
)
@pytest.mark.parametrize("is_terminal", [True, False])
def test_no_control_character_is_printed(part: object, is_terminal: bool) -> None:
    file = StringIO()
    console = (
        ReportConsole(file=file, force_terminal=True, color_system="truecolor", width=80)
        if is_terminal
        else PlainConsole(file=file, width=80)
    )
    console.print(part)
    printed = file.getvalue()
    assert "\x1b[2J" not in printed
    assert not {"\x07", "\r", "\x9b", "\u202e"} & {*printed}
    assert "title" in printed


def test_reports_keep_their_colors_lines_and_other_scripts() -> None:
    file = StringIO()
    ReportConsole(file=file, force_terminal=True, color_system="standard").print(Text("größer\t…\nзелень", style="red"))
    assert file.getvalue().startswith("\x1b[31mgrößer")
    assert replace_control_characters("größer\t…\nзелень") == "größer\t…\nзелень"


@pytest.mark.parametrize("console", [ReportConsole(file=StringIO()), PlainConsole(file=StringIO()), PageConsole()])
def test_invalid_markup_is_text(console: ReportConsole) -> None:
    """A schedule or the message of an Event may have brackets: one of them ended the report for everybody."""
    drawn = Table("name", title="Pods")
    drawn.add_row(INVALID_MARKUP)
    for part in (drawn, INVALID_MARKUP):
        console.print(part)
    printed = console.render_page("t") if isinstance(console, PageConsole) else console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count("[/nothing]") == 2
