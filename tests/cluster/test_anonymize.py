"""Names stay unreadable whatever they look like, and wherever they are written: in numbers, comments and labels."""

import json
from typing import Any

import pytest
import yaml

from trimtab.cluster.anonymize import hash_names
from trimtab.cluster.pool_config import read_pools
from trimtab.cluster.yaml_documents import Document

Item = dict[str, Any]


def hashed(*items: Item) -> list[Item]:
    return hash_names(list(items), b"salt")


def pool(settings: str) -> Item:
    meta = {"name": "pool-web", "namespace": "trimtab-system", "labels": {"trimtab.dev/pool": "web"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": settings}}


def pod(name: str = "p", **metadata: Any) -> Item:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": {}}


@pytest.mark.parametrize("name", ["4711007", "2024", "12Mi", "5m", "90%", "1e3", "2024-01-01 10:00:00", "-7"])
def test_a_name_that_looks_like_a_number_is_replaced(name: str) -> None:
    labels, annotations = {"customer": name}, {"acme.io/ticket": name, "trimtab.dev/owner": name}
    item = pod(name, namespace=name, labels=labels, annotations=annotations)
    item["spec"] = {"serviceAccountName": name, "nodeName": name, "containers": [{"name": name, "image": name}]}
    assert f'"{name}"' not in json.dumps(hashed(item))


@pytest.mark.parametrize("resource", ["requests", "limits"])
def test_amounts_stay_as_they_are(resource: str) -> None:
    item = pod(creationTimestamp="2026-01-02T03:04:05Z")
    item["spec"] = {"containers": [{"name": "a", "resources": {resource: {"cpu": "500m", "memory": "1.5Gi"}}}]}
    [actual] = hashed(item)
    assert actual["spec"]["containers"][0]["resources"] == item["spec"]["containers"][0]["resources"]
    assert actual["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    "label",
    [
        "kubernetes.azure.com/cluster",
        "node-restriction.kubernetes.io/customer",
        "a.k8s.io/b",
        "trimtab.dev/owner",
        "kubernetes.io/hostname",
        "app.kubernetes.io/name",
        "team",
    ],
)
def test_a_value_that_an_author_chooses_is_replaced_in_every_domain(label: str) -> None:
    item = pod(labels={label: "bob"})
    item["spec"] = {"nodeSelector": {label: "bob"}, "tolerations": [{"key": label, "value": "bob"}]}
    assert '"bob"' not in json.dumps(hashed(item))


def test_a_value_of_a_public_label_stays_in_labels_and_selectors() -> None:
    zone = "topology.kubernetes.io/zone"
    item = pod(labels={zone: "eu-1a"})
    item["spec"] = {"nodeSelector": {zone: "eu-1a"}, "tolerations": [{"key": zone, "value": "eu-1a"}]}
    assert json.dumps(hashed(item)).count("eu-1a") == 3


def test_a_comment_in_the_settings_of_a_pool_is_left_out() -> None:
    [item, _] = hashed(pool("# Bob Miller owns payments\ngoal: nodes # for bob\n"), pod())
    assert yaml.safe_load(item["data"]["pool.yaml"]) == {"goal": "nodes"}
    assert "bob" not in json.dumps(item).lower()


def test_a_word_in_the_settings_of_a_pool_does_not_stay_in_other_objects() -> None:
    items = hashed(pool("# payments\nnodes: {labels: {team: payments}}"), pod(namespace="payments"))
    assert "payments" not in json.dumps(items)


def test_the_settings_of_a_pool_name_the_same_scheduler_and_amounts() -> None:
    settings = "schedulers: {bobs: pack}\nage: {node: 20m}\nunderUsed: {cpu: 40, for: 10m}\nprices: {m5.large: 0.1}"
    item = pod()
    item["spec"] = {"schedulerName": "bobs"}
    hashed_pool, hashed_pod = hashed(pool(settings), item)
    [after] = read_pools([Document(file="f", index=0, value=hashed_pool)]).pools
    [before] = read_pools([Document(file="f", index=0, value=pool(settings))]).pools
    assert list(after.schedulers) == [hashed_pod["spec"]["schedulerName"]] != ["bobs"]
    assert (after.node_age, after.under, after.prices) == (before.node_age, before.under, before.prices)


@pytest.mark.parametrize("settings", ["owner: bob", "goal: [bob", "goal: bob", "goal: cost\n---\nbob: 1", "- bob"])
def test_settings_with_a_mistake_stay_a_mistake_and_tell_nothing(settings: str) -> None:
    [item] = hashed(pool(settings))
    assert read_pools([Document(file="f", index=0, value=item)]).mistakes != ()
    assert "bob" not in json.dumps(item)


def test_a_pool_without_settings_stays_one() -> None:
    [item] = hashed(pool("# only a comment of bob\n"))
    assert [one.name for one in read_pools([Document(file="f", index=0, value=item)]).pools] == ["web"]
