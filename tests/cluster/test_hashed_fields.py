"""Of every text in every shape, a capture with hashed names shows only what a named field may show."""

import json
import types
import typing
from typing import Any

import msgspec
import pytest

from trimtab.cluster.anonymize import PLAIN_FIELDS, READABLE_FIELDS, hash_names
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import SHAPES_BY_KIND, Snapshot
from trimtab.kube.capture import encode_capture, plain_objects

MARKER = "Zz-marker"
DIGITS = "90210"
"""A name of digits alone, such as the number of a customer."""


def filled(shape: Any, field: str = "") -> Any:
    """A value of this type in which every text is the marker and the name of its field."""
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        return {one.encode_name: filled(one.type, one.encode_name) for one in msgspec.structs.fields(shape)}
    if origin in (typing.Union, types.UnionType):
        options = [one for one in arguments if one not in (type(None), msgspec.UnsetType)]
        return filled(str if str in options and field != "maxUnavailable" else options[0], field)
    if origin in (tuple, list):
        return [filled(arguments[0], field)]
    if origin is dict:
        return {"cpu": "1"} if str not in (arguments[1],) else {"example.com/key": filled(arguments[1], field)}
    if origin is typing.Annotated:
        return filled(arguments[0], field)
    if shape is Any:
        return {"reason": MARKER + "-any", "inner": [{"text": MARKER + "-any"}]}
    return {bool: True, int: 1, float: 1.0}.get(shape, f"{MARKER}-{field}")


def readable_places(value: Any, field: str = "") -> set[str]:
    """The fields in which the marker can be read."""
    if isinstance(value, dict):
        return {place for name, inner in value.items() for place in readable_places(inner, name)}
    if isinstance(value, list):
        return {place for inner in value for place in readable_places(inner, field)}
    return {field} if isinstance(value, str) and MARKER in value else set()


@pytest.mark.parametrize("kind", sorted(set(SHAPES_BY_KIND) - {"ConfigMap"}))
def test_no_text_of_an_object_is_readable_but_in_named_fields(kind: str) -> None:
    manifest = {**filled(SHAPES_BY_KIND[kind]), "apiVersion": "v1", "kind": kind}
    [item] = hash_names([manifest], b"salt")
    own_name = {"name"} if kind in ("CSIDriver", "RuntimeClass", "PriorityClass", "StorageClass") else set()
    assert readable_places(item) <= READABLE_FIELDS | own_name | public_names(kind)


@pytest.mark.parametrize("kind", sorted(set(SHAPES_BY_KIND) - {"ConfigMap"}))
def test_no_name_of_digits_is_readable_but_in_fields_of_numbers(kind: str) -> None:
    manifest = {**with_digits_alone(filled(SHAPES_BY_KIND[kind])), "apiVersion": "v1", "kind": kind}
    manifest["metadata"]["name"] = "name-of-its-own"
    [item] = hash_names([manifest], b"salt")
    # `filled` puts a text named `reason` into the capacity of a device, which is a map of quantities.
    amounts = {"reason"} if kind == "ResourceClaim" else set()
    assert places_of_digits(item) <= READABLE_FIELDS | PLAIN_FIELDS | amounts | public_names(kind)


def with_digits_alone(value: Any) -> Any:
    """The value in which every marked text is only digits."""
    if isinstance(value, dict):
        return {name: with_digits_alone(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_digits_alone(inner) for inner in value]
    return DIGITS if isinstance(value, str) and MARKER in value else value


def places_of_digits(value: Any, field: str = "") -> set[str]:
    """The fields whose text is the digits."""
    if isinstance(value, dict):
        return {place for name, inner in value.items() for place in places_of_digits(inner, name)}
    if isinstance(value, list):
        return {place for inner in value for place in places_of_digits(inner, field)}
    return {field} if value == DIGITS else set()


def public_names(kind: str) -> set[str]:
    """The name of a pod's system, those of a node's CSI drivers, and those of classes in a quota's scope."""
    classes = {"values"} if kind == "ResourceQuota" else set()
    return classes | ({"name"} if kind in ("CSINode", "Pod", "PodTemplate", "DaemonSet") else set())


def test_a_text_that_quotes_an_object_is_not_readable() -> None:
    problem = Unreadable("Pod shop/web", f"$.spec.x: Expected `int`, got {MARKER}")
    assert MARKER not in encode_capture(Snapshot({}), (problem,), salt=b"salt").decode()


def test_a_note_of_the_compactor_tells_no_names() -> None:
    move = {"pod": f"{MARKER}/web-1", "uid": MARKER, "kind": "ReplicaSet", "owner": MARKER}
    note = {"note": {"drain": "d", "pool": MARKER, "since": 1, "moves": [move], "surges": {f"{MARKER}/web": 1}}}
    meta = {"name": "n1", "annotations": {"trimtab.dev/cordoned-for": json.dumps(note), "trimtab.dev/by": MARKER}}
    [item] = hash_names([{"kind": "Node", "metadata": meta}], b"salt")
    assert MARKER not in json.dumps(item)


def test_what_decides_a_plan_stays_as_it_is() -> None:
    shape = SHAPES_BY_KIND["Pod"]
    manifest = {
        "metadata": {"name": "web", "labels": {"app": "shop"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {
            "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1.5Gi"}}}],
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
            "schedulerName": "default-scheduler",
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    [plain] = plain_objects(Snapshot({"Pod": (msgspec.convert(manifest, shape),)}))
    [item] = hash_names([plain], b"salt")
    assert item["spec"]["containers"][0]["resources"] == manifest["spec"]["containers"][0]["resources"]  # type: ignore[index]
    assert item["spec"]["tolerations"] == plain["spec"]["tolerations"] or item["spec"]["tolerations"] == list(
        plain["spec"]["tolerations"]
    )
    assert (item["status"]["phase"], item["spec"]["schedulerName"]) == ("Running", "default-scheduler")
    assert item["metadata"]["creationTimestamp"] == plain["metadata"]["creationTimestamp"]
