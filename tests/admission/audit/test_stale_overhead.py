"""What RuntimeClasses cost in overhead, and where their pods may run."""

import pytest

from tests.build import facts, node, runtime_class, toleration
from trimtab.admission.audit.stale_overhead import ClassOverhead, class_overheads
from trimtab.cluster.api.core import Node, Taint
from trimtab.cluster.api.meta import change

KATA = runtime_class("kata", overhead={"cpu": "250m", "memory": "160Mi"}, node_selector={"sandbox": "kata"})


def test_the_overhead_of_all_pods_of_a_class_is_counted_as_it_is_stored():
    old, new = {"cpu": "100m", "memory": "64Mi"}, {"cpu": "250m", "memory": "160Mi"}
    overheads = class_overheads([("kata", old, 3), ("kata", new, 2)], facts(KATA))
    assert overheads["kata"] == ClassOverhead(5, 800, 512 << 20, 0, "no-label")


def test_a_class_without_pods_is_told_and_so_are_pods_whose_class_is_gone():
    overheads = class_overheads([("gone", {"cpu": "1"}, 1)], facts(KATA))
    assert (overheads["kata"].pods, overheads["gone"]) == (0, ClassOverhead(1, 1000, 0, None))


def test_kinds_of_nodes_that_the_class_allows_are_counted():
    nodes = [node("n1", labels={"sandbox": "kata"}), node("n2", labels={"sandbox": "kata", "zone": "a"}), node("n3")]
    assert class_overheads([], facts(KATA, *nodes))["kata"].node_kinds == 2


def test_an_overhead_that_cannot_be_read_counts_as_none():
    assert class_overheads([("kata", {"cpu": "lots"}, 2)], facts(KATA))["kata"].millicores == 0


BOXES = node("n1", labels={"sandbox": "kata"})
TAINTED = node("n1", labels={"sandbox": "kata"}, taints=(Taint(key="kata", effect="NoSchedule"),))
CLOUD = change(BOXES, spec=change(BOXES.spec, provider_id="gce://x/y/z", unschedulable=True))


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([BOXES], None),
        ([node("n2")], "no-label"),
        ([TAINTED], "tainted"),
        ([TAINTED, BOXES], None),
        ([CLOUD], "cordoned"),
        ([node("n2", provider="gce://x/y/z")], "may-come"),
    ],
)
def test_why_no_node_takes_the_pods_of_a_class_is_told(nodes: list[Node], why: str | None):
    assert class_overheads([], facts(KATA, *nodes))["kata"].no_nodes == why


def test_a_class_that_tolerates_its_nodes_taints_has_nodes():
    tolerant = runtime_class("kata", node_selector={"sandbox": "kata"}, tolerations=(toleration("kata", "no"),))
    assert class_overheads([], facts(tolerant, TAINTED))["kata"].no_nodes == "tainted"
    exists = runtime_class(
        "kata", node_selector={"sandbox": "kata"}, tolerations=(toleration("kata", operator="Exists"),)
    )
    assert class_overheads([], facts(exists, TAINTED))["kata"].no_nodes is None
