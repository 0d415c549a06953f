"""Pods of a node by interfaces, prefixes, Cilium, its address range and the ARP table."""

import csv
import os
from pathlib import Path

import pytest

from trimtab.reservations.eni_table import interfaces_by_type
from trimtab.reservations.pod_limits import (
    count_cidr_pods,
    count_cilium_pods,
    count_interface_pods,
    count_prefix_pods,
    exceeds_arp_table,
    max_pods_for_cidr,
)

SHARED = Path(os.environ.get("TRIMTAB_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CATALOG = SHARED / "data" / "catalog" / "aws_us-east-1.csv"


def test_the_table_has_every_type() -> None:
    assert len(interfaces_by_type()) == 1384
    assert all(shape.count >= 1 and shape.addresses >= 2 for shape in interfaces_by_type().values())


@pytest.mark.skipif(not CATALOG.exists(), reason="the catalogue is not on this machine")
def test_the_pods_of_every_type_are_those_of_another_published_table() -> None:
    with CATALOG.open() as file:
        published = {row["instance_type"]: row["max_pods_eni"] for row in csv.DictReader(file) if row["max_pods_eni"]}
    ours = {kind: count_interface_pods(shape) for kind, shape in interfaces_by_type().items()}
    both = published.keys() & ours.keys()
    assert len(both) > 1300
    assert {kind: ours[kind] for kind in both if ours[kind] != int(published[kind])} == {}


def test_cilium_that_leaves_the_first_interface_alone_has_42_addresses_where_58_pods_are_allowed() -> None:
    interfaces = interfaces_by_type()["m5.xlarge"]
    assert count_interface_pods(interfaces) == 58
    assert count_cilium_pods(interfaces, first_interface_index=1) == 42
    assert count_cilium_pods(interfaces) == 56
    assert count_cilium_pods(interfaces, first_interface_index=9) == 0


def test_prefixes_are_bounded_by_what_amazon_advises_for_the_cores() -> None:
    interfaces = interfaces_by_type()["m5.8xlarge"]
    assert count_prefix_pods(interfaces, 30) == 110
    assert count_prefix_pods(interfaces, 32) == 250


def test_four_fifths_of_a_range_are_for_pods() -> None:
    assert [count_cidr_pods(bits) for bits in (23, 24, 25)] == [409, 204, 102]
    assert max_pods_for_cidr(24) == 253
    assert max_pods_for_cidr(32) == 0


def test_four_hundred_pods_need_larger_arp_thresholds() -> None:
    assert not exceeds_arp_table(399)
    assert exceeds_arp_table(400)
