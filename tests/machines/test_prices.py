"""What does a node cost? Label, settings, table, else unknown."""

from dataclasses import replace

import pytest

from tests.cluster_of import cluster, node
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo
from trimtab.cluster.reason import NotYet
from trimtab.machines.prices import (
    PRICE_KEYS,
    MachinePrice,
    PriceSource,
    price_key,
    price_of,
    price_table,
    quote_price,
    regions_with_list_prices,
)


def made(**labels: str) -> NodeInfo:
    return cluster(node("a", labels={k.replace("__", "/"): v for k, v in labels.items()})).nodes[0]


def of_type(name: str, **labels: str) -> NodeInfo:
    return cluster(node("a", labels={INSTANCE_TYPE_LABEL: name, **labels})).nodes[0]


def test_the_table_knows_machines_of_three_clouds() -> None:
    assert (price_table()["a1.large"], price_table()["Standard_A2_v2"], price_table()["c2-standard-4"]) == (
        51000,
        86100,
        229872,
    )
    assert all(value > 0 for value in price_table().values())


def test_label_before_settings_before_table() -> None:
    assert price_of(of_type("a1.large"), {}) == 51000
    assert price_of(of_type("a1.large"), {"a1.large": 7}) == 7
    assert price_of(of_type("a1.large", **{"trimtab.dev/price": "9"}), {"a1.large": 7}) == 9


def test_an_unknown_type_or_a_spot_node_has_no_price_rather_than_a_wrong_one() -> None:
    assert isinstance(price_of(of_type("made-up"), {}), NotYet)
    assert isinstance(price_of(of_type("made-up", **{"karpenter.sh/capacity-type": "spot"}), {}), NotYet)
    assert price_of(of_type("a1.large", **{"cloud.google.com/gke-spot": "true"}), {"a1.large": 5}) == 5


def test_a_label_that_is_no_price_is_not_one() -> None:
    assert isinstance(price_of(made(trimtab_price="cheap"), {}), NotYet)


REGION = "topology.kubernetes.io/region"
SPOT = {"karpenter.sh/capacity-type": "spot"}


@pytest.mark.parametrize(
    ("labels", "settings", "amount", "source"),
    [
        ({REGION: "us-east-1"}, {}, 51000, "list"),
        ({}, {}, 51000, "list-region-unknown"),
        ({REGION: "us-east-1", **SPOT}, {}, 17850, "spot-discount"),
        ({REGION: "eu-central-1"}, {}, 51000, "list-other-region"),
        ({REGION: "eu-central-1", **SPOT}, {}, 17850, "spot-discount"),
        ({REGION: "eu-central-1"}, {"a1.large": 7}, 7, "settings"),
        ({REGION: "eu-central-1", "trimtab.dev/price": "9"}, {"a1.large": 7}, 9, "label"),
    ],
)
def test_a_quote_says_on_whose_word_it_is(
    labels: dict[str, str], settings: dict[str, int], amount: int, source: str
) -> None:
    assert quote_price(of_type("a1.large", **labels), settings) == MachinePrice(amount, PriceSource(source))


@pytest.mark.parametrize("labels", [{}, {REGION: "eu-central-1"}, SPOT, {"trimtab.dev/price": "9"}])
def test_every_verb_has_the_price_that_a_plan_counts(labels: dict[str, str]) -> None:
    quoted = quote_price(of_type("a1.large", **labels), {})
    assert isinstance(quoted, MachinePrice)
    assert price_of(of_type("a1.large", **labels), {}) == quoted.amount


@pytest.mark.parametrize(
    ("region", "kinds", "regions"),
    [
        ("us-east-1", (), ("us-east-1",)),
        ("ap-southeast-2", (), ("us-east-1",)),
        ("us-central1", (), ("europe-west4",)),
        ("eastus2", (), ("westeurope",)),
        ("RegionOne", ("m5.large",), ("us-east-1",)),
        ("", ("n2-standard-4", "unheard-of"), ("europe-west4",)),
        ("RegionOne", (), ("europe-west4", "us-east-1", "westeurope")),
    ],
)
def test_a_region_without_list_prices_gets_those_of_its_cloud(
    region: str, kinds: tuple[str, ...], regions: tuple[str, ...]
) -> None:
    assert regions_with_list_prices(region, kinds) == regions


def test_what_a_price_file_says_of_the_node_counts_first() -> None:
    priced = replace(of_type("a1.large", **{"trimtab.dev/price": "9"}), price=3)
    assert quote_price(priced, {}) == MachinePrice(3, PriceSource.FILE)


class Asked(dict[str, str]):
    """Labels that write down which of them were asked for."""

    def __init__(self, **labels: str) -> None:
        super().__init__(labels)
        self.keys_read: set[str] = set()

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.keys_read.add(key)
        return super().get(key, default)


@pytest.mark.parametrize("kind", ["m5.xlarge", "unheard-of", ""])
def test_a_price_depends_on_nothing_but_its_key(kind: str) -> None:
    [described_node] = cluster(node("a")).nodes
    labels = Asked(**{INSTANCE_TYPE_LABEL: kind})
    labelled = replace(described_node, labels=labels)
    labels.keys_read.clear()
    quote_price(labelled, {})
    assert labels.keys_read <= {*PRICE_KEYS}
    for key in PRICE_KEYS:
        assert price_key(replace(described_node, labels={key: "other"})) != price_key(
            replace(described_node, labels={})
        )
    assert price_key(replace(described_node, price=1)) != price_key(described_node)
