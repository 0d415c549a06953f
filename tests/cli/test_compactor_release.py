"""What `trimtab compactor release` says of a node before it opens it."""

import pytest

from tests.cluster_of import NOW, cluster, node
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, OrderMark, encode_annotation
from trimtab.inputs.compactor_state import judge_node

KEYS, OTHERS = SigningKeys(b"k" * 32), SigningKeys(b"o" * 32)


def here(text: str | None, **more: object) -> NodeInfo:
    annotations = {CORDONED_BY_US: text} if text is not None else {}
    [described_node] = cluster(node("n1", annotations=annotations, cordoned=True, **more)).nodes
    return described_node


def signed() -> str:
    return encode_annotation(DrainAnnotation(drain="d1", pool="web", since=NOW), here(None), KEYS)


@pytest.mark.parametrize(
    ("text", "keys", "verdict"),
    [
        (signed(), KEYS, "drain d1 of pool web since"),
        (signed(), KEYS, "; authentic; cordoned"),
        (signed(), OTHERS, "this compactor did not make the signature"),
        (signed(), None, "cannot be verified"),
        ('{"drain":"d1","pool":"web","since":1}', KEYS, "no signature"),
        ("{", KEYS, "the annotation of the node is invalid"),
        ('{"drain":"d1","pool":"web","since":1000000000000000000}', KEYS, "the annotation of the node is invalid"),
        ('{"drain":"d1","pool":"web","since":-1}', KEYS, "the annotation of the node is invalid"),
        ('{"drain":"\\u001b[2J","pool":"web","since":1}', KEYS, "the annotation of the node is invalid"),
        ('{"drain":"d1","pool":"' + "x" * 100_000 + '","since":1}', KEYS, "the annotation of the node is invalid"),
    ],
)
def test_what_stands_on_a_node_is_said_with_its_verdict(text: str, keys: SigningKeys | None, verdict: str) -> None:
    node = judge_node(here(text), keys)
    assert node is not None
    assert verdict in str(node)
    assert node.can_be_opened


def test_a_node_without_the_annotation_is_nobodys_to_release() -> None:
    assert judge_node(here(None), KEYS) is None


def test_a_node_that_somebody_deletes_stays_as_it_is() -> None:
    node = judge_node(here("{", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]), KEYS)
    assert node is not None
    assert not node.can_be_opened


@pytest.mark.parametrize("was_cordoned", [True, False])
def test_a_node_of_an_order_keeps_the_cordon_that_another_client_had_made(was_cordoned: bool) -> None:
    mark = OrderMark(order="u-1", was_cordoned=was_cordoned)
    note = DrainAnnotation(drain="d1", pool="web", since=NOW, order=mark)
    node = judge_node(here(encode_annotation(note, here(None), KEYS)), KEYS)
    assert node is not None
    assert node.keeps_cordon is was_cordoned
    assert "for a DrainOrder" in str(node)
