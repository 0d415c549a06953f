"""Claims with something to save, and list prices."""

from typing import Any

import pytest

from tests.idle.cluster_with_orphans import item
from trimtab.idle.claim_usage import GIB, ClaimFinding, VolumeUsage, find_claim_savings
from trimtab.idle.storage_prices import PRICE_ANNOTATION, price_storage_class


def storage_class(name: str, provisioner: str = "ebs.csi.aws.com", **parameters: str) -> dict[str, Any]:
    return item("StorageClass", "", name, provisioner=provisioner, parameters=parameters)


def savings(used: float, capacity: float, *classes: dict[str, Any], of: str = "") -> dict[str, ClaimFinding]:
    claim = item("PersistentVolumeClaim", "shop", "data", spec={"storageClassName": of})
    usage = VolumeUsage("shop", "data", int(used * GIB), int(capacity * GIB))
    return {
        claim_finding.reason.code.name: claim_finding
        for claim_finding in find_claim_savings([usage], [claim, *classes])
    }


def test_a_mostly_empty_claim_gets_a_size_with_room() -> None:
    result = savings(8, 100, storage_class("fast", type="gp3"), of="fast")["claim-mostly-empty"]
    assert result.proposed_bytes == 12 * GIB
    assert result.dollars_per_month == pytest.approx(88 * 0.08)


@pytest.mark.parametrize(("used", "capacity"), [(30, 100), (0.1, 9), (0, 0)])
def test_a_claim_in_use_or_small_is_left_alone(used: float, capacity: float) -> None:
    assert savings(used, capacity) == {}


def test_an_unknown_price_is_not_zero() -> None:
    assert savings(1, 100)["claim-mostly-empty"].dollars_per_month is None


def test_the_highest_of_several_measurements_counts() -> None:
    usages = [VolumeUsage("shop", "data", used * GIB, 100 * GIB) for used in (1, 60, 2)]
    assert find_claim_savings(usages, []) == ()


def test_a_class_that_is_as_fast_and_costs_less_is_preferred() -> None:
    classes = storage_class("old", type="gp2"), storage_class("new", type="gp3"), storage_class("cold", type="sc1")
    result = savings(90, 100, *classes, of="old")["claim-class-dear"]
    assert result.proposed_class == "new"
    assert "at least as fast" in result.reason.sentence
    assert result.dollars_per_month == pytest.approx(2.0)


def test_a_slower_class_is_told_as_such() -> None:
    classes = (
        storage_class("ssd", "pd.csi.storage.gke.io", type="pd-ssd"),
        storage_class("balanced", "pd.csi.storage.gke.io", type="pd-balanced"),
    )
    assert "may be slower" in savings(90, 100, *classes, of="ssd")["claim-class-dear"].reason.sentence


def claimed(class_name: str, **more: Any) -> dict[str, Any]:
    return item("PersistentVolumeClaim", "shop", "data", spec={"storageClassName": class_name, **more})


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"resources": {"requests": {"storage": "40Gi"}}}, {}),
        ({"resources": {"requests": {"storage": "1Gi"}}}, {"status": {"capacity": {"storage": "40Gi"}}}),
    ],
)
def test_a_claim_without_statistics_is_judged_by_its_class(more: dict[str, Any], status: dict[str, Any]) -> None:
    classes = storage_class("old", type="gp2"), storage_class("new", type="gp3")
    (result,) = find_claim_savings([], [claimed("old", **more) | status, *classes])
    assert (result.reason.code.name, result.proposed_class) == ("claim-class-dear", "new")
    assert (result.used_bytes, result.capacity_bytes) == (0, 40 * GIB)


@pytest.mark.parametrize("amount", [None, "many", {}, True])
def test_a_claim_whose_size_cannot_be_read_is_left_out(amount: object) -> None:
    classes = storage_class("old", type="gp2"), storage_class("new", type="gp3")
    claim = claimed("old", resources={"requests": {"storage": amount}})
    assert find_claim_savings([], [claim, *classes]) == ()


def test_classes_of_another_provisioner_do_not_count() -> None:
    classes = storage_class("fast", type="gp2"), storage_class("hdd", "pd.csi.storage.gke.io", type="pd-standard")
    assert "claim-class-dear" not in savings(90, 100, *classes, of="fast")


@pytest.mark.parametrize("manifest", [storage_class("x", "rook.io"), storage_class("x", type="gp9")])
def test_a_class_that_is_not_listed_has_no_price(manifest: dict[str, Any]) -> None:
    assert price_storage_class(manifest) is None


@pytest.mark.parametrize(("text", "price"), [("0.031", 0.031), ("7", 7.0), ("0", None), ("cheap", None), ("-1", None)])
def test_the_price_that_the_class_itself_gives_counts_first(text: str, price: float | None) -> None:
    manifest = storage_class("x", "rook.io")
    manifest["metadata"]["annotations"] = {PRICE_ANNOTATION: text}
    priced = price_storage_class(manifest)
    assert (None if priced is None else priced.dollars_per_gib) == price
