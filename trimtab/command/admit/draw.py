"""The report of `trimtab admit` on a terminal."""

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trimtab.cluster import quantity
from trimtab.command.admit.report import AdmitReport, ChangeReport, PodReport, Shape

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


def _of(shape: Shape | None, side: str, resource: str) -> str | None:
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
    found = [Text(f"! {warning.removeprefix('trimtab: ')}", style="yellow") for warning in pod.warnings]
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
