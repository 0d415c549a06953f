"""A dashboard in few words, and what Grafana wants to have of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${source}"}
SCHEMA = 39
"""Grafana 10.4 and newer read it."""
WIDTH, HEIGHT = 24, 8
"""Grafana's grid; the height of a panel."""


WORK_UNIT = "namespace"
"""The label whose values are counted as units of work until another one is chosen."""


def without_choices(asks: str, rate_interval: str = "5m") -> str:
    """The query with what Grafana fills in: all pools, the default unit of work, a window for rates."""
    return asks.replace("$pool", ".*").replace("$unit", WORK_UNIT).replace("$__rate_interval", rate_interval)


@dataclass(frozen=True, slots=True)
class Query:
    asks: str
    """PromQL; `$pool` and `$unit` are what was chosen above, `$__rate_interval` what fits the scrapes."""
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The colour of a figure from a value on; the first one, without a value, is that of all lower figures."""

    value: float | None
    color: str


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    says: str
    """What the figure means, and what an empty one means."""
    queries: tuple[Query, ...]
    unit: str = "short"
    """Grafana's name of it."""
    kind: str = "timeseries"
    stacked: bool = False
    thresholds: tuple[Threshold, ...] = ()
    """The colours of a figure, from the lowest value on; without any it has none."""
    opens: str = ""
    """The uid of the dashboard that a click opens; empty for none."""


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    uid: str
    title: str
    says: str
    rows: tuple[Row, ...]
    pools: bool = False
    """Can pools be chosen, and the label that tells units of work apart?"""

    @property
    def panels(self) -> Iterator[Panel]:
        for row in self.rows:
            yield from row.panels


def drawn(board: Dashboard) -> dict[str, Any]:
    """The JSON model that Grafana imports."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.says,
        "tags": ["trimtab"],
        "editable": True,
        "schemaVersion": SCHEMA,
        "version": 1,
        "time": {"from": "now-24h", "to": "now"},
        "refresh": "1m",
        "graphTooltip": 1,
        "templating": {"list": list(_choices(board))},
        "panels": list(_placed(board)),
        "links": [{"type": "dashboards", "tags": ["trimtab"], "title": "Trimtab", "asDropdown": True}],
    }


def _choices(board: Dashboard) -> Iterator[dict[str, Any]]:
    yield {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    if board.pools:
        yield {
            "name": "pool",
            "label": "Pool",
            "type": "query",
            "datasource": SOURCE,
            "refresh": 2,
            "sort": 1,
            "query": {"query": "label_values(trimtab_compactor_nodes, pool)", "refId": "pool"},
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }
        yield {
            "name": "unit",
            "label": "Work unit (a label)",
            "type": "textbox",
            "query": WORK_UNIT,
            "current": {"text": WORK_UNIT, "value": WORK_UNIT},
        }


def _placed(board: Dashboard) -> Iterator[dict[str, Any]]:
    """Rows below each other, their panels side by side."""
    number, top = 0, 0
    for row in board.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
        }
        width = WIDTH // len(row.panels)
        for place, panel in enumerate(row.panels):
            number += 1
            grid = {"x": place * width, "y": top + 1, "w": width, "h": HEIGHT}
            yield {"id": number, "gridPos": grid, **_panel(panel)}
        top += HEIGHT + 1


def _panel(panel: Panel) -> dict[str, Any]:
    custom = {"stacking": {"mode": "normal"}, "fillOpacity": 30} if panel.stacked else {}
    defaults: dict[str, Any] = {"unit": panel.unit, **({"custom": custom} if custom else {})}
    more: dict[str, Any] = {}
    if panel.thresholds:
        steps = [{"color": one.color, "value": one.value} for one in panel.thresholds]
        defaults |= {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}}
        more["options"] = {"colorMode": "background", "reduceOptions": {"calcs": ["lastNotNull"]}}
    if panel.opens:
        more["links"] = [{"title": "Open the details", "url": f"/d/{panel.opens}"}]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        **more,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": query.asks,
                "legendFormat": query.legend,
                "instant": panel.kind in ("stat", "bargauge"),
            }
            for number, query in enumerate(panel.queries)
        ],
    }
