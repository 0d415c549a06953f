"""Laws of patches."""

import json

import jsonpatch
import jsonpointer
import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.property import strategies as some
from trimtab.admission.json_patch import (
    CannotApply,
    apply_patch,
    apply_patch_in_place,
    diff_pods,
    list_patched_fields,
    patch_pod,
    to_plain_json,
)
from trimtab.cluster.api.pod import Pod

KEYS = st.sampled_from(["a", "b", "a/b", "a~b", "~1", "~0", "", "0", "-", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4) | st.lists(VALUES, max_size=4)


def escaped(step: object) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


@st.composite
def paths(draw, document):
    """Mostly into the document, sometimes just beside it."""
    path, here = "", document
    while True:
        if isinstance(here, dict):
            step = draw(st.sampled_from(sorted(here)) | KEYS) if here else draw(KEYS)
            path, here = f"{path}/{escaped(step)}", here.get(step)
        elif isinstance(here, list):
            step = draw(st.sampled_from([*range(len(here)), len(here), len(here) + 1, "-", "01", "x"]))
            path, here = f"{path}/{step}", here[step] if isinstance(step, int) and step < len(here) else None
        else:
            return path + draw(st.sampled_from(["", "", "/x"])) if path else "/x"
        if draw(st.booleans()):
            return path


@st.composite
def cases(draw):
    document = draw(DOCUMENTS)
    operations, current = [], document
    for _ in range(draw(st.integers(1, 4))):
        operation = {"op": draw(st.sampled_from(["add", "replace", "remove"])), "path": draw(paths(current))}
        if operation["op"] != "remove":
            operation["value"] = draw(VALUES)
        operations.append(operation)
        try:
            current = apply_patch(current, [operation])
        except CannotApply:
            break
    return document, operations


def by_library(document, operations):
    """What the library makes of it; None where it refuses."""
    try:
        return [jsonpatch.apply_patch(document, operations)]
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return None


def by_us(document, operations):
    try:
        return [apply_patch(document, operations)]
    except CannotApply:
        return None


@given(cases())
@example(({}, [{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/0", "value": None}]))
def test_our_applier_gives_what_the_library_gives(case):
    document, operations = case
    before = json.dumps(document)
    ours, theirs = by_us(document, operations), by_library(document, operations)
    assert json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)
    assert json.dumps(document) == before


@given(some.pods(), some.pods())
def test_the_difference_applied_gives_the_other(before, after):
    # We never add or take away containers, volumes or owners: what is of the same kind is compared.
    after = msgspec.structs.replace(
        after, spec=msgspec.structs.replace(after.spec, volumes=before.spec.volumes), status=before.status
    )
    operations = diff_pods(before, after)
    assert msgspec.convert(apply_patch(to_plain_json(before), operations), Pod) == after
    assert by_library(to_plain_json(before), operations) == by_us(to_plain_json(before), operations)
    # Only what the operations name is taken apart.
    fields = list_patched_fields(before, operations)
    patched = patch_pod(before, fields, lambda document: apply_patch_in_place(document, operations))
    assert patched == after


@pytest.mark.parametrize("path", ["/status/phase", "/spec/unknown", "/metadata2/name", "/metadata/labels2", ""])
def test_a_patch_of_what_is_not_decoded_is_refused(path):
    with pytest.raises(CannotApply):
        list_patched_fields(Pod(), [{"op": "add", "path": path, "value": "x"}])


@given(some.pods())
def test_a_pod_does_not_differ_from_itself(pod):
    assert diff_pods(pod, msgspec.convert(to_plain_json(pod), Pod)) == ()
