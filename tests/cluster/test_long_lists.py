"""A long JSON List is read item by item, each straight into its shape; it must say what a short one says."""

import json

import pytest

from trimtab.cluster.snapshot import load_snapshot
from trimtab.cluster.yaml_documents import read_documents

POD = {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "app"}]}}
PAD = [{"kind": "Padding", "data": "x" * 300_000}]


def loaded(items, kind="List"):
    return load_snapshot([("s.json", json.dumps({"apiVersion": "v1", "kind": kind, "items": items}).encode())])


def same(item, kind="List"):
    """What is read of an item among many, once it was compared with what is read of it alone."""
    long, short = loaded([item, *PAD], kind), loaded([item], kind)
    assert long.snapshot.objects == short.snapshot.objects
    rows = [(m.entry, m.field, m.expected, m.got, m.todo) for m in short.mistakes]
    assert [(m.entry, m.field, m.expected, m.got, m.todo) for m in long.mistakes] == rows
    return long


def test_an_object_is_read_the_same():
    assert len(same(POD).snapshot.objects["Pod"]) == 1


def test_a_list_within_the_list_is_its_items():
    assert len(same({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [POD]}).snapshot.objects["Pod"]) == 1


def test_a_null_is_absence():
    assert len(same({**POD, "status": None, "metadata": {"name": "web", "labels": None}}).snapshot.objects["Pod"]) == 1


@pytest.mark.parametrize(
    "odd",
    [{"spec": {"containers": ""}}, {"metadata": {"name": 3}}, {"spec": {"priority": 1.5}}, {"spec": {"priority": "1"}}],
    ids=["no-list", "number-as-name", "fraction", "text-as-number"],
)
def test_what_makes_no_sense_is_told_with_its_place(odd):
    assert len(same({**POD, **odd}).mistakes) == 1


@pytest.mark.parametrize("item", [None, 3, [], {}, {"kind": 3}, {"kind": ""}, {"kind": None}])
def test_what_is_no_object_is_told(item):
    assert len(same(item).mistakes) == 1


def test_an_object_that_could_not_be_read_when_it_was_captured_is_told():
    item = {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "unreadable": "too large"}
    assert "too large (namespace shop)" in same(item).mistakes[0].got


def test_a_replication_controllers_selector_is_a_map():
    spec = {"replicas": 2, "selector": {"app": "web"}}
    result = same({"kind": "ReplicationController", "metadata": {"name": "web"}, "spec": spec})
    assert result.snapshot.objects["ReplicationController"][0].spec.selector.match_labels == {"app": "web"}


def test_the_items_of_a_podlist_are_pods():
    item = {key: value for key, value in POD.items() if key != "kind"}
    padding = [{**item, "metadata": {"name": f"web-{n}", "uid": "x" * 1000}} for n in range(300)]
    assert len(loaded([item, *padding], "PodList").snapshot.objects["Pod"]) == 301


def test_a_value_is_there_for_whoever_asks():
    documents = read_documents("s.json", json.dumps({"kind": "List", "items": [POD, *PAD]}).encode()).documents
    assert [document.kind for document in documents] == ["Pod", "Padding"]
    assert (documents[0].value, documents[0].entry_name, documents[0].index) == (POD, "Pod web", 0)


def test_an_item_that_is_no_json_inside_is_told():
    text = json.dumps({"kind": "List", "items": [{**POD, "status": {"phase": "PHASE"}}, *PAD]})
    reading = load_snapshot([("s.json", text.replace('"PHASE"', '"\\ud800"').encode())])
    assert len(reading.mistakes) == 1
