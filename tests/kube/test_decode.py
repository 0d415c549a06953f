"""Are the API server's bytes read as what they say?"""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.api.pod import MountingPod, Pod
from trimtab.kube import decode

MARKS = (',"managedFields":[', ']},"spec":{', "]},", '"', "\\", ",", "]", "}", "managedFields", "spec", ":", "[", "{")
TEXT = st.lists(st.sampled_from(MARKS)).map("".join)
TEXTS = st.dictionaries(TEXT, TEXT, max_size=3)


def line(metadata: Any, spec: Any) -> bytes:
    """As the API server writes it: managedFields end the metadata, and there are no spaces."""
    pod = {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
    return json.dumps({"type": "MODIFIED", "object": pod}, separators=(",", ":")).encode()


@given(TEXTS, TEXTS, TEXTS)
def test_managed_fields_are_left_out_and_nothing_else_is(
    annotations: dict[str, str], managed: dict[str, str], selector: dict[str, str]
) -> None:
    fields = {f"f:{name}": {} for name in managed}
    metadata, spec = {"name": "web", "annotations": annotations}, {"nodeName": "n", "nodeSelector": selector}
    without = line(metadata, spec)
    managers = [{"manager": text, "fieldsV1": fields} for text in managed.values()]
    whole = line({**metadata, "managedFields": managers}, spec)
    assert decode.without_managed_fields(whole) in (without, whole)
    assert decode.decode_change("Pod", whole) == decode.decode_change("Pod", without)
    if not any("]" in text for text in (*managed, *managed.values())):
        assert decode.without_managed_fields(whole) == without
    assert decode.without_managed_fields(without) == without


@pytest.mark.parametrize("order", list(permutations(("metadata", "spec", "status"))))
def test_an_object_written_in_another_order_is_read_as_well(order: tuple[str, ...]) -> None:
    parts = {
        "metadata": {"name": "web", "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:spec": {}}}]},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    values = {"type": "ADDED", "object": {name: parts[name] for name in order}}
    result = decode.decode_change("Pod", json.dumps(values, separators=(",", ":")).encode())
    assert result == (False, msgspec.convert(parts, MountingPod))


def test_environment_variables_are_skipped_where_nothing_reads_them() -> None:
    plain = {"name": "HOME", "value": "/"}
    reading = {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}}
    container = {"name": "app", "image": "app:1", "env": [plain, reading]}
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [container], "initContainers": [container]}}
    event = json.dumps({"type": "ADDED", "object": pod}).encode()
    for body in (pod, {**pod, "status": {"conditions": None}}):  # a null is decoded in another way
        item = decode.decode_item("Pod", msgspec.Raw(json.dumps(body).encode()), skip_env=True)
        assert decode.decode_change("Pod", event, skip_env=True) == (False, item)
        assert isinstance(item, Pod)
        for own in (*item.spec.containers, *item.spec.init_containers):
            assert (own.image, own.env) == ("app:1", ())


def test_a_pod_whose_environment_variables_were_skipped_is_written_like_any_other() -> None:
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "env": [{"name": "A", "value": "b"}]}]}}
    item = decode.decode_item("Pod", msgspec.Raw(json.dumps(pod).encode()), skip_env=True)
    assert msgspec.json.decode(msgspec.json.encode(item)) == {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app"}]},
    }
