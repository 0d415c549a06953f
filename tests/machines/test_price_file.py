"""OpenCost's CSV: a node by its own row, else its type in its region; what is no price is a mistake, never a zero."""

from dataclasses import replace

import pytest

from tests.cluster_of import cluster, node
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, REGION_LABEL, NodeInfo
from trimtab.machines.prices import merge_price_files, read_price_file

HEADER = "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,Version\n"


def machine(name: str = "a", kind: str = "m5.large", region: str = "eu-west-1", provider: str = "") -> NodeInfo:
    described_node = cluster(node(name, labels={INSTANCE_TYPE_LABEL: kind, REGION_LABEL: region})).nodes[0]
    return replace(described_node, provider_id=provider)


@pytest.mark.parametrize(
    ("row", "asked", "price"),
    [
        (",i-1,,node,spec.providerID,m5.large,0.05,", machine(provider="aws:///eu-west-1a/i-1"), 50_000),
        (",i-1,eu-west-1,node,spec.providerID,m5.large,0.05,", machine(provider="aws:///eu-west-1a/i-1"), 50_000),
        (",a,EU-WEST-1,node,metadata.name,,0.07,", machine(), 70_000),
        (",m5.large,,node,metadata.labels.node.kubernetes.io/instance-type,,0.06,", machine(), 60_000),
        (",other,eu-west-1,node,metadata.name,m5.large,0.08,", machine(), 80_000),
        (",other,us-east-1,node,metadata.name,m5.large,0.08,", machine(), None),
        (",pvc-1,,pv,metadata.name,m5.large,0.08,", machine(name="pvc-1"), None),
    ],
)
def test_a_row_prices_the_nodes_it_speaks_of(row: str, asked: NodeInfo, price: int | None) -> None:
    price_file, mistakes = read_price_file("prices.csv", HEADER + row + "\n")
    assert (price_file.price_of(asked), mistakes) == (price, [])


def test_a_type_costs_the_mean_of_its_rows() -> None:
    rows = ",x,eu-west-1,node,metadata.name,m5.large,0.04,\n,y,eu-west-1,node,metadata.name,m5.large,0.06,\n"
    assert read_price_file("prices.csv", HEADER + rows)[0].price_of(machine()) == 50_000


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "much", "", "1e9"])
def test_what_is_no_price_is_named_and_prices_nothing(amount: str) -> None:
    price_file, mistakes = read_price_file("prices.csv", HEADER + f",a,,node,metadata.name,,{amount},\n")
    assert price_file.price_of(machine()) is None
    assert "MarketPriceHourly" in str(mistakes[0])


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "\0"])
def test_another_file_is_refused_with_the_columns_that_are_needed(text: str) -> None:
    _, mistakes = read_price_file("prices.csv", text)
    assert "InstanceIDField" in str(mistakes[0])


def test_of_two_files_the_later_counts() -> None:
    one, other = (read_price_file("p", HEADER + f",a,,node,metadata.name,,{price},\n")[0] for price in ("1", "2"))
    assert merge_price_files([one, other]).price_of(machine()) == 2_000_000


WITH_TYPES = HEADER.strip() + ",CapacityType\n"


def test_spot_machines_have_prices_of_their_own() -> None:
    rows = ",,eu-west-1,node,,m5.large,0.03,,spot\n,,eu-west-1,node,,m5.large,0.09,,on-demand\n"
    prices, mistakes = read_price_file("prices.csv", WITH_TYPES + rows)
    spot = replace(machine(), labels={**machine().labels, "karpenter.sh/capacity-type": "spot"})
    assert (prices.price_of(spot), prices.price_of(machine()), mistakes) == (30_000, 90_000, [])
    assert dict(prices.list_types) == {("eu-west-1", "m5.large"): 90_000}


@pytest.mark.parametrize(("word", "on_spot", "on_demand"), [("spot", 30_000, None), ("On-Demand", None, 30_000)])
def test_a_price_of_one_capacity_type_is_none_of_the_other(
    word: str, on_spot: int | None, on_demand: int | None
) -> None:
    prices, _ = read_price_file("prices.csv", WITH_TYPES + f",,eu-west-1,node,,m5.large,0.03,,{word}\n")
    spot = replace(machine(), labels={**machine().labels, "karpenter.sh/capacity-type": "spot"})
    assert (prices.price_of(spot), prices.price_of(machine())) == (on_spot, on_demand)


def test_another_capacity_type_is_a_mistake() -> None:
    _, mistakes = read_price_file("prices.csv", WITH_TYPES + ",,eu-west-1,node,,m5.large,0.03,,reserved\n")
    assert "CapacityType" in str(mistakes[0])
