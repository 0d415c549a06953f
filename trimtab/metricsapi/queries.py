"""Gets samples from Prometheus: one query for each rule, one value for each pod."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from trimtab.cluster.reason import Reason
from trimtab.metricsapi.reasons import QUERY_FAILED
from trimtab.metricsapi.rules import MetricRule
from trimtab.metricsapi.settings import Settings
from trimtab.usage.errors import UsageFault
from trimtab.usage.http_client import HttpApi, RetryPolicy

MAX_RESULTS = 100_000

PodName = tuple[str, str]
"""(namespace, name) of a pod."""


class _Result(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Response(msgspec.Struct, frozen=True):
    data: _Data = _Data()


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The values that one query returned."""

    values: Mapping[PodName, float]
    dropped: int = 0
    """The number of results that were dropped: they name no pod, name a pod twice, are in a namespace that the rule
    does not cover, or are not numbers."""


def decode_answer(body: bytes, rule: MetricRule) -> QueryAnswer | Reason:
    """Returns the value of each pod. A pod with two results has no value, because it is not known which one is
    meant."""
    try:
        data = msgspec.json.decode(body, type=_Response).data
        if data.result_type != "vector":
            return QUERY_FAILED(f"{rule.name}: expected a vector, got {data.result_type or 'nothing'}")
        results = msgspec.json.decode(data.result, type=list[_Result])
    except (msgspec.DecodeError, UnicodeError) as error:
        return QUERY_FAILED(f"{rule.name}: {error}")
    if len(results) > MAX_RESULTS:
        return QUERY_FAILED(f"{rule.name}: more than {MAX_RESULTS} results")
    values: dict[PodName, float] = {}
    repeated: set[PodName] = set()
    for result in results:
        key = (result.metric.get("namespace", ""), result.metric.get("pod", ""))
        number = _read_number(result.value[1])
        if not all(key) or number is None or not rule.covers_namespace(key[0]):
            continue
        if key in values:
            repeated.add(key)
        values[key] = number
    kept = {key: value for key, value in values.items() if key not in repeated}
    return QueryAnswer(kept, len(results) - len(kept))


def _read_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < 2**63 else None


RunQuery = Callable[[MetricRule], QueryAnswer | Reason]


def query_prometheus(settings: Settings) -> RunQuery:
    """Returns a function that runs the query of a rule. If no Prometheus is configured, the function returns that as
    the reason."""

    def run(rule: MetricRule) -> QueryAnswer | Reason:
        if settings.prometheus_url is None:
            return QUERY_FAILED(f"{rule.name}: TRIMTAB_METRICS_API_PROMETHEUS_URL is not set")
        try:
            token = settings.prometheus_token
            if settings.prometheus_token_file is not None:
                token = settings.prometheus_token_file.read_text(encoding="ascii").strip()
            api = HttpApi(
                settings.prometheus_url,
                headers={"Authorization": f"Bearer {token}"} if token else {},
                ca=str(settings.prometheus_ca_file) if settings.prometheus_ca_file else None,
                # No retry: the next query comes soon, and an old answer is of no use.
                retry_policy=RetryPolicy(deadline=settings.query_interval_seconds, tries=1),
            )
            return decode_answer(api.get("/api/v1/query", {"query": rule.query}, f"run the query of {rule.name}"), rule)
        except (UsageFault, OSError, UnicodeError) as error:
            return QUERY_FAILED(f"{rule.name}: {error}")

    return run
