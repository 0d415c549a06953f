"""Every field of a PodPolicy is described: `kubectl explain`, editors and the reference page take the text from it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.reasons import has_facts
from trimtab.compaction.order.order_definition import build_drain_order_crd
from trimtab.compaction.pool_status import build_pool_status_crd
from trimtab.policy.schema import build_crd, json_schema

FILLED_BY_THE_API_SERVER = {"apiVersion", "kind", "metadata"}


def undescribed(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        if not part.get("description"):
            yield f"{path}{name}"
        yield from undescribed(part, f"{path}{name}.")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from undescribed(schema[key], path)


@pytest.mark.parametrize(
    "crd",
    [build_crd(), build_pool_status_crd(), build_drain_order_crd()],
    ids=["PodPolicy", "PoolStatus", "DrainOrder"],
)
def test_every_field_of_a_definition_is_described(crd: dict[str, Any]) -> None:
    for version in crd["spec"]["versions"]:
        assert set(undescribed(version["schema"]["openAPIV3Schema"])) <= FILLED_BY_THE_API_SERVER


def test_an_inherited_field_has_the_description_of_its_class() -> None:
    cpu = json_schema()["properties"]["spec"]["properties"]["actions"]["properties"]["requests"]["properties"]["cpu"]
    assert has_facts(cpu["properties"]["min"]["description"], "smallest request")
    assert "minPercent" in cpu["properties"]
