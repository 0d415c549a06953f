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
    owns_count,
    proves_cordon,
    read_record,
)

CORDON = {"f:spec": {"f:unschedulable": {}}}
COUNT = {"f:spec": {"f:replicas": {}}}
RECORD = {"f:metadata": {"f:annotations": {f"f:{ORDER_ANNOTATION}": {}}}}


def entry(fields: Any, manager: str = ORDER_MANAGER) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields}


def test_a_record_is_read_as_it_was_written() -> None:
    record = OrderRecord(order="o1", since=NOW, by="ann", nodes=("a", "b"), drain=DrainAnnotation("d1", "", NOW))
    assert read_record({ORDER_ANNOTATION: encode_record(record)}, "a") == record
    assert read_record({}, "a") is None


@pytest.mark.parametrize(
    ("managers", "is_proven"),
    [
        ([entry(COUNT)], True),
        ([entry(COUNT), entry({"f:spec": {"f:template": {}}}, "kubectl")], True),
        ([entry(COUNT, "kubectl")], False),
        ([entry(COUNT), entry(COUNT, "kubectl")], False),
        ([entry({"f:spec": {"f:minReplicas": {}}})], False),
        ([entry([])], False),
        ([], False),
    ],
)
def test_only_the_object_itself_proves_that_an_order_set_its_count(
    managers: list[dict[str, Any]], is_proven: bool
) -> None:
    """A record names a count as well, but any client that may patch the node can write one."""
    assert owns_count(managers, "replicas") is is_proven


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
