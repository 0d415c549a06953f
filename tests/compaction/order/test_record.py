"""The record of an order: what is read of it, and what a node proves about its cordon."""

from typing import Any

import pytest

from tests.cluster_of import NOW
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.order.record import (
    ORDER_ANNOTATION,
    ORDER_MANAGER,
    OrderRecord,
    encode_record,
    order_of_taint,
    order_taint,
    proves_cordon,
    read_record,
)

CORDON = {"f:spec": {"f:unschedulable": {}}}
RECORD = {"f:metadata": {"f:annotations": {f"f:{ORDER_ANNOTATION}": {}}}}


def entry(fields: Any, manager: str = ORDER_MANAGER) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields}


def test_a_record_is_read_as_it_was_written() -> None:
    record = OrderRecord(order="o1", since=NOW, by="ann", nodes=("a", "b"), drain=DrainAnnotation("d1", "", NOW))
    assert read_record({ORDER_ANNOTATION: encode_record(record)}, "a") == record
    assert read_record({}, "a") is None


def test_a_record_that_names_a_surge_is_none_of_ours() -> None:
    """An order scales nothing, and would wait for ever until the surge is undone."""
    drain = DrainAnnotation("d1", "", NOW, surges={"default/web": 1}, surged={"default/web": NOW})
    text = encode_record(OrderRecord(order="o1", since=NOW, drain=drain))
    assert isinstance(read_record({ORDER_ANNOTATION: text}, "a"), Unreadable)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 9999, '{"order":"../x","since":1}', '{"order":"x","since":-1}', '{"order":"x","since":1,"v":9}'],
)
def test_what_is_no_record_is_unreadable(text: str) -> None:
    assert isinstance(read_record({ORDER_ANNOTATION: text}, "a"), Unreadable)


@pytest.mark.parametrize(
    ("managed_fields", "proves"),
    [
        ([entry({**CORDON, **RECORD})], True),
        ([entry(RECORD), entry(CORDON, "kubectl-cordon")], False),
        ([entry({**CORDON, **RECORD}, "kubectl-patch")], False),
        ([entry(CORDON)], False),
        ([entry(CORDON), entry(RECORD)], False),
        ([entry(None), entry("f:spec"), {}], False),
        ([], False),
    ],
)
def test_only_the_owner_of_both_fields_proves_the_cordon(managed_fields: list[Any], proves: bool) -> None:
    assert proves_cordon(managed_fields) is proves


def test_the_soft_taint_names_its_order() -> None:
    assert order_of_taint(order_taint("o1")) == "o1"
