"""Which versions of Kubernetes are supported is said in one place; the chart and the test bed say the same."""

from pathlib import Path

import yaml

from trimtab.diagnosis.check_installation import OLDEST, TESTED

ROOT = Path(__file__).parents[3]


def test_the_chart_takes_the_oldest_that_doctor_takes() -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={OLDEST[0]}.{OLDEST[1]}.0-0"


def test_both_ends_of_what_is_tested_can_be_built() -> None:
    modules = (ROOT / "tests" / "controlplane" / "modules").glob("kubernetes-*")
    minors = sorted(tuple(map(int, item.name.removeprefix("kubernetes-").split("."))) for item in modules)
    assert minors[0] == TESTED[0]
    assert TESTED[1] in minors
