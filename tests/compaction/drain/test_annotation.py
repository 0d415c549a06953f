"""What stands on a node is believed where this compactor signed it, for this node, as it stands."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster_of import NOW, cluster, node
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import (
    DrainAnnotation,
    NotAuthentic,
    PodToEvict,
    encode_annotation,
    read_annotation,
    read_annotations,
)

HOME = "trimtab-system"
KEYS, OTHERS = SigningKeys(b"k" * 32), SigningKeys(b"o" * 32)
NOTE = DrainAnnotation(
    drain="d1",
    pool="web",
    since=NOW,
    home=HOME,
    moves=(PodToEvict(pod="a/web-1", uid="u1", kind="ReplicaSet"),),
    surges={"a/web": 1},
)


def here(text: str | None = None, name: str = "n1") -> NodeInfo:
    [described_node] = cluster(node(name, annotations={CORDONED_BY_US: text} if text is not None else {})).nodes
    return described_node


def signed(note: DrainAnnotation = NOTE, name: str = "n1", keys: SigningKeys = KEYS) -> NodeInfo:
    return here(encode_annotation(note, here(name=name), keys), name)


def test_what_was_signed_for_a_node_is_read_as_it_was_written() -> None:
    assert read_annotation(signed(), KEYS) == NOTE
    assert read_annotation(here(), KEYS) is None


def test_the_key_before_still_verifies() -> None:
    assert read_annotation(signed(), SigningKeys(b"n" * 32, KEYS.current)) == NOTE
    assert isinstance(read_annotation(signed(), SigningKeys(b"n" * 32)), NotAuthentic)


def test_the_same_annotation_on_another_node_or_after_the_node_registered_anew_is_not_authentic() -> None:
    text = signed().annotations[CORDONED_BY_US]
    assert isinstance(read_annotation(here(text, "n2"), KEYS), NotAuthentic)
    assert isinstance(read_annotation(replace(here(text), uid="another"), KEYS), NotAuthentic)


def test_what_the_previous_key_signed_is_told_apart_so_that_it_can_be_signed_anew() -> None:
    keys = SigningKeys(b"n" * 32, KEYS.current)
    nodes = [signed(), signed(name="n2", keys=keys), signed(name="n3", keys=OTHERS)]
    annotations = read_annotations(nodes, keys, HOME)
    assert (set(annotations.ours), annotations.outdated) == ({"n1", "n2"}, {"n1"})
    assert read_annotations(nodes, KEYS, HOME).outdated == frozenset()


@given(st.integers(0, 400), st.characters(codec="utf-8"))
def test_no_character_of_it_can_be_changed(place: int, character: str) -> None:
    text = signed().annotations[CORDONED_BY_US]
    place %= len(text)
    changed = text[:place] + character + text[place + 1 :]
    annotation = read_annotation(here(changed), KEYS)
    assert annotation == NOTE if json_equal(changed, text) else isinstance(annotation, NotAuthentic)


def json_equal(one: str, other: str) -> bool:
    """The same signature over the same text, whatever stands around them."""
    try:
        return bool(json.loads(one) == json.loads(other)) and one.count('"drain":"d1"') == 1
    except ValueError:
        return False


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        "[]",
        "null",
        '{"drain":"d","pool":"p","since":1,"v":1}',
        '{"note":3}',
        '{"signature":"a","note":{}}',
        "[" * 100_000,
        '{"note":' + "[" * 100_000,
        "\ud800",
    ],
)
def test_what_carries_no_right_signature_is_not_authentic_whatever_it_is(text: str) -> None:
    assert isinstance(read_annotation(here(text), KEYS), NotAuthentic)


def test_without_keys_nothing_is_authentic_and_what_it_claims_can_be_told() -> None:
    annotation = read_annotation(signed(), None)
    assert isinstance(annotation, NotAuthentic)
    assert "cannot be verified" in annotation.problem
    assert annotation.claim == NOTE


@pytest.mark.parametrize("change", [{"v": 2}, {"extras": {"a/web": 4}}, {"surges": {"a/web": 0}}])
def test_an_authentic_note_that_this_version_does_not_understand_is_unreadable(change: dict[str, object]) -> None:
    text = json.dumps({"drain": "d", "pool": "p", "since": 1, "v": 1, **change})
    signature = KEYS.sign(f"node annotation {CORDONED_BY_US}", "uid-n1", "n1", text)
    assert isinstance(read_annotation(here(f'{{"note":{text},"signature":"{signature}"}}'), KEYS), Unreadable)


def test_a_note_of_another_namespaces_compactor_is_its_own_affair_and_every_other_is_doubtful() -> None:
    theirs = DrainAnnotation(drain="d", pool="p", since=1, home="elsewhere")
    nodes = [
        signed(),
        signed(theirs, "n2", OTHERS),
        signed(NOTE, "n3", OTHERS),
        here("what is this", "n4"),
        here(name="n5"),
    ]
    annotations = read_annotations(nodes, KEYS, HOME)
    assert (set(annotations.ours), annotations.others, set(annotations.doubtful)) == (
        {"n1"},
        {"n2": "elsewhere"},
        {"n3", "n4"},
    )
