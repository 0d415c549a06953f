"""The dashboards as pictures: which panels there are and where, drawn from their JSON. They show no data."""

from html import escape
from textwrap import wrap
from typing import Any

COLUMN, ROW, GAP, MARGIN = 46, 11, 4, 12
"""Pixels of a column and of a line of Grafana's grid of 24 columns; the space between panels; the edge."""
PLOT_HEIGHT, LETTER = 24, 5.6
_STYLE = """
text{font:10px system-ui,sans-serif;fill:#1f2733}
.name{font-weight:600;font-size:15px}.row{font-weight:600;font-size:11px}
.panel{fill:#fff;stroke:#c9d1dc}.back{fill:#eef1f5}.mark{fill:none;stroke:#2563a8;stroke-width:1.5}
.block{fill:#2563a8;stroke:none}
@media (prefers-color-scheme:dark){text{fill:#e5e9f0}.panel{fill:#1b2129;stroke:#3b4452}.back{fill:#12161d}
.mark{stroke:#7fb2ea}.block{fill:#7fb2ea}}
""".strip()
_LINE = ((0, 0.7), (0.2, 0.5), (0.4, 0.6), (0.6, 0.3), (0.8, 0.4), (1, 0.1))


def draw_dashboard(dashboard: dict[str, Any]) -> str:
    """Return the panels of the dashboard as SVG, each with its title and the kind of its graph."""
    panels = dashboard["panels"]
    bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    width, height = 24 * COLUMN + 2 * MARGIN, bottom * ROW + 2 * MARGIN + 24
    title = escape(dashboard["title"])
    parts = "\n".join(_draw_panel(panel) for panel in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>The panels of the dashboard {title}, without data</title>\n<style>{_STYLE}</style>\n"
        f'<rect class="back" width="{width}" height="{height}"/>\n'
        f'<text class="name" x="{MARGIN}" y="{MARGIN + 14}">{title}</text>\n{parts}\n</svg>\n'
    )


def _draw_panel(panel: dict[str, Any]) -> str:
    grid = panel["gridPos"]
    left, top = grid["x"] * COLUMN + MARGIN, grid["y"] * ROW + MARGIN + 24
    width, height = grid["w"] * COLUMN - GAP, grid["h"] * ROW - GAP
    title = panel["title"]
    if panel["type"] == "row":
        return f'<text class="row" x="{left}" y="{top + ROW - 2}">{escape(title)}</text>'
    lines = wrap(title, max(8, int((width - 10) / LETTER)))[:3]
    texts = "".join(
        f'<text x="{left + 6}" y="{top + 13 + 12 * number}">{escape(line)}</text>' for number, line in enumerate(lines)
    )
    plot_top = top + height - PLOT_HEIGHT - 8
    return f'<rect class="panel" x="{left}" y="{top}" width="{width}" height="{height}" rx="3"/>{texts}' + _draw_kind(
        panel["type"], left + 8, plot_top, width - 16
    )


def _draw_kind(kind: str, left: int, top: int, width: int) -> str:
    """Return a sign for the kind of a panel: a line, a number, bars, or the lines of a table."""
    if kind == "timeseries":
        points = " ".join(f"{left + x * width:.0f},{top + y * PLOT_HEIGHT:.0f}" for x, y in _LINE)
        return f'<polyline class="mark" points="{points}"/>'
    if kind == "stat":
        return f'<rect class="block" x="{left}" y="{top + 6}" width="{min(width, 46)}" height="12" rx="2"/>'
    if kind == "table":
        rows = (f"M{left} {top + step}h{width}" for step in (4, 12, 20))
        return f'<path class="mark" d="{"".join(rows)}"/>'
    return "".join(
        f'<rect class="block" x="{left}" y="{top + 8 * number}" width="{width * share:.0f}" height="5"/>'
        for number, share in enumerate((0.8, 0.55, 0.3))
    )
