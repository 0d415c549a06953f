"""How a DrainOrder is read, and how large its status can be."""

import json

import msgspec

from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.order_entry import OrderEntry
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_definition import build_drain_order_crd
from trimtab.compaction.order.order_object import OrderSpec, OrderStatus, read_order_objects
from trimtab.compaction.order.order_round import OrderPhase, OrderRound
from trimtab.compaction.order.order_status import differs, progress_status, to_document


def read(*items: object) -> list[object]:
    return list(read_order_objects(json.dumps({"items": items}).encode()))


def item(uid: str = "u", **more: object) -> dict[str, object]:
    metadata = {"name": f"order-{uid}", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"by": "ann", "nodes": ["a"]}, **more}


def test_orders_are_read_oldest_first_without_those_that_are_being_deleted() -> None:
    young, going = item("young"), item("going")
    young["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"  # type: ignore[index]
    going["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"  # type: ignore[index]
    assert [one.uid for one in read(young, going, item("old"))] == ["old", "young"]  # type: ignore[attr-defined]


def test_a_spec_that_cannot_be_read_is_one_order_and_not_all() -> None:
    first, second = read(item("a", spec={"by": 7}), item("b", status={"phase": 7}))
    assert isinstance(first.spec, Unreadable)  # type: ignore[attr-defined]
    assert second.status == OrderStatus()  # type: ignore[attr-defined]


def test_the_digest_of_a_spec_does_not_depend_on_defaults_that_the_api_server_adds() -> None:
    plain = OrderSpec(by="ann", nodes=("a",))
    added = msgspec.convert({"by": "ann", "nodes": ["a"], "atOnce": 1, "force": False, "podTimeout": "5m"}, OrderSpec)
    assert plain.digest == added.digest
    assert plain.digest != OrderSpec(by="ann", nodes=("a",), force=True).digest


def test_the_types_and_the_definition_have_the_same_fields() -> None:
    [version] = build_drain_order_crd()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    for part, shape in (("spec", OrderSpec), ("status", OrderStatus)):
        assert list(schema[part]["properties"]) == [field.encode_name for field in msgspec.structs.fields(shape)]


def test_the_largest_status_is_small_and_the_definition_accepts_it() -> None:
    names = [f"{number:03d}-{'n' * 240}" for number in range(500)]
    entry = OrderEntry(name="order", since=1, digest="", nodes=dict.fromkeys(names, "u"))
    long = o.STAYS("x" * 5000)
    round_ = OrderRound(
        phases=dict.fromkeys(names, OrderPhase.EMPTY),
        waits=dict.fromkeys(names, long),
        failures=dict.fromkeys(names, long),
        stop=long,
        cordoned=tuple(names),
    )
    [order] = read_order_objects(json.dumps({"items": [item()]}).encode())
    status = progress_status(order, entry, round_, None, None, ["y" * 1000] * 30, 1)
    document = to_document(status)
    assert len(json.dumps(document)) < 50_000
    [version] = build_drain_order_crd()["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name, value in document.items():
        if isinstance(value, list):
            assert len(value) <= schema[name]["maxItems"], name
        elif isinstance(value, str):
            assert len(value) <= schema[name]["maxLength"], name
    assert differs(order, status)
    [again] = read_order_objects(json.dumps({"items": [item(status=document)]}).encode())
    assert not differs(again, status)
