"""A Prometheus in memory that answers the few queries with which the past of a cluster is read."""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.autoscaling.replay.simulated_scrapes import Samples
from tests.usage.fake_prometheus import Answer, Asked

LOOKBACK = 90
"""So many seconds after its last sample, a series is gone: the time of a scrape and a half."""
_SELECTOR = re.compile(r"(\w*)\{([^}]*)\}(?:\)?\[(\d+)s)?")
_MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
_GROUPING = re.compile(r"^(min|max|count) by \(([^)]*)\)")
Series = tuple[dict[str, str], list[tuple[int, float]]]


def answer_from(samples: Samples) -> Callable[[Asked], Answer]:
    """Returns what the server answers. It knows `min by (…) (min_over_time(…))` and the like, and no other queries."""
    series: list[Series] = [
        ({"__name__": name, **dict(_split(labels))}, points)
        for name, all_of_it in samples.items()
        for labels, points in all_of_it.items()
    ]

    def answer(request: Asked) -> Answer:
        path, parameters, _ = request
        query = parameters["query"]
        selected = [one for one in series if _is_selected(one[0], query)]
        if path.endswith("query_range"):
            times = range(int(parameters["start"]), int(parameters["end"]) + 1, int(parameters["step"]))
            rows = [(labels, [(at, v) for at in times if (v := _value_at(points, at))]) for labels, points in selected]
            return 200, _write(
                "matrix", "values", _join(rows, query, lambda a, b: sorted({**dict(a), **dict(b)}.items()))
            )
        instants = [(labels, _evaluate(points, query, int(parameters["time"]))) for labels, points in selected]
        if query.startswith("count"):
            instants = [(labels, None if value is None else 1) for labels, value in instants]
        joined = _join([(labels, value) for labels, value in instants if value is not None], query, _function_of(query))
        return 200, _write("vector", "value", [(labels, (0, value)) for labels, value in joined])

    return answer


def _split(labels: str) -> Iterator[tuple[str, str]]:
    for name, _, text in _MATCHER.findall(labels):
        yield name, text


def _is_selected(labels: dict[str, str], query: str) -> bool:
    match = _SELECTOR.search(query)
    assert match is not None, query
    wanted = [("__name__", "=", match[1])] if match[1] else []
    return all(
        re.fullmatch(text if sign == "=~" else re.escape(text), labels.get(name, ""))
        for name, sign, text in [*wanted, *_MATCHER.findall(match[2])]
    )


def _evaluate(points: list[tuple[int, float]], query: str, at: int) -> float | None:
    match = _SELECTOR.search(query)
    assert match is not None, query
    window = [point for point in points if at - int(match[3] or LOOKBACK) <= point[0] <= at]
    values = [float(second) if "timestamp(" in query else value for second, value in window]
    if not values:
        return None
    return min(values) if "min_over_time" in query else max(values) if "max_over_time" in query else values[-1]


def _value_at(points: list[tuple[int, float]], at: int) -> float | None:
    return next((value for second, value in reversed(points) if at - LOOKBACK < second <= at), None)


def _function_of(query: str) -> Callable[[Any, Any], Any]:
    function = _GROUPING.match(query)
    assert function is not None, query
    return {"min": min, "max": max, "count": operator.add}[function[1]]


def _join(rows: list[Any], query: str, function: Callable[[Any, Any], Any]) -> list[Any]:
    grouping = _GROUPING.match(query)
    assert grouping is not None, query
    names, joined = grouping[2].split(", "), dict[tuple[tuple[str, str], ...], Any]()
    for labels, value in rows:
        key = tuple((name, labels[name]) for name in names if labels.get(name))
        joined[key] = value if key not in joined else function(joined[key], value)
    return [(dict(key), value) for key, value in joined.items() if value != []]


def _write(form: str, key: str, rows: list[Any]) -> Any:
    def text(value: Any) -> Any:
        return [text(one) for one in value] if isinstance(value, list) else [value[0], str(value[1])]

    result = [{"metric": labels, key: text(value)} for labels, value in rows]
    return {"status": "success", "data": {"resultType": form, "result": result}}
