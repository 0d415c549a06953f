"""`trimtab metrics-api` as users call it: rules checked, an HPA proposed from history."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.reasons import has_facts
from tests.usage.fake_prometheus import matrix, serving
from trimtab.cli.main import cli

VALID = """
rules:
- {name: requests, from: scrape, kind: rate, namespaces: [shop], pods: {app: web}, series: requests_total}
"""
INVALID = """
rules:
- {name: requests, from: scrape, kind: speed, pods: {app: web}, series: requests_total}
- {name: depth, from: query, kind: gauge}
"""
TERMS = ("web", "-n", "shop", "--metric", "requests", "--cpu-request", "500m")


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["metrics-api", *map(str, arguments)])


def propose(*arguments: str | Path) -> Result:
    return call("propose-hpa", *TERMS, *arguments)


def test_valid_rules_are_said_to_be_valid(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(VALID)
    result = call("check", file)
    assert (result.exit_code, result.stdout) == (0, f"{file}: valid\n")


def config_map(rules: str) -> str:
    """The rules as a ConfigMap holds them, behind another manifest; they begin in line 8."""
    data = "".join(f"    {line}\n" for line in rules.strip().splitlines())
    head = "kind: Service\napiVersion: v1\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n"
    return f"{head}  rules.yaml: |\n{data}"


def test_the_config_map_of_the_rules_can_be_checked_as_it_is_applied(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(config_map(VALID))
    assert call("check", tmp_path / "map.yaml").exit_code == 0


def test_a_mistake_in_a_config_map_has_its_line_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(config_map(INVALID))
    result = call("check", tmp_path / "map.yaml")
    assert result.exit_code == 2
    assert f"{tmp_path / 'map.yaml'}:10: ConfigMap m data[rules.yaml].rules[0].kind" in result.stderr


def test_manifests_without_rules_are_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n")
    result = call("check", tmp_path / "map.yaml")
    assert (result.exit_code, "ConfigMap m" in result.stderr) == (2, True)


def test_every_mistake_of_the_rules_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(INVALID)
    result = call("check", file)
    assert result.exit_code == 2
    for place in ("rules[0].kind", "rules[1].query"):
        assert place in result.stderr
    assert f"{file}:3" in result.stderr


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"rules: {", b"rules:\n- 1\n", b"a: 1\n---\nb: 2\n"])
def test_what_is_no_file_of_rules_is_a_mistake(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    if content is not None:
        file.write_bytes(content)
    result = call("check", file)
    assert result.exit_code == 2
    assert str(file) in result.stderr


def test_a_process_with_invalid_rules_does_not_start(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(INVALID)
    result = call("--rules", file)
    assert result.exit_code == 2
    assert "rules[0].kind" in result.stderr


def day(pods: int = 3) -> list[tuple[int, str, float, float]]:
    """(time, pod, rate, cores): 200 requests per core, and a twentieth of a core without any."""
    rows = []
    for step in range(96):
        rate = 5 + 55 * (1 - abs(step - 48) / 48)
        rows += [(1_700_000_000 + step * 900, f"web-{number}", rate, 0.05 + rate / 200) for number in range(pods)]
    return rows


def write_history(file: Path, rows: list[tuple[int, str, float, float]], header: str = "time,pod,rate,cores") -> Path:
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return file


def test_an_hpa_follows_from_a_file_and_says_what_it_follows_from(tmp_path: Path) -> None:
    result = propose("--history", write_history(tmp_path / "load.csv", day()))
    assert result.exit_code == 0, result.stderr
    assert has_facts(result.stdout, "core", "200 requests per second")
    hpa = yaml.safe_load(result.stdout)
    assert hpa["kind"] == "HorizontalPodAutoscaler"
    [metric] = hpa["spec"]["metrics"]
    assert metric["pods"]["metric"] == {"name": "requests"}
    # Seven tenths of half a core, without the base: 0.3 cores serve 60 requests per second.
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "60"}
    assert hpa["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300


def test_the_same_hpa_follows_from_prometheus(tmp_path: Path) -> None:
    rows = day()

    def answer(request: tuple[str, dict[str, str], dict[str, str]]) -> tuple[int, Any]:
        column = 2 if request[1]["query"] == "rate" else 3
        series = {pod: [(row[0], row[column]) for row in rows if row[1] == pod] for _, pod, _, _ in rows}
        return 200, matrix(*(({"namespace": "shop", "pod": pod}, values) for pod, values in series.items()))

    with serving(answer) as server:
        result = propose("--prometheus", server.url, "--rate-query", "rate", "--cpu-query", "cores")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == propose("--history", write_history(tmp_path / "load.csv", rows)).stdout
    assert {query["query"] for _, query, _ in server.asked} == {"rate", "cores"}


def test_a_history_that_does_not_suffice_says_what_is_missing(tmp_path: Path) -> None:
    result = propose("--history", write_history(tmp_path / "load.csv", day()[:20]))
    assert result.exit_code == 1
    assert "20 points" in result.stderr
    assert result.stdout == ""


def test_every_mistake_of_a_history_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    huge = "9" * 5000
    file.write_text(
        f"time,pod,rate,cores\nnever,a,1,1\n1700000000,a,-1,1\n{huge},a,1,1\n2023-11-14T22:13:20Z,a,1,NaN\n"
    )
    result = propose("--history", file)
    assert result.exit_code == 2
    for line in (2, 3, 4, 5):
        assert f"{file}:{line}" in result.stderr


@pytest.mark.parametrize("content", ["", "time,pod,rate\n"])
def test_a_file_without_the_columns_is_refused(content: str, tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_text(content)
    result = propose("--history", file)
    assert result.exit_code == 2
    assert "the columns" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--history or --prometheus"),
        (("--prometheus", "http://127.0.0.1:1"), "--rate-query and --cpu-query"),
        (("--history", "none.csv"), "none.csv"),
        (("--history", "none.csv", "--cpu-request", "much"), "--cpu-request"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: tuple[str, ...], said: str) -> None:
    result = propose(*options)
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_prometheus_that_does_not_answer_is_a_failure_and_no_proposal() -> None:
    with serving(lambda request: (400, {"status": "error", "error": "parse error"})) as server:
        result = propose("--prometheus", server.url, "--rate-query", "rate", "--cpu-query", "cores")
    assert result.exit_code not in (0, 1)
    assert result.stdout == ""
