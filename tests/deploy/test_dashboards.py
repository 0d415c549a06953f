"""Dashboards and rules ask for nothing that nobody exports."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.observe import rules
from deploy.observe.dashboards import ALL
from deploy.observe.exported import everything
from deploy.observe.expressions import series
from deploy.observe.foreign import FOREIGN
from deploy.observe.grafana import Dashboard, drawn
from deploy.observe.overview import OVERVIEW

ROOT = Path(__file__).resolve().parents[2]
RULES = rules.everything()
OLD_NAMES = rules.everything(rules.OLD_NAMES)
SCRAPED = {"job", "instance", "le"}
"""Labels that every scrape, or the kind of a metric, adds."""
EXPORTED = {name: SCRAPED | set(metric.labels) for metric in everything() for name in metric.series}
RECORDED = {"pool", "resource", "path", "code", "part", "week"}
KNOWN = EXPORTED | FOREIGN | {rule.name: RECORDED for rule in RULES if not rule.alert}
KNOWN |= {rule.name: {"node", "nodepool"} for rule in OLD_NAMES}


def asked() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule.name, rule.asks
    for board in ALL:
        for panel in board.panels:
            for query in panel.queries:
                yield f"{board.title}: {panel.title}", query.asks


WANTED = [*asked(), *((rule.name, rule.asks) for rule in OLD_NAMES)]


@pytest.mark.parametrize(("where", "expression"), WANTED, ids=lambda text: text[:60])
def test_every_metric_and_label_that_is_asked_for_exists(where: str, expression: str) -> None:
    actual_series = series(expression)
    assert actual_series, "asks for nothing"
    for name, labels in actual_series.items():
        assert name in KNOWN, f"{where}: nobody exports {name}"
        assert labels <= KNOWN[name], f"{where}: {name} has no label {labels - KNOWN[name]}"


def test_every_metric_of_ours_is_shown_or_watched() -> None:
    used = {name for _, expression in asked() for name in series(expression)}
    unused = {metric.name for metric in everything() if not used & set(metric.series)}
    assert unused == {"trimtab_running_pod_groups"}, (
        "add a panel in deploy/observe/dashboards.py, or a rule in deploy/observe/rules.py"
    )


@pytest.mark.parametrize("board", ALL, ids=lambda board: board.uid)
def test_panels_lie_beside_and_below_each_other_and_say_what_they_mean(board: Dashboard) -> None:
    panels = drawn(board)["panels"]
    places = [
        (x, y)
        for p in panels
        for g in [p["gridPos"]]
        for x in range(g["x"], g["x"] + g["w"])
        for y in range(g["y"], g["y"] + g["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel.says for panel in board.panels)


def test_the_overview_comes_first_and_judges_its_figures() -> None:
    judged = [panel for panel in OVERVIEW.panels if panel.thresholds]
    assert ALL[0] is OVERVIEW
    assert len(judged) >= 8
    for panel in judged:
        first, *others = panel.thresholds
        values = [one.value for one in others]
        assert first.value is None, panel.title
        assert values == sorted(values), panel.title
        assert {one.color for one in panel.thresholds} >= {"green"}, panel.title


def test_every_figure_of_the_overview_opens_a_dashboard_that_exists() -> None:
    assert {panel.opens for panel in OVERVIEW.panels} <= {board.uid for board in ALL[1:]}
    urls = [link["url"] for panel in drawn(OVERVIEW)["panels"] for link in panel.get("links", ())]
    assert len(urls) == len(list(OVERVIEW.panels))
    assert set(urls) == {f"/d/{board.uid}" for board in ALL[1:]}


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    text = (ROOT / rules.RUNBOOKS).read_text("utf-8")
    alerts = [rule for rule in RULES if rule.alert]
    pages = re.findall(r"^## (Trimtab\w+)$", text, re.MULTILINE)
    assert sorted(pages) == sorted(rule.name for rule in alerts)
    for rule in alerts:
        assert rule.written["annotations"]["runbook_url"] == f"{rules.RUNBOOKS}#{rule.name.lower()}"
        page = text.partition(f"## {rule.name}\n")[2].partition("\n## ")[0]
        assert all(f"**{part}**" in page for part in ("Means", "Check", "Do")), rule.name
    assert {rule.written["labels"]["severity"] for rule in alerts} == {"critical", "warning", "info"}
