"""Laws of an answer: bytes of whatever kind in, an answer out."""

import base64
import json
from typing import Any

import jsonpatch
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.build import admission_context, facts, policies, policy, review
from tests.property import strategies as some
from trimtab.admission.handler import AdmissionOutcome, answer_review
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.runtime_signs import SIGNS_FIELD

EVERYTHING = policies(
    policy(
        "{requests: {cpu: {otherwise: 10m, when: always}}, limits: {cpu: remove}, labels: {add: {cost: low}},"
        " placement: {require: [{label: pool, in: [batch]}]}, topologySpread: {constraints: [{topologyKey: zone}]}}"
    )
)


def list_stored_fields(pod: Pod) -> dict[str, Any]:
    """Returns the pod without what the webhook derives only where a decision needs it: the variables that refer to
    resources, and the signs of runtimes."""
    fields = msgspec.to_builtins(pod)
    for container in (*fields["spec"].get("containers", ()), *fields["spec"].get("initContainers", ())):
        for name in [name for name in container if name in ("env", "resizePolicy", SIGNS_FIELD) or not name.strip("-")]:
            del container[name]
    return fields


@given(some.manifests(), some.policies(), some.worlds())
def test_the_patch_applied_by_the_library_to_what_was_sent_gives_the_decided_pod(manifest, by, world):
    answer = answer_review(review(manifest), admission_context(by, world))
    response = json.loads(answer.body)["response"]
    assert response["uid"] == "u-1"
    assert ("patch" in response) is ("patchType" in response) is bool(answer.record.patch_operations)
    if answer.record.patch_operations:
        applied = jsonpatch.apply_patch(manifest, json.loads(base64.b64decode(response["patch"])))
        assert list_stored_fields(some.read(applied)) == list_stored_fields(answer.record.decision.pod)
        assert applied["spec"]["serviceAccountName"] == "default"
        assert [c["env"] for c in applied["spec"]["containers"]] == [c["env"] for c in manifest["spec"]["containers"]]


@given(some.manifests(), some.policies(), some.worlds())
def test_nothing_of_ours_ever_fails(manifest, by, world):
    assert answer_review(review(manifest), admission_context(by, world)).record.outcome is not AdmissionOutcome.FAILED


@given(st.binary(max_size=200))
def test_garbage_is_answered(body):
    assert answer_review(body, admission_context(EVERYTHING, facts())).status in (200, 400)


@given(some.manifests(), st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3)), min_size=1, max_size=4))
def test_a_damaged_review_is_answered_and_with_its_uid_where_there_is_one(manifest, damage):
    body = review(manifest)
    for place, bytes_ in damage:
        place %= len(body)
        body = body[:place] + bytes_ + body[place + 1 :]
    answer = answer_review(body, admission_context(EVERYTHING, facts()))
    document = json.loads(answer.body)
    assert (answer.status, "error" in document) == (400, True) or document["response"][
        "uid"
    ] == answer.request.uid != ""


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value, path=()):
    """Every place inside a JSON value."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def planted(value, path, junk):
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = planted(value[path[0]], path[1:], junk)
    return copy


@given(some.manifests(), st.data(), JUNK)
def test_a_pod_with_nonsense_anywhere_is_allowed(manifest, data, junk):
    place = data.draw(st.sampled_from(list(places(manifest))))
    answer = answer_review(review(planted(manifest, place, junk)), admission_context(EVERYTHING, facts()))
    response = json.loads(answer.body)["response"]
    assert (response["uid"], response["allowed"]) == ("u-1", True)
    # What the server itself cannot read (a quantity that is none) may cost us the decision, never the pod.
    assert answer.record.outcome is not AdmissionOutcome.FAILED or "patch" not in response
