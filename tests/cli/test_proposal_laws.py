"""Laws of `trimtab metrics-api propose-hpa` and `trimtab autoscaler propose` over drawn inputs: the API server and the
cluster autoscaler take what they propose, our own checks find nothing in it, and a second run changes nothing."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.report_runs import read_report, run_verb
from tests.cli.test_autoscaler import pods, write_cluster
from tests.cli.test_metrics_api import write_history
from tests.cluster_of import Item, node
from trimtab.cluster import quantity
from trimtab.cluster.autoscaler_flags import FLAGS

MAX_INT32 = 2**31 - 1
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LoadRow = tuple[int, str, float, float]


@st.composite
def histories(draw: st.DrawFn, wanted: float) -> list[LoadRow]:
    """The load of a Deployment's pods over 60 times: a rate between two bounds, and cores by a line with noise. Without
    load, a pod needs a part of the wanted cores, or nearly all of them."""
    base = wanted * draw(st.sampled_from((0.0, 0.5, 1 - 1e-6, 1 - 1e-12, 1.1)))
    per_core = draw(st.sampled_from((1e-6, 0.3, 200.0, 1e9)))
    low, high = draw(st.sampled_from(((0.0, 1.0), (5.0, 60.0), (1e-9, 1e-6), (10.0, 1e12), (7.0, 8.0))))
    noise, count = draw(st.sampled_from((0.0, 0.01))), draw(st.integers(2, 4))
    chance = random.Random(draw(st.integers(0, 9)))
    rows = []
    for step in range(60):
        rate = low + (high - low) * (1 - abs(step - 30) / 30)
        rows += [
            (1_700_000_000 + step * 900, f"web-{pod}", rate, base + rate / per_core + chance.uniform(0, noise))
            for pod in range(count)
        ]
    return rows


def mistakes_in_hpa(spec: Item) -> list[str]:
    """What ValidateHorizontalPodAutoscaler says (pkg/apis/autoscaling/validation), of the fields of this spec."""
    mistakes = []
    if not 1 <= spec["minReplicas"] <= spec["maxReplicas"] <= MAX_INT32:
        mistakes.append("replicas")
    targets = [str(metric["pods"]["target"]["averageValue"]) for metric in spec["metrics"]]
    mistakes += [target for target in targets if quantity.compare_quantities(target, "0") <= 0]
    for direction in spec["behavior"].values():
        if not 0 <= direction["stabilizationWindowSeconds"] <= 3600:
            mistakes.append("stabilizationWindowSeconds")
        if not all(0 < policy["periodSeconds"] <= 1800 and policy["value"] > 0 for policy in direction["policies"]):
            mistakes.append("policies")
    return mistakes


def propose_hpa(file: Path, request: str, utilization: int) -> str:
    """The proposed HPA as text; empty if the history does not suffice."""
    result = run_verb(
        "metrics-api",
        "propose-hpa",
        "web",
        "-n",
        "shop",
        "--metric",
        "requests",
        "--cpu-request",
        request,
        "--utilization",
        str(utilization),
        "--history",
        file,
    )
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def errors_of(folder: Path) -> list[str]:
    """The rules of lint by which something in the folder is an error."""
    report = json.loads(run_verb("lint", "-f", folder, "-o", "json").stdout)
    return [finding["rule"] for finding in report["findings"] if finding["severity"] == "error"]


@given(st.sampled_from(("1m", "100m", "500m", "8", "1e3")), st.sampled_from((10, 70, 95)), st.data())
def test_a_proposed_hpa_is_accepted_and_follows_from_the_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, request_text: str, share: int, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("hpa")
    rows = data.draw(histories(quantity.parse(request_text) / quantity.NANO_PER_UNIT * share / 100))
    text = propose_hpa(write_history(folder / "load.csv", rows), request_text, share)
    if not text:
        return
    hpa = yaml.safe_load(text)
    assert mistakes_in_hpa(hpa["spec"]) == []
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": request_text, "memory": "1Gi"}}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    (folder / "written").mkdir()
    (folder / "written" / "all.yaml").write_text(yaml.safe_dump_all([web, hpa]))
    assert errors_of(folder / "written") == []
    shuffled = data.draw(st.permutations(rows))
    assert propose_hpa(write_history(folder / "shuffled.csv", shuffled), request_text, share) == text


@pytest.mark.parametrize("name", ["Web", "web_1", "-web", "w" * 254, "web/a"])
@pytest.mark.parametrize("place", ["deployment", "namespace", "metric"])
def test_a_name_that_the_api_server_rejects_is_refused(name: str, place: str, tmp_path: Path) -> None:
    names = {"deployment": "web", "namespace": "shop", "metric": "requests", place: name}
    if place == "metric" and "/" not in name:
        return
    file = write_history(tmp_path / "load.csv", [])
    terms = ("--cpu-request", "1", "--history", file, f"--namespace={names['namespace']}")
    result = run_verb("metrics-api", "propose-hpa", *terms, f"--metric={names['metric']}", "--", names["deployment"])
    assert (result.exit_code, result.stdout) == (2, "")


@st.composite
def clusters(draw: st.DrawFn) -> list[Item]:
    """Nodes of several sizes, with some pods on them, and perhaps an autoscaler with flags of its own."""
    count, sizes = draw(st.integers(1, 4)), ("2", "4", "16")
    nodes = [node(f"n{n}", cpu=draw(st.sampled_from(sizes)), memory="16Gi") for n in range(count)]
    return [*nodes, *pods(draw(st.integers(0, 3)) * count, nodes=count)]


PRESENT = st.builds(
    lambda *flags: " ".join(flag for flag in flags if flag),
    st.sampled_from(("", "--scale-down-utilization-threshold=0.35", "--scale-down-utilization-threshold=1")),
    st.sampled_from(("", "--scale-down-unneeded-time=90s", "--scale-down-unneeded-time=1h30m")),
    st.sampled_from(("", "--scale-down-delay-after-add=0s", "--scale-down-delay-after-add=12m30s")),
    st.sampled_from(("", "--expander=least-waste")),
)


def replay(file: Path, flags: str) -> Any:
    return read_report("autoscaler", "propose", "--cluster", file, "--autoscaler-flags", flags)


def check_flags(arguments: list[str]) -> None:
    """Each argument is a known flag of the cluster autoscaler, with a value that it can parse."""
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        assert FLAGS[name].is_valid(value), argument


@given(clusters(), PRESENT)
def test_proposed_flags_can_be_parsed_and_nothing_better_is_proposed_to_those_who_set_them(
    tmp_path_factory: pytest.TempPathFactory, items: list[Item], flags: str
) -> None:
    file = write_cluster(tmp_path_factory.mktemp("flags"), *items)
    report = replay(file, flags)
    for row in (report["present"], report["proposed"], *report["replays"]):
        check_flags(row["flags"])
    again = replay(file, " ".join(report["proposed"]["flags"]))
    assert again["present"]["flags"] == report["proposed"]["flags"]
    assert again["proposed"] == again["present"] == report["proposed"]
