"""The rules, checked and played by the real promtool."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.observe import rules
from deploy.observe.dashboards import ALL
from deploy.observe.grafana import without_choices

pytestmark = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool: apt-get install prometheus (make e2e does)"
)
HERE = Path(__file__).parent
WEEKS = "TrimtabPoolCostUnusual"
"""The alert that needs weeks: it is played on its own."""


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_finds_nothing_wrong() -> None:
    assert "SUCCESS" in promtool(
        "check", "rules", "--lint=all", "--lint-fatal", *(rules.FOLDER / n for n in (*rules.FILES, *rules.OLD_NAMES))
    )


def test_every_alert_fires_when_it_should_and_none_when_all_is_well(tmp_path: Path) -> None:
    alerts = [rule.name for rule in rules.everything() if rule.alert and rule.name != WEEKS]
    fires = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in alerts]
    played(tmp_path, (HERE / "rules.test.yaml").read_text("utf-8").replace("EVERY", json.dumps(fires)))


def test_who_is_gone_is_missed_and_who_never_was_is_not(tmp_path: Path) -> None:
    played(tmp_path, (HERE / "gone.test.yaml").read_text("utf-8"))


def test_a_cost_that_leaves_the_range_of_its_own_weekday_is_told(tmp_path: Path) -> None:
    week = "10x239 5x95 "  # Monday to Friday, Saturday and Sunday, twice an hour
    steady = week * 6
    worlds = {
        "STEADY": steady,
        "DEAR": week * 5 + "10x239 7.5x95",
        "CHEAP": week * 5 + "10x239 4x95",
        "YOUNG": f"_x{4 * 336 + 143} 10x95 5x95 30x336",
    }
    text = (HERE / "weekday.test.yaml").read_text("utf-8")
    for word, values in worlds.items():
        text = text.replace(f"'{word}'", f"'{values.strip()}'")
    played(tmp_path, text)


def test_kubelets_series_give_every_figure_about_reservations(tmp_path: Path) -> None:
    board = next(board for board in ALL if board.uid == "trimtab-pools")
    row = next(row for row in board.rows if row.title == "Reserved for kubelet and runtime")
    request = [without_choices(query.asks) for panel in row.panels for query in panel.queries]
    assert len(request) > 10
    # 1 where the panel's query finds a series.
    shown = [
        {"expr": f"clamp_max(count({text}), 1)", "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": 1}]}
        for text in request
    ]
    text = (HERE / "reserved.test.yaml").read_text("utf-8")
    lines = "".join(f"      - {json.dumps(one)}\n" for one in shown)
    played(tmp_path, text + lines)


def test_another_compactors_metrics_keep_their_names(tmp_path: Path) -> None:
    text = (HERE / "estafette.test.yaml").read_text("utf-8")
    [file] = rules.OLD_NAMES
    (tmp_path / "rules.test.yaml").write_text(text.replace("- RULES\n", f"- {rules.FOLDER / file}\n"))
    promtool("test", "rules", tmp_path / "rules.test.yaml")


def played(folder: Path, text: str) -> None:
    for name, file in zip(("RECORDING", "ALERTS"), rules.FILES, strict=True):
        text = text.replace(f"- {name}\n", f"- {rules.FOLDER / file}\n")
    (folder / "rules.test.yaml").write_text(text)
    promtool("test", "rules", folder / "rules.test.yaml")


def test_every_query_of_the_dashboards_is_promql(tmp_path: Path) -> None:
    request = [query.asks for board in ALL for panel in board.panels for query in panel.queries]
    meant = [without_choices(text) for text in request]
    objects = [{"record": f"asked:{number}", "expr": text} for number, text in enumerate(meant)]
    (tmp_path / "asked.json").write_text(json.dumps({"groups": [{"name": "asked", "rules": objects}]}))
    assert f"{len(request)} rules found" in promtool("check", "rules", tmp_path / "asked.json")
