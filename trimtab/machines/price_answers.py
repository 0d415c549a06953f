"""Reads prices from the JSON responses of OpenCost's API and of Prometheus.

OpenCost's `/assets` lists what each node has cost in a period, discounts included (core/pkg/opencost/asset_json.go):
the price is the total cost divided by the hours. Prometheus answers a query for `node_total_hourly_cost`, a metric of
OpenCost (pkg/costmodel/metrics.go). If a node's cost in the response is not above 0, its price is unknown; the node is
not free.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import REGION_LABEL
from trimtab.machines.prices import PriceFile, mean_prices, parse_price

NAME_FIELD = "metadata.name"
NODE_LABELS = ("node", "exported_node", "instance")
"""The labels that may hold a node's name: a scrape without `honor_labels` renames `node`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PricedNode:
    name: str
    kind: str
    """The machine type; empty if it is unknown."""
    region: str
    amount: int
    """The price in micro-dollars an hour."""
    is_spot: bool = False


def is_answer(content: bytes) -> bool:
    """Returns whether this may be a JSON response rather than a CSV file."""
    return content.lstrip()[:1] in (b"{", b"[")


def read_price_answer(name: str, content: bytes) -> tuple[PriceFile, list[ConfigError]]:
    """Returns the prices in the response of this name, and a mistake if it is not such a response or has no node with a
    price.

    The price of a type is the mean over its nodes in a region; spot nodes do not count in the mean.
    """
    expected = "OpenCost's CSV, the JSON of its /assets, or Prometheus' answer for node_total_hourly_cost"
    try:
        answer: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return PriceFile({}, {}), [ConfigError(file=name, expected=expected, got=str(error))]
    data = answer.get("data") if isinstance(answer, dict) else None
    is_prometheus = isinstance(data, dict) and "resultType" in data
    nodes = list((_list_series if is_prometheus else _list_assets)(data))
    if not nodes:
        return PriceFile({}, {}), [ConfigError(file=name, expected=expected, got="no node with a price")]
    by_type: dict[tuple[str, str], list[int]] = {}
    for node in nodes:
        if node.kind and not node.is_spot:
            by_type.setdefault((node.region.lower(), node.kind), []).append(node.amount)
    by_name = {(NAME_FIELD, "", node.name.lower()): node.amount for node in nodes}
    return PriceFile(by_name, mean_prices(by_type)), []


def _list_assets(data: Any) -> Iterator[_PricedNode]:
    """Yields the nodes in a response of OpenCost's `/assets`: one mapping of assets, or one for each step of the
    period."""
    for assets in data if isinstance(data, list) else [data]:
        for asset in _mappings(assets.values() if isinstance(assets, dict) else ()):
            minutes, cost = (_positive_number(asset.get(key)) for key in ("minutes", "totalCost"))
            name = _text(asset.get("properties"), "name")
            amount = parse_price(cost * 60 / minutes) if minutes and cost else None
            if asset.get("type") == "Node" and name and amount is not None:
                # The region in the labels of an asset. OpenCost gives this label the same name as Prometheus does.
                labels = asset.get("labels")
                bare = REGION_LABEL.replace(".", "_").replace("/", "_")
                yield _PricedNode(
                    name=name,
                    kind=_text(asset, "nodeType"),
                    region=next(
                        (text for key in (f"label_{bare}", bare, REGION_LABEL) if (text := _text(labels, key))), ""
                    ),
                    amount=amount,
                    is_spot=_positive_number(asset.get("preemptible")) is not None,
                )


def _list_series(data: Any) -> Iterator[_PricedNode]:
    """Yields the nodes in a response of Prometheus, with the last point of each series."""
    result = data.get("result")
    for series in _mappings(result if isinstance(result, list) else ()):
        labels, points = series.get("metric"), series.get("values") or [series.get("value")]
        point = points[-1] if isinstance(points, list) else None
        name = next((text for key in NODE_LABELS if (text := _text(labels, key))), "")
        amount = parse_price(point[1]) if isinstance(point, list) and len(point) == 2 else None
        if name and amount is not None:
            yield _PricedNode(
                name=name, kind=_text(labels, "instance_type"), region=_text(labels, "region"), amount=amount
            )


def _mappings(values: Iterable[Any]) -> Iterator[dict[str, Any]]:
    return (value for value in values if isinstance(value, dict))


def _text(mapping: Any, key: str) -> str:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, str) else ""


def _positive_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and value > 0 else None
