"""How the report of `trimtab admit` is shown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from trimtab.admission.handler import would_change_prefix
from trimtab.cli.plain_columns import cell_text
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, number_column
from trimtab.cli.reporting.draw import build_grid
from trimtab.cli.reports.admission import AdmitReport, ChangeReport, PodReport, PodShape, VpaAmountReport
from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count, join_first
from trimtab.policy.reasons import ALREADY_SET

GREY = "bright_black"


MAX_PANELS = 40
"""The number of pods with a panel of their own if --details is not set."""
MAX_KEPT_NAMES = 3
"""The largest number of fields, and of workloads, that a sentence about kept fields names."""


def _format_pod(pod: PodReport) -> Text:
    name = Text.assemble((f"{pod.kind} ", GREY), pod.name, (f"\nin {pod.namespace}", GREY))
    if pod.counted_with:
        name.append(f"\ncounted with {pod.counted_with}", style=GREY)
    return name


def _name_pod(pod: PodReport) -> str:
    return f"{pod.kind} {pod.namespace}/{pod.name}"


def _format_requests(pod: PodReport) -> RenderableType:
    if pod.refused is not None:
        return Text(f"refused by {pod.refused.by}", style="red")
    return Group(_name_amount(pod, "requests", "cpu"), _name_amount(pod, "requests", "memory"))


def _format_limits(pod: PodReport) -> RenderableType:
    return Group(_name_amount(pod, "limits", "cpu"), _name_amount(pod, "limits", "memory"))


def _format_qos(pod: PodReport) -> RenderableType:
    return _format_change(pod.before.qos if pod.before else None, pod.after.qos if pod.after else None)


def _if_admitted(cell: Callable[[PodReport], RenderableType]) -> Callable[[PodReport], RenderableType]:
    return lambda pod: "" if pod.refused is not None else cell(pod)


def _format_placement(pod: PodReport) -> RenderableType:
    lines = [
        line
        for line in (
            _format_runtime_class(pod),
            *[
                Text(_describe_placement(change), style="green")
                for change in pod.changes
                if change.field.startswith(_PLACEMENT_FIELDS)
            ],
        )
        if line
    ]
    return Group(*lines) if lines else Text("–", style=GREY)


def format_amount(pod: PodReport, side: str, resource: str) -> Text:
    """Returns an amount of the pod before and after, as in `250m → 100m`. `side`: requests or limits."""
    before, after = (_shape_value(shape, side, resource) for shape in (pod.before, pod.after))
    return _format_change(before, after)


def _name_amount(pod: PodReport, side: str, resource: str) -> Text:
    return Text("cpu " if resource == "cpu" else "mem ", style=GREY) + format_amount(pod, side, resource)


def _shape_value(shape: PodShape | None, side: str, resource: str) -> str | None:
    if shape is None:
        return None
    quantity_text = getattr(shape, side).get(resource)
    return None if quantity_text is None else format_short(resource, quantity_text)


def format_short(resource: str, quantity_text: str) -> str:
    """Returns the quantity in a short form for a table.

    Memory is in Ki, Mi or Gi, and from 10 cores on, cpu is in cores. There is at most one decimal."""
    if resource == "cpu" and (millicores := quantity.to_milli(quantity_text)) >= 10_000:
        return f"{millicores / 1000:.1f}".removesuffix(".0")
    if resource != "memory":
        return quantity_text
    number = float(quantity.to_whole_units(quantity_text))
    for unit in ("", "Ki", "Mi", "Gi"):
        if number < 1024 or unit == "Gi":
            break
        number /= 1024
    return f"{number:.1f}".removesuffix(".0") + unit


def _format_total(resource: str, quantity_text: str) -> str:
    """Returns the total of a resource as text: cpu in cores, memory in Ki, Mi or Gi."""
    if resource != "cpu":
        return format_short(resource, quantity_text)
    return f"{quantity.to_milli(quantity_text) / 1000:g} cores"


def _format_change(before: str | None, after: str | None) -> Text:
    if before == after:
        return Text(after or "–", style=GREY if after is None else "")
    return Text.assemble((before or "–", GREY), (" → ", GREY), (after or "none", "bold green"))


def _format_runtime_class(pod: PodReport) -> Text:
    """Returns the RuntimeClass with its overhead; empty if the pod has none."""
    after = pod.after
    if after is None or after.runtime_class is None:
        return Text()
    changed = pod.before is None or pod.before.runtime_class != after.runtime_class
    overhead = ", ".join(f"{value} {name}" for name, value in sorted(after.overhead.items()))
    text = Text(f"class {after.runtime_class}", style="bold green" if changed else "")
    return text.append(f" + {overhead}", style=GREY) if overhead else text


_PLACEMENT_FIELDS = ("nodeAffinity", "nodeSelector", "tolerations", "topologySpreadConstraints")


def _describe_placement(change: ChangeReport) -> str:
    kind, _, rest = change.field.partition("[")
    key = rest.rstrip("]")
    words = {
        "nodeAffinity.required": f"requires {key}",
        "nodeAffinity.preferred": f"prefers {key}",
        "nodeSelector": f"selects {key}",
        "tolerations": f"tolerates {key}",
        "topologySpreadConstraints": f"spreads over {key.rpartition('/')[2]}",
    }
    # A preference and a group of requirements are named with their values.
    names_label_only = kind == "nodeAffinity.required" and " " not in key
    return words.get(kind, kind) + (f" {change.after}" if names_label_only else "")


def _list_panels(report: AdmitReport, *, explain: bool) -> list[RenderableType]:
    """Returns a panel for each pod with details; pods whose details are the same share one."""
    pods: dict[tuple[str, ...], list[PodReport]] = {}
    details: dict[tuple[str, ...], list[RenderableType]] = {}
    for pod in report.pods:
        if lines := _list_details(pod, explain=explain):
            key = tuple(map(cell_text, lines))
            pods.setdefault(key, []).append(pod)
            details.setdefault(key, lines)
    return [
        Panel(Group(*details[key]), title=Text(_title_pods(alike), "bold"), title_align="left", border_style=GREY)
        for key, alike in pods.items()
    ]


def _title_pods(pods: Sequence[PodReport]) -> str:
    first, *others = map(_name_pod, pods)
    return f"{first} and {len(others)} more: {join_first(others, MAX_KEPT_NAMES)}" if others else first


def _list_details(pod: PodReport, *, explain: bool) -> list[RenderableType]:
    """Returns what happens to a pod: the refusal, the changes, the warnings; with `explain` also what stays."""
    lines: list[RenderableType] = [*_refusal_lines(pod), *_change_lines(pod), *_warning_lines(pod), *_vpa_lines(pod)]
    if explain:
        lines += [
            *[
                Text(
                    f"· {field_kept.field or 'policy'}: {field_kept.reason.text} "
                    f"({', '.join(filter(None, (field_kept.policy, field_kept.reason.code)))})",
                    style=GREY,
                )
                for field_kept in pod.left
                if not field_kept.warning
            ],
            *[Text(f"  {step}", style=GREY) for step in pod.steps],
        ]
    return lines


def _refusal_lines(pod: PodReport) -> list[Text]:
    if pod.refused is None and pod.refused_without_us is not None:
        return [
            Text(
                "the pod is admitted only with Trimtab: without it the pod is refused "
                f"({pod.refused_without_us.message})",
                style="yellow",
            )
        ]
    if pod.refused is None:
        return []
    return [Text(f"the pod is refused ({pod.refused.code}, {pod.refused.by}): {pod.refused.message}", style="red")]


def _change_lines(pod: PodReport) -> list[RenderableType]:
    """Returns a table with a line per change, including the changes that a policy in mode warn or audit would make."""
    rows = []
    for change in pod.changes:
        why = f"{change.policy}: {change.reason.text}" if change.policy else change.reason.text
        rows.append((_format_field(change), _format_result(change, "bold green"), Text(why, style=GREY)))
    for change in pod.would:
        why = f"the mode of policy {change.policy} is not `apply`, so the pod does not get this change"
        rows.append((_format_field(change), _format_result(change, "yellow"), Text(why, style=GREY)))
    return [build_grid(rows)] if rows else []


def _format_result(change: ChangeReport, style: str) -> Text:
    after = Text("removed" if change.after is None else str(change.after), style=style)
    return after if change.before is None else Text.assemble((f"{change.before} → ", GREY), after)


def _format_field(change: ChangeReport) -> Text:
    """Returns `containers[app].limits.cpu` as `app limits.cpu`."""
    part, _, rest = change.field.partition("[")
    name, _, inner = rest.partition("].")
    return Text.assemble((name, "bold"), " ", inner) if part.endswith("ontainers") else Text(change.field)


def _warning_lines(pod: PodReport) -> list[Text]:
    """Returns the warnings of the pod, except those that a row of its changes shows."""
    in_rows = tuple(would_change_prefix(change.policy, change.field) for change in pod.would)
    warnings = [warning for warning in pod.warnings if not warning.startswith(in_rows)]
    lines = [Text(f"! {warning.removeprefix('trimtab: ')}", style="yellow") for warning in warnings]
    if pod.problem:
        lines.append(Text(f"! the pod stays unchanged because of a bug in Trimtab: {pod.problem}", style="red"))
    return lines


def _vpa_lines(pod: PodReport) -> list[Text]:
    """Returns a line with what the VPA's webhook sets, and one with the refusal of the pod that follows from it."""
    if pod.vpa is None:
        return []
    amounts = "; ".join(map(_format_vpa_amount, pod.vpa.amounts))
    cap = "; a LimitRange does not permit this, so the VPA caps it" if pod.vpa.is_capped else ""
    lines = [Text(f"! VPA {pod.vpa.name} sizes the pod in the same request: {amounts}{cap}", style="yellow")]
    if (refused := pod.vpa.refused) is not None:
        text = f"with these amounts, the pod is refused ({refused.code}, {refused.by}): {refused.message}"
        lines.append(Text(text, style="red"))
    return lines


def _format_vpa_amount(amount: VpaAmountReport) -> str:
    request = f"{amount.request_before or 'none'} → {amount.request}"
    limit = f" (limit {amount.limit_before} → {amount.limit})" if amount.limit != amount.limit_before else ""
    return f"{amount.container} {amount.resource} {request}{limit}"


def describe_totals(report: AdmitReport) -> Iterator[Text]:
    """Yields how many pods change, the requests of all replicas, and what policies leave as it is written."""
    totals = report.totals
    text = Text.assemble(
        (f"{totals.changed} of {format_count(totals.pods, 'pod')} changed", "bold"),
        (f", {format_count(totals.refused, 'pod')} refused" if totals.refused else "", "red"),
        (
            f", {format_count(totals.admitted_only_with_us, 'pod')} admitted only with Trimtab"
            if totals.admitted_only_with_us
            else "",
            GREY,
        ),
        ".  Requests of all replicas: ",
    )
    for resource in ("cpu", "memory"):
        before, after = (side[resource] for side in (totals.requests_before, totals.requests_after))
        text.append(f"{resource} ", style=GREY).append(
            _format_change(_format_total(resource, before), _format_total(resource, after))
        )
        text.append("  ")
    yield text
    yield from (Text(line, style=GREY) for line in _already_set_lines(report))


def _already_set_lines(report: AdmitReport) -> list[str]:
    """Returns one sentence for each policy that left fields as the authors of the pods set them, and at last what would
    replace these values."""
    workloads: dict[str, dict[str, None]] = {}
    fields: dict[str, dict[str, None]] = {}
    examples: dict[str, str] = {}
    for pod in report.pods:
        for kept in pod.left:
            if kept.reason.code == ALREADY_SET.name and not kept.warning:
                workloads.setdefault(kept.policy, {})[_name_pod(pod)] = None
                fields.setdefault(kept.policy, {})[kept.field.rpartition("].")[2]] = None
                examples.setdefault(kept.policy, kept.reason.text)
    lines = []
    for policy, names in workloads.items():
        kept_fields, owners = (join_first(list(one), MAX_KEPT_NAMES) for one in (fields[policy], names))
        lines.append(f"{policy} leaves {kept_fields} of {owners} as written: {examples[policy]} ({ALREADY_SET.name}).")
    return [*lines, f"{ALREADY_SET.todo} --details names each field."] if lines else []


def view_admission(*, explain: bool) -> ReportView[AdmitReport]:
    """Returns a row per pod, a panel with its changes and their reasons, then totals."""

    def describe_pods(report: AdmitReport) -> Iterator[RenderableType]:
        panels = _list_panels(report, explain=explain)
        max_panels = len(panels) if explain else MAX_PANELS
        yield from panels[:max_panels]
        if len(panels) > max_panels:
            more = format_count(len(panels) - max_panels, "more panel has", "more panels have")
            yield Text(
                f"{more} other changes: --details prints all of them, and -o json contains all of them", style=GREY
            )

    return ReportView(
        title="trimtab admit",
        sections=(_PODS, replace(_CHANGES, lines=describe_pods)),
        after=describe_totals,
        notes=lambda report: report.notes,
    )


_PODS: Section[AdmitReport, PodReport] = Section(
    key="pods",
    title="How the policies change these pods",
    rows=lambda report: report.pods,
    columns=(
        Column("Pods of", _format_pod, value=_name_pod),
        number_column("×", lambda pod: pod.replicas, "{}", rank=1),
        Column("Requests", _format_requests),
        Column("Limits", _if_admitted(_format_limits)),
        Column("QoS", _if_admitted(_format_qos), rank=2),
        Column("Runs on", _if_admitted(_format_placement), rank=3),
    ),
    name=lambda pod: f"{pod.kind}/{pod.name}",
    empty=None,
    frame=Frame.ROWS,
)


class _PodChange(NamedTuple):
    pod: PodReport
    change: ChangeReport


_CHANGES: Section[AdmitReport, _PodChange] = Section(
    key="changes",
    rows=lambda report: [_PodChange(pod, change) for pod in report.pods for change in pod.changes],
    columns=(
        Column("Pods of", lambda row: _name_pod(row.pod)),
        Column("field", lambda row: row.change.field),
        Column("change", lambda row: _format_result(row.change, "")),
        Column("policy", lambda row: row.change.policy),
        Column("why", lambda row: row.change.reason.text),
    ),
)
