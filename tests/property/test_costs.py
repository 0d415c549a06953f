"""Laws of cost: whatever the API server accepts, what we do about it grows no faster than it does."""

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import admission_context
from tests.hostile import world
from tests.hostile.around import AROUND
from tests.hostile.cost import growth, lines
from tests.hostile.documents import DOCUMENTS
from tests.hostile.pods import SHAPES, Json, container
from tests.hostile.pods import pod as pod_of
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.preview import preview_admission
from trimtab.admission.validate_config import validate_review
from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.snapshot import SHAPES_BY_KIND, load_snapshot
from trimtab.policy.pod_context import AdmissionSettings, PodContext
from trimtab.policy.watched_facts import FactsCache, projections_by_kind

STEP = 24
MOST_GROWTH = 1.3
"""A square would come to 1.67. What is counted in steps of its own (a first time, a cache) makes up the rest."""


def read(manifest: Json) -> Pod:
    return msgspec.convert(without_nulls(manifest), Pod)


def costs(made, call):
    pods = [read(made(count)) for count in (0, STEP, 2 * STEP, 3 * STEP)]
    for pod in pods:
        call(pod)  # what is remembered of names and amounts is remembered for all
    return tuple(lines(lambda pod=pod: call(pod)) for pod in pods)


def judged(pod, overhead="server"):
    with suppress(NotAQuantity):
        decide_pod(
            PodContext(
                pod=pod, namespace=world.NAMESPACE, facts=world.facts(), settings=AdmissionSettings(overhead=overhead)
            ),
            world.policies(),
        )


def together(first: Json, second: Json) -> Json:
    """One pod of two: lists and mappings are joined, of everything else the first counts."""
    joined = dict(second)
    for key, value in first.items():
        other = second.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            joined[key] = together(value, other)
        elif isinstance(value, list) and isinstance(other, list):
            joined[key] = [*value, *(entry for entry in other if entry not in value[:1])]
        else:
            joined[key] = value
    return joined


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_review_costs_no_more_than_in_proportion_to_the_pod(shape):
    assert growth(costs(shape.make, judged)) <= MOST_GROWTH


def test_limits_that_a_quota_counts_are_asked_about_once_and_not_for_each_container():
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "limited", "namespace": "tenant"},
        "spec": {"hard": {"limits.cpu": "4000"}, "scopes": ["NotBestEffort"]},
    }
    facts, limits = world.with_more([quota]), {"cpu": "1", "memory": "128Mi"}

    def call(pod):
        decide_pod(PodContext(pod=pod, namespace=world.NAMESPACE, facts=facts), world.policies())

    def made(count):
        return pod_of({"containers": [container(f"c-{at}", resources={"limits": limits}) for at in range(count)]})

    assert growth(costs(made, call)) <= 1.1  # 1.28 where each container asks of which class the whole pod is


@settings(max_examples=12)
@given(st.sampled_from(SHAPES), st.sampled_from(SHAPES), st.sampled_from(["server", "webhook"]))
def test_two_directions_at_once_cost_no_more_than_both(first, second, overhead):
    actual_costs = costs(lambda n: together(first.make(n), second.make(n)), lambda pod: judged(pod, overhead))
    assert growth(actual_costs) <= MOST_GROWTH


@pytest.mark.parametrize("around", AROUND, ids=lambda around: around.__name__)
def test_what_a_tenant_writes_around_a_pod_is_looked_through_once_and_not_for_each_review(around):
    few, many = (world.with_more(around(count)) for count in (1, 400))
    pod = read(SHAPES[0].make(3))

    def call(facts):
        decide_pod(
            PodContext(pod=pod, namespace=world.NAMESPACE, facts=facts, settings=AdmissionSettings()), world.policies()
        )

    for facts in (few, many):
        call(facts)
    assert lines(lambda: call(many)) <= MOST_GROWTH * lines(lambda: call(few))


@pytest.mark.parametrize("around", AROUND, ids=lambda around: around.__name__)
def test_what_a_tenant_writes_around_a_pod_is_gathered_in_proportion(around):
    def gathered(count):
        listed_objects = objects(around(count))
        gathering, projections = FactsCache(), projections_by_kind("trimtab-system")
        return lines(
            lambda: [
                *(
                    gathering.put(kind, (item.metadata.namespace, item.metadata.name), projections[kind](item))
                    for kind, item in listed_objects
                ),
                gathering.build_facts(),
            ]
        )

    gathered(3)
    assert growth(tuple(map(gathered, (0, 100, 200, 300)))) <= MOST_GROWTH


def objects(manifests):
    """(kind, object) of each."""
    reading = load_snapshot(
        [("around.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}).encode())]
    )
    assert not reading.mistakes
    return [
        (one["kind"], item)
        for one in manifests[:1]
        for item in reading.snapshot.objects_of(SHAPES_BY_KIND[one["kind"]])
    ]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_preview_of_a_template_costs_no_more_than_in_proportion(shape):
    def call(pod):
        preview_admission(pod, world.NAMESPACE, admission_context(world.policies(), world.facts()))

    assert growth(costs(shape.make, call)) <= MOST_GROWTH


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_a_policy_or_a_pool_costs_no_more_than_in_proportion_to_what_is_written(document):
    bodies = [document.make(count) for count in (0, 100, 200, 300)]
    for body in bodies:
        validate_review(body)
    assert growth(tuple(lines(lambda body=body: validate_review(body)) for body in bodies)) <= MOST_GROWTH
