"""The report of `trimtab recommend` as one HTML page: every container with its usage curve and its percentiles."""

from collections.abc import Sequence
from importlib import resources

from jinja2 import Environment
from markupsafe import Markup

from trimtab.cli.page.before_after import Change, draw_changes
from trimtab.cli.page.origin import find_origin, render_origin
from trimtab.cli.page.style import page_style
from trimtab.cli.recommend.report import ContainerReport, DayReport, RecommendReport, ResourceReport, TotalReport
from trimtab.cli.recommend.table import (
    describe_changes,
    describe_reasons,
    describe_total,
    format_change,
    format_confidence,
    format_dollars,
    format_headline,
    format_total,
)
from trimtab.cluster import quantity

WIDE, HIGH = 320, 90
_SVG = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
_BAND = Markup('<path class="band" d="{}"/>')
_LINE = Markup('<path class="{}" d="{}"/>')
_LEVEL = Markup('<path class="{}" d="M0 {}h{}"><title>{}</title></path>')


def render_page(report: RecommendReport) -> str:
    """Returns an HTML document that loads nothing; all values of the report are escaped."""
    text = resources.files("trimtab.cli.recommend").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    rows = [_table_row(row) for row in report.containers]
    return (
        environment.from_string(text).render(
            style=page_style(),
            headline=format_headline(report),
            origin=render_origin(find_origin()),
            change=_draw_total(report.total),
            report=report,
            rows=rows,
            amounts=format_total,
            money=format_dollars,
            since=describe_changes,
            in_all=describe_total,
        )
        + "\n"
    )


def _draw_total(total: TotalReport) -> Markup:
    """Returns the picture of all requests, now and as proposed; empty if the present requests are not known."""
    rows = (
        ("CPU", total.cpu_now, total.cpu_proposed, "{:,.2f} cores"),
        ("Memory", total.memory_now, total.memory_proposed, "{:,.2f} GiB"),
        ("Cost of the requests", total.monthly_now, total.monthly_proposed, "${:,.2f} a month"),
    )
    changes = [
        Change(name=name, before=now, before_text=form.format(now), after=then, after_text=form.format(then))
        for name, now, then, form in rows
        if now is not None and then is not None
    ]
    return draw_changes(changes, "with the proposed requests", has_one_unit=False)


def _table_row(row: ContainerReport) -> tuple[ContainerReport, str, str, Markup, Markup, str, str]:
    cpu, memory = (format_change(part, is_in_snapshot=row.replicas is not None) for part in (row.cpu, row.memory))
    return (
        row,
        cpu,
        memory,
        _resource_curve(row, "cpu"),
        _resource_curve(row, "memory"),
        describe_reasons(row),
        format_confidence(row),
    )


def _resource_curve(row: ContainerReport, resource: str) -> Markup:
    part = row.cpu if resource == "cpu" else row.memory
    return render_curve(part, resource) if part.curve else Markup("")


def render_curve(part: ResourceReport, resource: str) -> Markup:
    """Returns an SVG: P5 to P95 of each day as a band, its median and its maximum, and the present and the proposed
    request as lines."""
    now, proposed = (_base_units(resource, text) for text in (part.now, part.proposed))
    top = max([now or 0.0, proposed or 0.0, *(day.max for day in part.curve)]) * 1.05 or 1.0
    levels = (("now", now, part.now), ("proposed", proposed, part.proposed))
    marks = [_LEVEL.format(kind, _y(value, top), WIDE, f"{kind} {text}") for kind, value, text in levels if value]
    drawn = Markup("").join([*_daily_paths(part.curve, top), *marks])
    return _SVG.format(WIDE, HIGH, f"{resource} by day", drawn)


def _daily_paths(days: Sequence[DayReport], top: float) -> list[Markup]:
    step = WIDE / max(1, len(days) - 1)
    xs = [round(n * step, 1) for n in range(len(days))]
    if len(days) == 1:
        days, xs = [days[0], days[0]], [0.0, float(WIDE)]

    def path(values: Sequence[float], at: Sequence[float] = xs) -> str:
        return "L".join(f"{x} {_y(value, top)}" for x, value in zip(at, values, strict=True))

    low, high = [day.p5 for day in days], [day.p95 for day in days]
    band = f"M{path(high)}L{path(low[::-1], xs[::-1])}Z"
    lines = (("max", [day.max for day in days]), ("median", [day.p50 for day in days]))
    return [_BAND.format(band), *(_LINE.format(kind, "M" + path(values)) for kind, values in lines)]


def _y(value: float, top: float) -> float:
    return round(HIGH * (1 - value / top), 1)


def _base_units(resource: str, text: str | None) -> float | None:
    if text is None:
        return None
    return quantity.scheduler_value(resource, text) / (1000 if resource == "cpu" else 1)
