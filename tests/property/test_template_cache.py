"""The law of templates: a decision that is reused for another revision's pod is the one that it would get by itself."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.build import NAMESPACE, SIGNING, admission_context, owner_key, review
from tests.property import strategies as some
from tests.property.drawn_outcomes import crowded_worlds
from tests.property.drawn_revisions import reading_policies, removing_policies, revisions, runtime_revisions
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.api.meta import change
from trimtab.cluster.replicas import Replicas
from trimtab.policy.pod_context import DEFAULT_SETTINGS

_REVISIONS = st.sampled_from(["5d4f", "6b7c", "aaaa"])


@st.composite
def _with_owners(draw, world):
    """The facts, in which some of the owners are known, with their replicas."""
    owners, replicas = dict(world.owners), dict(world.replicas)
    for name in draw(st.sets(st.sampled_from(["web-5d4f", "web-6b7c", "web-aaaa"]))):
        owners[NAMESPACE, "ReplicaSet", name] = owner_key("Deployment/web")
        if draw(st.booleans()):
            selected = draw(st.sampled_from([None, ("app",), ("tier",)]))
            expected_replicas = Replicas(
                wanted=draw(st.sampled_from([1, 3])), revision=draw(_REVISIONS), selected=selected
            )
            replicas[NAMESPACE, "ReplicaSet", name] = expected_replicas
    if draw(st.booleans()):
        owners[NAMESPACE, "CronJob", "work"] = None
    return replace(world, owners=owners, replicas=replicas)


@st.composite
def turns(draw):
    """Facts that follow each other."""
    with_quotas = draw(st.booleans())
    worlds = draw(st.lists(some.worlds(with_quotas=with_quotas), min_size=1, max_size=2))
    return [draw(_with_owners(world)) for world in worlds]


@st.composite
def crowded_turns(draw):
    """Facts of a cluster in which other nodes appear, and then owners want other numbers of pods."""
    first = draw(crowded_worlds())[0]
    is_counted = draw(some.sometimes(st.just(True), False))
    first = draw(_with_owners(first if is_counted else replace(first, quotas={})))
    machines = draw(crowded_worlds())[0]
    second = replace(first, nodes=machines.nodes, machines=machines.machines)
    third = draw(_with_owners(second))
    return [first, second, replace(second, owners=third.owners, replicas=third.replicas)]


def _assert_each_gets_its_own(pods, by, worlds, terms):
    memory = ResponseCache()
    for world in worlds:
        for number, manifest in enumerate(pods):
            body = review(manifest, uid=f"u-{number}")
            answer, alone = (
                answer_review(body, admission_context(by, world, settings=terms, memory=memory)),
                answer_review(body, admission_context(by, world, settings=terms)),
            )
            assert answer.body == alone.body
            assert _without_token(answer.record.decision) == _without_token(alone.record.decision)


def _without_token(decision):
    """The decision without the pod's token volume: pods that differ in its name alone share one decision."""
    if decision is None:
        return None
    spec = decision.pod.spec
    volumes = tuple(volume for volume in spec.volumes if not volume.name.startswith("kube-api-access-"))
    return change(decision, pod=change(decision.pod, spec=change(spec, volumes=volumes)))


@given(revisions(), reading_policies(), turns(), st.sampled_from([DEFAULT_SETTINGS, SIGNING]))
def test_the_pod_of_another_revision_gets_its_own_answer(pods, by, worlds, terms):
    _assert_each_gets_its_own(pods, by, (*worlds, worlds[0]), terms)


@given(revisions(), reading_policies(), crowded_turns())
def test_it_does_in_a_crowded_cluster_too(pods, by, worlds):
    _assert_each_gets_its_own(pods, by, (*worlds, worlds[0]), DEFAULT_SETTINGS)


@given(runtime_revisions(), removing_policies(), turns())
def test_a_pod_that_shows_another_runtime_gets_its_own_answer(pods, by, worlds):
    _assert_each_gets_its_own(pods, by, worlds, DEFAULT_SETTINGS)
