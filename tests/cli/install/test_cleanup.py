"""What of a node is ours, and what stays on it when that is taken off."""

import base64
import json
from typing import Any

import pytest

from tests.reasons import has_facts
from trimtab.cli.install.cleanup import (
    Uninstaller,
    clear_renamed_taints,
    find_surged_deployments,
    has_marks,
    taints_without_own,
)
from trimtab.cluster.api.core import Node as Shape
from trimtab.cluster.api.core import NodeSpec, Taint
from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.node import NodeInfo, node_from_api
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.actions import SetReplicas
from trimtab.compaction.drain.annotation import (
    DrainAnnotation,
    DrainAnnotations,
    OrderMark,
    encode_annotation,
    read_annotations,
)
from trimtab.compaction.drain.pool_state import STATE_KEY, STATE_LABEL, PoolState
from trimtab.compaction.drain.pool_state import encode_state as state_text
from trimtab.compactor.soft_taint import LEAVING, RENAMED_LEAVING
from trimtab.kube.errors import refusal_of_response
from trimtab.kube.objects import Writer

HOME = "trimtab-system"
OURS = Taint(key=LEAVING, value=HOME, effect="PreferNoSchedule")
THEIRS = Taint(key="dedicated", value="gpu", effect="NoSchedule")


KEYS = SigningKeys(b"k" * 32)


def node(note: str = "", *taints: Taint) -> NodeInfo:
    meta = Metadata(name="n1", uid="u1", annotations={CORDONED_BY_US: note} if note else {"other": "1"})
    return node_from_api(Shape(metadata=meta, spec=NodeSpec(taints=taints, unschedulable=True)))


def of(home: str, keys: SigningKeys = KEYS) -> str:
    annotation = DrainAnnotation(
        drain="d", pool="p", since=0, home=home, surges={"a/web": 1, "a/api": 1}, surged={"a/web": 5}
    )
    return encode_annotation(annotation, node(), keys)


def notes(text: str, keys: SigningKeys | None = KEYS) -> DrainAnnotations:
    return read_annotations((node(text),), keys, HOME)


FORGED = of(HOME, SigningKeys(b"o" * 32))


@pytest.mark.parametrize(
    ("text", "ours"),
    [(of(HOME), True), (FORGED, False), ("what is this", False), (of("elsewhere"), False), ("", False)],
)
def test_a_note_is_ours_where_this_installation_signed_it(text: str, ours: bool) -> None:
    assert has_marks(node(text), notes(text), HOME) is ours
    assert not has_marks(node(text), notes(text, None), HOME), "without the key nothing is known to be ours"


def test_a_node_that_is_cordoned_for_an_order_is_marked_and_is_no_drain_of_our_own_wish() -> None:
    note = DrainAnnotation(drain="d", pool="p", since=0, home=HOME, order=OrderMark(order="u-1"))
    text = encode_annotation(note, node(), KEYS)
    assert has_marks(node(text), notes(text), HOME)
    assert notes(text).ours == {}
    assert notes(text).signed == {"n1": note}


def test_our_taint_alone_marks_a_node_and_does_not_make_its_cordon_ours() -> None:
    assert has_marks(node("", OURS), notes(""), HOME)
    assert "n1" not in notes("").ours


def test_other_taints_stay_in_their_order() -> None:
    elsewhere = Taint(key=LEAVING, value="elsewhere", effect="PreferNoSchedule")
    assert taints_without_own(node("", THEIRS, OURS, elsewhere), HOME) == (THEIRS, elsewhere)


def test_our_taint_under_its_earlier_key_is_ours_too() -> None:
    earlier = Taint(key=RENAMED_LEAVING, value=HOME, effect="PreferNoSchedule")
    assert taints_without_own(node("", THEIRS, earlier), HOME) == (THEIRS,)


def test_an_installation_removes_the_taint_with_the_earlier_key() -> None:
    cluster = Cluster()
    cluster.there["/nodes/n1"]["spec"]["taints"] = [
        {"key": RENAMED_LEAVING, "value": HOME, "effect": "PreferNoSchedule"},
        {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},
    ]
    cluster.there["/nodes/n1"]["metadata"]["resourceVersion"] = "1"
    writer = Writer(client=cluster)  # type: ignore[arg-type]
    [done] = clear_renamed_taints(writer, HOME)
    assert (str(done.what), done.how) == ("Node n1", f"taint {RENAMED_LEAVING} removed")
    assert cluster.writes == ["PATCH n1"]
    [left] = clear_renamed_taints(Writer(client=Cluster(refuses="/nodes")), HOME)  # type: ignore[arg-type]
    assert has_facts(left.how, "taint stays", "compactor removes")


def test_where_none_is_ours_taints_are_not_written() -> None:
    assert taints_without_own(node(of(HOME), THEIRS), HOME) is None


def test_only_what_note_and_state_say_was_given_a_second_replica_is_scaled_back() -> None:
    state = PoolState(surged={"a/web": "d", "a/api": "d", "a/db": "d"})
    assert find_surged_deployments(notes(of(HOME)), [state]) == {"a/web": SetReplicas("a/web", 2, 1)}
    assert find_surged_deployments(notes(of(HOME)), []) == {}
    assert find_surged_deployments(notes(of(HOME)), [PoolState(surged={"a/web": "another"})]) == {}
    assert find_surged_deployments(notes(FORGED), [state]) == {}
    assert find_surged_deployments(notes(of("elsewhere")), [state]) == {}


class Cluster:
    """What a client gives: one closed node whose drain gave a/web a second replica, and the state that says so.

    `refuses`: the end of a path that may be neither read nor written.
    """

    def __init__(self, refuses: str = "nothing") -> None:
        self.refuses, self.writes = refuses, list[str]()
        text = state_text(PoolState(surged={"a/web": "d"}))
        data = {STATE_KEY: text, "serial": "1", "signature": KEYS.sign("state of a pool", "s1", "p", "1", text)}
        node = {
            "metadata": {"name": "n1", "uid": "u1", "annotations": {CORDONED_BY_US: of(HOME)}},
            "spec": {"unschedulable": True},
        }
        state = {"metadata": {"name": "trimtab-state-p", "namespace": HOME, "labels": {STATE_LABEL: "p"}}, "data": data}
        self.there: dict[str, Any] = {
            "/nodes": {"metadata": {}, "items": [node]},
            "/nodes/n1": node,
            "/configmaps": {"metadata": {}, "items": [state]},
            "/scale": {"spec": {"replicas": 2}},
            "/secrets/trimtab-compactor-signing": {
                "metadata": {"uid": "s1"},
                "data": {"current": base64.b64encode(KEYS.current).decode()},
            },
        }

    def _may(self, path: str, doing: str) -> None:
        if path.endswith(self.refuses):
            raise refusal_of_response(doing, 403, b"{}")

    def get(self, path: str, *_: object, doing: str, **__: object) -> bytes:
        self._may(path, doing)
        return json.dumps(next(item for end, item in self.there.items() if path.endswith(end))).encode()

    def write(self, method: str, path: str, *_: object, doing: str, **__: object) -> bytes:
        self._may(path, doing)
        self.writes.append(f"{method} {path.rpartition('/')[2]}")
        return b'{"metadata": {}}'


def undone(cluster: Cluster) -> list[str]:
    writer = Writer(client=cluster)  # type: ignore[arg-type]
    return [f"{done.what}: {done.how}" for done in Uninstaller(writer=writer, namespace=HOME).restore_nodes()]


def test_a_second_replica_is_taken_back_before_the_note_that_tells_of_it_goes() -> None:
    cluster = Cluster()
    undone(cluster)
    assert cluster.writes == ["PATCH scale", "PATCH n1"]


def test_without_the_right_to_scale_nodes_are_opened_all_the_same_and_what_is_left_is_named() -> None:
    [left, node] = undone(Cluster(refuses="/scale"))
    assert has_facts(left, "Deployment a/web", "one replica", "scale Deployment a/web")
    assert node == "Node n1: restored"


def test_without_the_right_to_read_the_key_a_node_stays_closed_and_the_reason_is_said() -> None:
    [left] = undone(Cluster(refuses="signing"))
    assert has_facts(
        left, "Node n1", "cordoned", "signature", "signing key", "not available", "trimtab compactor release"
    )
