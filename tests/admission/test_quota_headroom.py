"""Siblings get one answer about a quota, whatever comes between them; and nobody is promised what another was."""

import json

import pytest

from tests.build import admission_context, container, facts, pod, policies, policy, quota, review, usage, workload
from trimtab.admission.apiserver.resourcequota import AnswerKey, QuotaAnswers, QuotaIncrease
from trimtab.admission.handler import answer_review
from trimtab.admission.json_patch import to_plain_json
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.api.meta import OwnerReference, Revised, change, value_or

ALWAYS = policies(policy("{requests: {cpu: {from: usage, when: always}}}"))
SEEN = usage("Deployment/web", cpu=("10m", "200m"))
API = usage("Deployment/api", cpu=("10m", "200m"), shard="01")
TOLD = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
REVISION = "deployment.kubernetes.io/revision"


def sibling(name="web", requests="50m", uid="u", at=0):
    created_pod = pod(container(requests={"cpu": requests} if requests else None), labels={"pod-template-hash": "1"})
    owner = OwnerReference(kind_name="ReplicaSet", name=f"{name}-1", uid=f"{uid}-{name}", controller=True)
    return change(
        created_pod,
        metadata=change(
            created_pod.metadata,
            annotations={"at": str(at)},
            name="",
            generate_name=f"{name}-1-",
            owner_references=(owner,),
        ),
    )


def counted(hard, used):
    return quota({"requests.cpu": hard}, used={"requests.cpu": used})


def owners(name="web", *, replicas=5, there=0, told=None):
    actual_workload = workload(f"ReplicaSet/{name}-1", owner=f"Deployment/{name}")
    if told is not None:
        annotations = dict(zip(TOLD, map(str, told), strict=True))
        actual_workload = change(actual_workload, metadata=change(actual_workload.metadata, annotations=annotations))
    return actual_workload, workload(f"Deployment/{name}", replicas=replicas, updated_replicas=there)


class Door:
    """A process that remembers: what pods ask for as it lets them through."""

    def __init__(self):
        self.memory = ResponseCache(answers=QuotaAnswers())

    def asked(self, came, *world, waits=False, **request):
        return answer_review(
            review(to_plain_json(came), **request),
            admission_context(ALWAYS, facts(SEEN, *world), memory=self.memory),
            waits=waits,
        )

    def __call__(self, came, *world, **request):
        decision = self.asked(came, *world, **request).record.decision
        assert decision is not None
        return decision.pod.spec.containers[0].resources.requests.get("cpu")


def test_siblings_get_one_answer_while_their_owner_says_nothing_of_them_yet():
    """The ReplicaSet's controller makes all pods and tells then; the quota's use has each of them at once."""
    door = Door()
    values = [door(sibling(at=there), *owners(), counted("1600m", f"{200 * there}m")) for there in range(7)]
    assert values == ["200m"] * 7


def test_an_answer_lasts_as_long_as_the_replica_set():
    door = Door()
    assert door(sibling(), *owners(), counted("1", "500m")) == "50m"
    assert door(sibling(), *owners(), counted("1600m", "0")) == "200m"  # the quota itself is another
    assert [door(sibling(), *owners(), counted("1", used)) for used in ("0", "500m")] == ["50m"] * 2
    assert door(sibling(uid="v"), *owners(replicas=1), counted("1", "0")) == "200m"


def test_the_first_siblings_of_an_owner_that_is_not_known_yet_decide_for_those_that_come_with_them():
    door, room = Door(), counted("100", "0")
    assert door(sibling(), room) == "50m"
    assert [door(sibling(at=there), *owners(there=there), room) for there in range(5)] == ["50m"] * 5
    assert door(sibling(at=9), *owners(there=5), room) == "200m"  # all are there: one that is made again


def test_who_can_wait_for_the_watch_hears_for_which_owner_and_nothing_is_kept_meanwhile():
    door, room, untold = Door(), counted("100", "0"), ("team-a", "ReplicaSet", "web-1")
    assert [door.asked(sibling(), room, waits=True).awaits for _ in range(2)] == [untold, untold]
    assert door.asked(sibling(), *owners(), room, waits=True).awaits is None
    assert [door(sibling(at=there), *owners(there=there), room) for there in range(5)] == ["200m"] * 5


def test_who_waited_in_vain_gets_the_answer_of_one_who_cannot_wait():
    door, room = Door(), counted("100", "0")
    assert door.asked(sibling(), room, waits=True).awaits is not None
    assert [door(sibling(), room), door(sibling(at=1), *owners(), room)] == ["50m"] * 2


@pytest.mark.parametrize(
    ("came", "request_", "world"),
    [
        (sibling(), {}, ()),  # no quota counts it
        (sibling(), {"dryRun": True}, (counted("100", "0"),)),
        (sibling(requests="300m"), {}, (counted("100", "0"),)),  # nothing is raised
        (sibling(uid=""), {}, (*owners(), counted("100", "0"))),
    ],
)
def test_nobody_waits_where_nothing_hangs_on_the_owner(came, request_, world):
    assert Door().asked(came, *world, waits=True, **request_).awaits is None


def test_nobody_waits_for_an_owner_of_a_kind_that_no_watch_tells_of():
    came = sibling()
    owner = change(came.metadata.owner_references[0], kind_name="Rollout")
    stranger = change(came, metadata=change(came.metadata, owner_references=(owner,)))
    container_usage = usage("Rollout/web-1", cpu=("10m", "200m"), shard="02")
    assert Door().asked(stranger, container_usage, counted("100", "0"), waits=True).awaits is None


def test_a_deployment_that_still_speaks_of_the_revision_before_has_no_pods_of_this_one():
    """Its five pods were taken for those of the new ReplicaSet: one more had room, and five were promised it."""
    item, deployment = owners(there=5, told=(5, 7))

    def of(owner, revision):
        facts = {REVISION: revision, **value_or(owner.metadata.annotations, {})}
        return change(owner, metadata=change(owner.metadata, annotations=facts))

    room = counted("1600m", "250m")
    assert Door()(sibling(), of(item, "2"), of(deployment, "1"), room) == "50m"
    assert Door()(sibling(), of(item, "2"), of(deployment, "2"), room) == "200m"


def test_where_others_took_the_room_since_nothing_is_raised_that_would_be_refused():
    door = Door()
    assert door(sibling(), *owners(), counted("1600m", "0")) == "200m"
    assert [door(sibling(at=at), *owners(there=5), counted("1600m", "1500m")) for at in (0, 1)] == ["50m"] * 2


def test_two_owners_are_not_promised_the_same_room():
    """Both begin in the same moment. Each of them alone would fit."""
    door, room = Door(), counted("2", "0")
    both = (*owners(), *owners("api"), API)
    assert (door(sibling(), *both, room), door(sibling("api"), *both, room)) == ("200m", "50m")
    there = (*owners(there=5), *owners("api"), API)
    assert door(sibling("api", uid="v"), *there, counted("3", "1")) == "200m"


def test_what_is_only_tried_promises_nothing():
    door, room = Door(), counted("2", "0")
    both = (*owners(), *owners("api"), API)
    assert door(sibling(), *both, room, dryRun=True) == "200m"
    assert door(sibling("api"), *both, room) == "200m"


def test_a_replica_set_tells_how_many_pods_before_its_deployment_is_seen_to():
    """One apply changed template and replicas: what is known of the Deployment is from before."""
    seen_before = owners(replicas=1, told=(5, 7))
    assert Door()(sibling(), *seen_before, counted("1", "0")) == "50m"
    assert Door()(sibling(), *seen_before, counted("1600m", "0")) == "200m"


@pytest.mark.parametrize(("came", "given"), [(None, "200m"), ("50m", "50m")])
def test_a_quota_that_would_refuse_the_pod_as_it_came_keeps_nothing_from_it(came, given):
    """It asks for no cpu, and the quota demands that it does: without us no replica ran, with us as many as fit."""
    assert Door()(sibling(requests=came), *owners(), counted("500m", "0")) == given


def test_what_is_kept_is_bounded():
    answers = QuotaAnswers(max_answers=3)
    memory = ResponseCache(answers=answers)
    for number in range(9):
        body = review(json.loads(json.dumps(to_plain_json(sibling(uid=f"u{number}")))))
        answer_review(body, admission_context(ALWAYS, facts(SEEN, *owners(), counted("1600m", "0")), memory=memory))
    assert len(answers._answers) == 3


def test_the_owners_of_another_namespace_change_no_decision_of_siblings():
    """Otherwise the next sibling might get another answer than those before it."""
    answers, increase = QuotaAnswers(max_answers=10), QuotaIncrease("quota", "requests.cpu", 1, "1m")
    ours = AnswerKey("shop", "uid-web", "1", increase, 100, 5)
    answers.store_answer(ours, answer=True)
    for number in range(1000):
        answers.store_answer(AnswerKey("tenant", f"uid-{number}", "1", increase, 100, 5), answer=False)
    assert (answers.find_answer(ours), len(answers._answers)) == (True, 10)


def test_replicas_that_make_no_sense_are_not_told():
    from trimtab.cluster.replicas import replicas_from_annotations

    assert replicas_from_annotations(Revised(annotations={TOLD[0]: "x", TOLD[1]: "3"})) is None
    assert replicas_from_annotations(Revised()) is None
