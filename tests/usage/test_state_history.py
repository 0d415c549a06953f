"""When objects were there, from the series of kube-state-metrics."""

import re
from typing import Any

import pytest

from tests.usage.fake_prometheus import Answer, Asked, matrix, serving
from trimtab.usage.http_client import HttpApi
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.state_history import PART_SECONDS, SeenSpan, StateHistory

BEGIN, STEP = 1_772_409_600, 60


def instant(*rows: tuple[dict[str, str], float]) -> Any:
    result = [{"metric": metric, "value": [BEGIN, str(value)]} for metric, value in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def history(url: str, seconds: int = 3600, matcher: str = "") -> StateHistory:
    server = Prometheus(HttpApi(url), QueryPlan(extra_matcher=matcher))
    return StateHistory(server, BEGIN, BEGIN + seconds, STEP)


def test_a_span_is_joined_from_all_parts_of_the_time() -> None:
    def answer(request: Asked) -> Answer:
        at, is_first = int(request[1]["time"]), "min_over_time" in request[1]["query"]
        return 200, instant(({"pod": "a"}, at - 3000 if is_first else at - 10))

    with serving(answer) as server:
        spans = history(server.url, 2 * PART_SECONDS).read_spans("kube_pod_info", ("pod",))
    assert spans == {("a",): SeenSpan(BEGIN + PART_SECONDS - 3000, BEGIN + 2 * PART_SECONDS - 10)}


def test_labels_that_the_scrape_has_too_are_those_of_the_object() -> None:
    row = {"namespace": "monitoring", "exported_namespace": "shop", "pod": "ksm-1", "exported_pod": "web-1"}
    with serving(lambda _request: (200, instant((row, 7.0)))) as server:
        assert history(server.url).read_values("kube_pod_created", ("namespace", "pod")) == {("shop", "web-1"): 7.0}


def test_a_label_that_an_object_has_not_is_not_that_of_the_scrape() -> None:
    rows: list[tuple[dict[str, str], float]] = [
        ({"node": "m-0", "exported_node": "n-1", "pod": "ksm-1", "exported_pod": "runs"}, 1.0),
        ({"node": "m-0", "pod": "ksm-1", "exported_pod": "waits"}, 1.0),
        ({"node": "n-2", "pod": "of-another-scraper"}, 1.0),
    ]
    with serving(lambda _request: (200, instant(*rows))) as server:
        values = history(server.url).read_values("kube_pod_info", ("pod", "node"))
    assert set(values) == {("runs", "n-1"), ("waits", ""), ("of-another-scraper", "n-2")}


def test_a_value_that_comes_again_is_another_time() -> None:
    points = [(BEGIN, 1.0), (BEGIN + 60, 1.0), (BEGIN + 300, 1.0)]
    with serving(lambda _request: (200, matrix(({"node": "a"}, points)))) as server:
        runs = history(server.url).read_runs("kube_node_spec_unschedulable", ("node",))
    assert runs == {("a",): [SeenSpan(BEGIN, BEGIN + 60), SeenSpan(BEGIN + 300, BEGIN + 300)]}


@pytest.mark.parametrize(("matcher", "mixed"), [("", ["cluster"]), ('cluster="a"', [])])
def test_two_clusters_are_named_unless_a_matcher_chooses(matcher: str, mixed: list[str]) -> None:
    def answer(request: Asked) -> Answer:
        grouped = re.findall(r"\w+", request[1]["query"].partition("(")[2].partition(")")[0])
        rows = [({"cluster": name}, 1.0) for name in ("a", "b")] if "cluster" in grouped else [({}, 1.0)]
        return 200, instant(*rows)

    with serving(answer) as server:
        labels = history(server.url, matcher=matcher).find_mixed_clusters("kube_node_info")
    assert [one.label for one in labels] == mixed
