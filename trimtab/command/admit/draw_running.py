"""The report of `trimtab admit --running` on a terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.command.admit.running import FindingReport, RunningReport

_GREY = "bright_black"
_QUIET = ("watching", "left-out")
MOST_ROWS = 60


def draw_running(console: Console, report: RunningReport, *, explain: bool) -> None:
    """A row per owner and cause, then the policies' numbers."""
    shown = [found for found in report.findings if explain or found.what not in _QUIET]
    if shown:
        console.print(_findings(shown if explain else shown[:MOST_ROWS]))
    if len(shown) > MOST_ROWS and not explain:
        console.print(Text(f"… and {len(shown) - MOST_ROWS} more; --explain prints them all", style=_GREY))
    console.print(_policies(report))
    if report.overhead.wrong is not None:
        console.print(Text(report.overhead.wrong.text, style="red"))
    wrong = sum(found.pods for found in report.findings if found.what == "unpatched")
    console.print(Text.assemble((f"{wrong} of {report.pods}", "bold"), " running pods lack what policy says."))
    for note in report.notes:
        console.print(Text(note, style=_GREY))


def _findings(shown: list[FindingReport]) -> Table:
    table = Table(title="Running pods that are not as policy says", title_justify="left", header_style="bold")
    for name in ("Pods of", "×", "Policy", "Why", "What differs"):
        table.add_column(name, overflow="fold", justify="right" if name == "×" else "left")
    for found in shown:
        kind, _, name = found.owner.partition("/")
        owner = Text.assemble((f"{kind} ", _GREY), name, (f"\nin {found.namespace}", _GREY))
        why = Text.assemble(found.reason.code, (f"\n{found.reason.text}", _GREY))
        table.add_row(owner, str(found.pods), found.policy or "–", why, Text(_changes(found)), end_section=True)
    return table


def _changes(found: FindingReport) -> str:
    rows = [f"{c.field}: {_word(c.before)} → {_word(c.after)}" for c in found.changes[:6]]
    return "\n".join([*rows, *(["…"] if len(found.changes) > 6 else [])]) or "–"


def _word(value: object) -> str:
    return "none" if value is None else str(value)


def _policies(report: RunningReport) -> Table:
    table = Table(title="Policies and running pods", title_justify="left", header_style="bold")
    names = ("Policy", "Mode", "Matched", "Changed", "Unpatched", "Would", "Skipped", "Overruled")
    for name in names:
        table.add_column(name, justify="left" if name in ("Policy", "Mode") else "right")
    for one in report.policies:
        numbers = (one.matched, one.changed, one.unpatched, one.would, one.skipped, one.overruled)
        table.add_row(one.policy, one.mode, *(str(number) if number else "–" for number in numbers))
    return table
