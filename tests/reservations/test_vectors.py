"""Every worked example of a vendor's formula, to its last digit, and what Karpenter publishes for each type."""

import csv
import os
from fractions import Fraction
from pathlib import Path

import pytest

from tests.reservations.vectors import EXAMPLES, count_exact_examples, reserve
from trimtab.reservations.formula import NodeSize, calculate_reservations
from trimtab.reservations.profile import GIB, MIB
from trimtab.reservations.read_profile import shipped_profiles

SHARED = Path(os.environ.get("TRIMTAB_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CATALOG = SHARED / "data" / "catalog" / "aws_us-east-1.csv"


@pytest.mark.parametrize("number", EXAMPLES)
def test_every_value_of_the_example_holds(number: int) -> None:
    wrong = [f"{float(check.got)} for {check.printed}" for check in EXAMPLES[number]() if not check.holds]
    assert not wrong


def test_all_examples_count() -> None:
    assert count_exact_examples() == 32


AUTO_SIZING_TABLE = ((8, "1.8"), (16, "2.6"), (32, "3.56"), (64, "5.48"), (128, "9.32"), (256, "11.88"))


@pytest.mark.parametrize(("gib", "reserved"), AUTO_SIZING_TABLE)
def test_the_auto_sizing_table_is_the_formula_without_the_eviction_threshold(gib: int, reserved: str) -> None:
    memory = reserve("gke", gib=gib).memory
    assert memory.kube == Fraction(reserved) * GIB
    assert memory.withheld == memory.kube + 100 * MIB


SIDE_BY_SIDE = {
    (2, 8, 29): (1943, 2593, 701, 674, 1124, 1124),
    (4, 16, 110): (2762, 3412, 2246, 1565, 1124, 1124),
    (8, 32, 110): (3745, 4395, 2246, 1565, 2148, 1124),
    (16, 64, 250): (5712, 6362, 4916, 3105, 4196, 1124),
    (32, 128, 250): (9644, 10294, 4916, 3105, 8292, 1124),
}


@pytest.mark.parametrize("size", SIDE_BY_SIDE)
def test_vendors_differ_by_a_factor_of_three_and_more_for_the_same_node(size: tuple[int, int, int]) -> None:
    cores, gib, pods = size
    profiles = ("gke", "aks", "aks-1.29", "eks", "openshift-2026", "gardener")
    withheld = [reserve(name, cores=cores, gib=gib, pods=pods).memory.withheld / MIB for name in profiles]
    assert tuple(round(mib) for mib in withheld) == SIDE_BY_SIDE[size]


@pytest.mark.skipif(not CATALOG.exists(), reason="the catalogue is not on this machine")
def test_every_instance_type_has_the_allocatable_that_karpenter_publishes() -> None:
    profile = shipped_profiles()["karpenter"]
    with CATALOG.open() as file:
        rows = [row for row in csv.DictReader(file) if row["max_pods_eni"] and row["alloc_memory_mib_karpenter"]]
    assert len(rows) > 1300
    different = {}
    for row in rows:
        size = NodeSize(
            millicores=1000 * int(row["vcpu"]),
            memory_bytes=int(row["memory_mib"]) * MIB,
            max_pods=int(row["max_pods_eni"]),
            architecture=row["arch"],
        )
        reservations = calculate_reservations(profile, size)
        ours = (reservations.allocatable_memory_bytes / MIB, reservations.allocatable_millicores)
        if ours != (int(row["alloc_memory_mib_karpenter"]), int(row["alloc_cpu_milli"])):
            different[row["instance_type"]] = ours
    assert different == {}
