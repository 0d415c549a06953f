"""One query for each rule, one value for each pod: everything else is left out and counted, or a reason."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.usage.fake_prometheus import serving
from trimtab.cluster.reason import Reason
from trimtab.metricsapi.queries import QueryAnswer, decode_answer, query_prometheus
from trimtab.metricsapi.reasons import QUERY_FAILED
from trimtab.metricsapi.rules import MetricKind, MetricRule, SampleSource
from trimtab.metricsapi.settings import Settings

RULE = MetricRule(
    name="depth", source=SampleSource.QUERY, kind=MetricKind.GAUGE, namespaces=("shop",), query="sum(depth)"
)


def answered(*results: tuple[dict[str, str], str], kind: str = "vector") -> bytes:
    rows = [{"metric": metric, "value": [0, value]} for metric, value in results]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": rows}}).encode()


def labels(pod: str = "web-0", namespace: str = "shop", **more: str) -> dict[str, str]:
    return {"namespace": namespace, "pod": pod, **more}


def test_each_pod_has_its_value() -> None:
    body = answered((labels("web-0"), "1.5"), (labels("web-1"), "-2e3"))
    assert decode_answer(body, RULE) == QueryAnswer({("shop", "web-0"): 1.5, ("shop", "web-1"): -2000.0})


@pytest.mark.parametrize(
    "result",
    [
        ({"pod": "web-1"}, "1"),
        ({"namespace": "shop"}, "1"),
        (labels("web-1", namespace="elsewhere"), "1"),
        (labels("web-1"), "NaN"),
        (labels("web-1"), "+Inf"),
        (labels("web-1"), "1e19"),
        (labels("web-1"), "many"),
    ],
)
def test_a_result_that_says_nothing_of_a_pod_is_left_out_and_counted(result: tuple[dict[str, str], str]) -> None:
    answer = decode_answer(answered((labels("web-0"), "1"), result), RULE)
    assert answer == QueryAnswer({("shop", "web-0"): 1.0}, dropped=1)


def test_a_pod_with_two_results_has_none() -> None:
    body = answered((labels(code="200"), "1"), (labels(code="500"), "2"), (labels("web-1"), "3"))
    assert decode_answer(body, RULE) == QueryAnswer({("shop", "web-1"): 3.0}, dropped=2)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b"\xff",
        answered(kind="matrix"),
        b'{"data":{"resultType":"vector","result":[{"metric":1}]}}',
    ],
)
def test_what_is_no_vector_is_a_reason_and_no_zero(body: bytes) -> None:
    answer = decode_answer(body, RULE)
    assert isinstance(answer, Reason)
    assert answer.code is QUERY_FAILED


def test_the_query_is_sent_with_the_token_of_now(tmp_path: Path) -> None:
    token = tmp_path / "token"
    with serving(lambda request: (200, answered((labels(), "7")))) as server:
        run = query_prometheus(Settings(prometheus_url=server.url, prometheus_token_file=token))
        for text in ("first", "second\n"):
            token.write_text(text)
            assert run(RULE) == QueryAnswer({("shop", "web-0"): 7.0})
        path, parameters, headers = server.asked[-1]
    assert (path, parameters["query"]) == ("/api/v1/query", "sum(depth)")
    assert headers["Authorization"] == "Bearer second"


def sentence(answer: QueryAnswer | Reason) -> str:
    assert isinstance(answer, Reason)
    return answer.sentence


@pytest.mark.parametrize(("status", "said"), [(500, {}), (400, {"error": "parse error"}), (200, b"garbled")])
def test_a_prometheus_that_fails_is_a_reason(status: int, said: Any) -> None:
    with serving(lambda request: (status, said)) as server:
        assert "depth" in sentence(query_prometheus(Settings(prometheus_url=server.url))(RULE))


def test_without_a_prometheus_or_its_token_the_rule_says_so(tmp_path: Path) -> None:
    assert "TRIMTAB_METRICS_API_PROMETHEUS_URL is not set" in sentence(query_prometheus(Settings())(RULE))
    missing = Settings(prometheus_url="http://127.0.0.1:1", prometheus_token_file=tmp_path / "none")
    assert "depth" in sentence(query_prometheus(missing)(RULE))
