"""The report of `trimtab admit` on a terminal.

The report of `trimtab admit --running` on a terminal.
"""

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trimtab.admission.handler import beginning_of_would
from trimtab.cli.admit.report import AdmitReport, ChangeReport, PodReport, PodShape
from trimtab.cli.admit.running_pods import RunningFindingReport, RunningReport
from trimtab.cluster import quantity

_GREY = "bright_black"


MOST_DETAILS = 40
"""Panels that somebody still scrolls through."""


def draw(console: Console, report: AdmitReport, *, explain: bool) -> None:
    """A row per pod; below it what was changed and why; then totals."""
    console.print(_overview(report))
    told = [details for pod in report.pods if (details := _details(pod, explain=explain)) is not None]
    most = len(told) if explain else MOST_DETAILS
    for details in told[:most]:
        console.print(details)
    if len(told) > most:
        more = f"… and {len(told) - most} more workloads with changes; --explain prints them all, -o json has them all"
        console.print(Text(more, style=_GREY))
    _totals(console, report)


def _overview(report: AdmitReport) -> Table:
    table = Table(title="What becomes of these pods", title_justify="left", header_style="bold", expand=False)
    for name in ("Pods of", "×", "Requests", "Limits", "QoS", "Runs on"):
        table.add_column(name, overflow="fold", justify="right" if name == "×" else "left")
    for pod in report.pods:
        table.add_row(*_row(pod), end_section=True)
    return table


def _row(pod: PodReport) -> list[RenderableType]:
    name = Text.assemble((f"{pod.kind} ", _GREY), pod.name, (f"\nin {pod.namespace}", _GREY))
    if pod.refused is not None:
        return [name, str(pod.replicas), Text(f"refused by {pod.refused.by}", style="red"), "", "", ""]
    return [
        name,
        str(pod.replicas),
        Group(_amount(pod, "requests", "cpu"), _amount(pod, "requests", "memory")),
        Group(_amount(pod, "limits", "cpu"), _amount(pod, "limits", "memory")),
        _moved(pod.before.qos if pod.before else None, pod.after.qos if pod.after else None),
        _where(pod),
    ]


def _where(pod: PodReport) -> RenderableType:
    lines = [line for line in (_class(pod), *_placement(pod)) if line]
    return Group(*lines) if lines else Text("–", style=_GREY)


def _amount(pod: PodReport, side: str, resource: str) -> Text:
    before, after = (_of(shape, side, resource) for shape in (pod.before, pod.after))
    return Text("cpu " if resource == "cpu" else "mem ", style=_GREY) + _moved(before, after)


def _of(shape: PodShape | None, side: str, resource: str) -> str | None:
    if shape is None:
        return None
    written = getattr(shape, side).get(resource)
    return None if written is None else human(resource, written)


def human(resource: str, written: str) -> str:
    """Short enough for a table: memory in Ki, Mi, Gi and many cores in cores, with at most one place."""
    if resource == "cpu" and (millicores := quantity.milli(written)) >= 10_000:
        return f"{millicores / 1000:.1f}".removesuffix(".0")
    if resource != "memory":
        return written
    number = float(quantity.whole(written))
    for unit in ("", "Ki", "Mi", "Gi"):
        if number < 1024 or unit == "Gi":
            break
        number /= 1024
    return f"{number:.1f}".removesuffix(".0") + unit


def _sum(resource: str, written: str) -> str:
    """Totals in one unit: cores for cpu."""
    if resource != "cpu":
        return human(resource, written)
    return f"{quantity.milli(written) / 1000:.1f}".removesuffix(".0") + " cores"


def _moved(before: str | None, after: str | None) -> Text:
    if before == after:
        return Text(after or "–", style=_GREY if after is None else "")
    return Text.assemble((before or "–", _GREY), (" → ", _GREY), (after or "none", "bold green"))


def _class(pod: PodReport) -> Text:
    """The RuntimeClass with its overhead; empty where the pod has none."""
    after = pod.after
    if after is None or after.runtime_class is None:
        return Text()
    changed = pod.before is None or pod.before.runtime_class != after.runtime_class
    overhead = ", ".join(f"{value} {name}" for name, value in sorted(after.overhead.items()))
    text = Text(f"class {after.runtime_class}", style="bold green" if changed else "")
    return text.append(f" + {overhead}", style=_GREY) if overhead else text


_PLACING = ("nodeAffinity", "nodeSelector", "tolerations", "topologySpreadConstraints")


def _placement(pod: PodReport) -> list[Text]:
    return [Text(_placed(change), style="green") for change in pod.changes if change.field.startswith(_PLACING)]


def _placed(change: ChangeReport) -> str:
    kind, _, rest = change.field.partition("[")
    key = rest.rstrip("]")
    words = {
        "nodeAffinity.required": f"needs {key}",
        "nodeAffinity.preferred": f"likes {key}",
        "nodeSelector": f"selects {key}",
        "tolerations": f"tolerates {key}",
        "topologySpreadConstraints": f"spread over {key.rpartition('/')[2]}",
    }
    return words.get(kind, kind) + (f" {change.after}" if kind.startswith("nodeAffinity") else "")


def _details(pod: PodReport, *, explain: bool) -> RenderableType | None:
    lines = [*_refusal(pod), *_changes(pod), *_warnings(pod)]
    if explain:
        lines += [*_left(pod), *_steps(pod)]
    if not lines:
        return None
    title = f"[bold]{escape(pod.kind)} {escape(pod.namespace)}/{escape(pod.name)}[/]"
    return Panel(Group(*lines), title=title, title_align="left", border_style=_GREY)


def _refusal(pod: PodReport) -> list[Text]:
    if pod.refused is None and pod.refused_without_us is not None:
        return [Text(f"saved: without us it is refused ({pod.refused_without_us.message})", style="bold green")]
    if pod.refused is None:
        return []
    return [Text(f"refused ({pod.refused.code}, {pod.refused.by}): {pod.refused.message}", style="red")]


def _changes(pod: PodReport) -> list[RenderableType]:
    """One line a change; changes that are alike for several containers share one."""
    table = Table.grid(padding=(0, 2))
    for ratio in (3, 3, 5):
        table.add_column(overflow="fold", ratio=ratio)
    for change in pod.changes:
        why = f"{change.policy}: {change.reason.text}" if change.policy else change.reason.text
        table.add_row(_field(change), _became(change, "bold green"), Text(why, style=_GREY))
    for change in pod.would:
        table.add_row(_field(change), _became(change, "yellow"), Text(f"{change.policy} only watches", style=_GREY))
    return [table] if table.row_count else []


def _became(change: ChangeReport, style: str) -> Text:
    after = Text("removed" if change.after is None else str(change.after), style=style)
    return after if change.before is None else Text.assemble((f"{change.before} → ", _GREY), after)


def _field(change: ChangeReport) -> Text:
    """`containers[app].limits.cpu` reads better as `app limits.cpu`."""
    part, _, rest = change.field.partition("[")
    name, _, inner = rest.partition("].")
    return Text.assemble((name, "bold"), " ", inner) if part.endswith("ontainers") else Text(change.field)


def _warnings(pod: PodReport) -> list[Text]:
    """Those that no row of the changes tells."""
    in_rows = tuple(beginning_of_would(change.policy, change.field) for change in pod.would)
    warnings = [warning for warning in pod.warnings if not warning.startswith(in_rows)]
    found = [Text(f"! {warning.removeprefix('trimtab: ')}", style="yellow") for warning in warnings]
    if pod.problem:
        found.append(Text(f"! unchanged, and that is our bug: {pod.problem}", style="red"))
    return found


def _left(pod: PodReport) -> list[Text]:
    return [
        Text(f"· {left.field or 'policy'}: {left.reason.text} ({left.policy}, {left.reason.code})", style=_GREY)
        for left in pod.left
        if not left.warning
    ]


def _steps(pod: PodReport) -> list[Text]:
    return [Text(f"  {step}", style=_GREY) for step in pod.steps]


def _totals(console: Console, report: AdmitReport) -> None:
    totals = report.totals
    text = Text.assemble(
        (f"{totals.changed} of {totals.pods}", "bold"), " changed",
        (f", {totals.refused} refused", "red" if totals.refused else _GREY), ".  Requests of all replicas: ",
    )  # fmt: skip
    for resource in ("cpu", "memory"):
        before, after = (side[resource] for side in (totals.requests_before, totals.requests_after))
        text.append(f"{resource} ", style=_GREY).append(_moved(_sum(resource, before), _sum(resource, after)))
        text.append("  ")
    console.print(text)
    for note in report.notes:
        console.print(Text(note, style=_GREY))


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


def _findings(shown: list[RunningFindingReport]) -> Table:
    table = Table(title="Running pods that are not as policy says", title_justify="left", header_style="bold")
    for name in ("Pods of", "×", "Policy", "Why", "What differs"):
        table.add_column(name, overflow="fold", justify="right" if name == "×" else "left")
    for found in shown:
        kind, _, name = found.owner.partition("/")
        owner = Text.assemble((f"{kind} ", _GREY), name, (f"\nin {found.namespace}", _GREY))
        why = Text.assemble(found.reason.code, (f"\n{found.reason.text}", _GREY))
        table.add_row(owner, str(found.pods), found.policy or "–", why, Text(_finding_changes(found)), end_section=True)
    return table


def _finding_changes(found: RunningFindingReport) -> str:
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
