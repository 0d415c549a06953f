"""Laws of what stands on a node: whoever may annotate one makes nothing fail, and nothing cost more than in proportion.

An API server takes any text as an annotation, 256 KiB of them on one object (apimachinery, TotalAnnotationSizeLimitB).
"""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.doctor.worlds import WELL
from tests.cluster_of import cluster, node
from tests.compactor.five import five
from tests.compactor.played import Played, process
from tests.hostile.cost import growth, lines
from tests.hostile.notes import ANNOTATIONS, LIMIT, NOTES
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotations, read_annotations
from trimtab.diagnosis import check_signatures
from trimtab.diagnosis.observed import SignatureState
from trimtab.inputs.compactor_state import judge_node

KEYS = SigningKeys(b"k" * 32, b"p" * 32)
MOST_GROWTH = 1.3


def read(text: str) -> DrainAnnotations:
    """By all who read it: the compactor, `release`, `doctor`; with a key and without one."""
    [described_node] = cluster(node("n1", annotations={CORDONED_BY_US: text}, cordoned=True)).nodes
    for keys in (None, KEYS):
        notes = read_annotations([described_node], keys, "trimtab-system")
        assert len([*notes.ours, *notes.others, *notes.doubtful]) == 1
        assert str(judge_node(described_node, keys)).isprintable()
        signature_state = SignatureState(webhook_keys=True, keys=keys is not None, annotations=notes, states={})
        assert all(str(one.reason) for one in check_signatures.check_drains(replace(WELL, signatures=signature_state)))
    return notes


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("drain", "pool", "since", "home", "moves", "emptied", "surges", "surged", "saves", "unit", "v")
NOTE = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON | st.just("a") | st.just(1)))
TEXT = st.one_of(
    st.text(),
    JSON.map(json.dumps),
    NOTE.map(json.dumps),
    st.builds(lambda note, sign: json.dumps({"note": note, "signature": sign}), NOTE, st.text() | st.none()),
    st.builds(lambda note, sign: f'{{"note":{note},"signature":"{sign}"}}', st.text(), st.text()),
)


@settings(max_examples=10 * settings().max_examples)
@given(TEXT)
def test_no_annotation_makes_whoever_reads_it_fail_and_none_is_ours_without_our_key(text: str) -> None:
    assert not read(text).ours


@pytest.mark.parametrize("shape", NOTES, ids=lambda shape: shape.name)
def test_nor_does_one_as_large_as_the_api_server_takes(shape) -> None:
    text = shape.make(shape.most)
    assert LIMIT // 2 < len(text.encode()) <= LIMIT
    assert not read(text).ours


@pytest.mark.parametrize("shape", NOTES, ids=lambda shape: shape.name)
def test_reading_an_annotation_costs_no_more_than_in_proportion_to_it(shape) -> None:
    texts = [shape.make(n) for n in (0, 100, 200, 300)]
    for text in texts:
        read(text)
    assert growth(tuple(lines(lambda text=text: read(text)) for text in texts)) <= MOST_GROWTH


def round_of(annotations: dict[str, str]) -> Played:
    played = five()
    played.nodes["n1"]["metadata"]["annotations"] |= annotations
    played.nodes["n1"]["spec"]["unschedulable"] = True
    return played


def rounds(played: Played) -> int:
    """The cost of three rounds of the compactor, in which it plans and begins; nothing fails in them."""
    loop = process(played)

    def three() -> None:
        for _ in range(3):
            loop.run_round()
            played.tick()

    cost = lines(three)
    assert (loop.error_guard.error_count, loop.problem) == (0, "")
    assert played.nodes["n1"]["spec"]["unschedulable"], "what it did not close it does not open"
    return cost


@pytest.mark.parametrize("shape", ANNOTATIONS, ids=lambda shape: shape.name)
def test_a_round_of_the_compactor_costs_no_more_than_in_proportion_to_what_stands_on_a_node(shape) -> None:
    rounds(round_of(shape.make(0)))
    costs = tuple(rounds(round_of(shape.make(n))) for n in (0, 200, 400, 600))
    assert growth(costs) <= MOST_GROWTH
