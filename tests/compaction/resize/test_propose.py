"""Which running pods may be resized, and to what?"""

from typing import Any

import pytest

from tests.cluster_of import ALL, cluster, node, pod
from tests.compaction.resize.running import NOW, api_pod, pending, running, shrinks, wants
from trimtab.admission.reasons import RUNNING_HPA
from trimtab.cluster.api.meta import UNSET
from trimtab.cluster.api.pod import Container, ResizePolicy, Resources
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resizable_pod import ResizablePod, ResizablePodReader, ResizeAnswer
from trimtab.cluster.wanted_requests import WantedRequests
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.held import amounts_to_hold, with_held_requests
from trimtab.compaction.resize.plan_resizes import with_resized_requests
from trimtab.compaction.resize.propose import ResizeContext, propose_resizes
from trimtab.compaction.resize.records import OpenResize
from trimtab.compaction.resize.types import MeasuredUse, ResizeAdvice


def advise(
    resizable_pod: ResizablePod, wanted: WantedRequests | Unreadable | None, *more: Any, **context: Any
) -> ResizeAdvice:
    world = cluster(*(more or (node("a"), pod("web-1", "a", "500m", "512Mi"))))
    pools = context.pop("pools", [ALL])
    return propose_resizes([resizable_pod], lambda _: wanted, world, pools, context=ResizeContext(now=NOW, **context))


def code_of(advice: ResizeAdvice) -> str:
    assert not advice.proposals
    return advice.refusals[0].reason.code.name


def test_a_pod_that_requests_more_than_its_policy_gives_shrinks():
    advice = advise(running(), wants(cpu=200, memory=256))
    assert [str(change) for change in advice.proposals[0].changes] == [
        "app cpu 500m → 200m",
        "app memory 512Mi → 256Mi",
    ]
    assert advice.proposals[0].policies == ("teams",)


def test_a_pod_that_has_what_its_policy_gives_is_left_alone_without_a_word():
    assert advise(running(), wants(cpu=500, memory=512)) == ResizeAdvice()
    assert advise(running(), None) == ResizeAdvice()
    assert advise(running(), WantedRequests()) == ResizeAdvice()


def test_small_changes_are_not_worth_a_resize():
    assert advise(running(), wants(cpu=460)) == ResizeAdvice()


def test_memory_shrinks_only_to_what_is_used_with_headroom():
    advice = advise(running(), wants(memory=128, used=200))
    assert str(advice.proposals[0].changes[0]) == "app memory 512Mi → 230Mi"


def test_memory_that_is_measured_now_counts_more_than_a_smaller_peak_of_the_past():
    use = MeasuredUse({("uid-web-1", "app", "memory"): 300 << 20})
    advice = advise(running(), wants(memory=128, used=200), use=use)
    assert str(advice.proposals[0].changes[0]) == "app memory 512Mi → 345Mi"


def test_memory_whose_use_is_unknown_does_not_shrink():
    assert code_of(advise(running(), wants(memory=128, used=0))) == r.USE_UNKNOWN.name


def test_memory_that_is_nearly_all_used_stays():
    assert code_of(advise(running(), wants(memory=128, used=500))) == r.IN_USE.name


def test_the_policys_minimum_is_a_floor():
    assert str(advise(running(), wants(cpu=100, floor=300)).proposals[0].changes[0]) == "app cpu 500m → 300m"


def test_a_pod_grows_where_its_node_has_room_and_never_above_its_limit():
    running_pod = running(cpu="500m", limits={"cpu": "800m"})
    advice = advise(running_pod, wants(cpu=1000))
    assert str(advice.proposals[0].changes[0]) == "app cpu 500m → 800m"


def test_a_pod_does_not_grow_on_a_full_node():
    full = (node("a", cpu="1"), pod("web-1", "a", "500m", "512Mi"), pod("other-1", "a", "400m"))
    assert code_of(advise(running(), wants(cpu=700), *full)) == r.NODE_FULL.name


def test_a_pod_that_shrinks_and_grows_shrinks_first():
    advice = advise(running(), wants(cpu=1000, memory=256))
    assert [change.resource for change in advice.proposals[0].changes] == ["memory"]


def test_a_guaranteed_pod_is_left_alone():
    limits = {"cpu": "500m", "memory": "512Mi"}
    assert code_of(advise(running(limits=limits), wants(cpu=200))) == r.CLASS_STAYS.name


def test_a_pod_that_would_become_guaranteed_is_left_alone():
    limits = {"cpu": "800m", "memory": "512Mi"}
    assert code_of(advise(running(limits=limits), wants(cpu=900))) == r.CLASS_STAYS.name


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"has": None}, r.NODE_CANNOT),
        ({"conditions": (pending("Deferred"),)}, r.ANOTHER),
        ({"resize_policy": (ResizePolicy(resource_name="cpu", restart_policy="RestartContainer"),)}, r.RESTARTS),
        ({"annotations": {"trimtab.dev/opt-out": "true"}}, r.KEPT),
        ({"annotations": {"trimtab.dev/do-not-disrupt": "true"}}, r.KEPT),
        ({"annotations": {"vpaUpdates": "Pod resources updated by x: container 0: cpu request"}}, r.ANOTHER),
        ({"ready": False}, r.YOUNG),
        ({"started": NOW - 10}, r.YOUNG),
        ({"requests": {"cpu": ""}}, r.NO_REQUEST),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, r.CANNOT),
    ],
)
def test_why_a_pod_is_left_alone(more: dict[str, Any], code: Any):
    assert code_of(advise(running(**more), wants(cpu=200))) == code.name


def test_a_pod_with_resources_of_its_own_is_left_alone():
    running_pod = running(spec={"resources": Resources(requests={"cpu": "1"}, limits=UNSET)})
    assert code_of(advise(running_pod, wants(cpu=200))) == r.CANNOT.name


@pytest.mark.parametrize("more", [{"cordoned": True}, {"ready": False}])
def test_pods_of_a_node_that_leaves_stay_as_they_are(more: dict[str, Any]):
    assert code_of(advise(running(), wants(cpu=200), node("a", **more))) == r.LEAVING.name


def test_pods_that_no_pool_covers_are_named():
    advice = advise(running(), wants(cpu=200), pools=[Pool(name="x", labels={"pool": "x"})])
    assert advice.uncovered == ("default/web-1",)
    assert code_of(advice) == r.NO_POOL.name


def test_a_pod_in_two_pools_is_left_alone():
    assert code_of(advise(running(), wants(cpu=200), pools=[ALL, Pool(name="b", everything=True)])) == r.NO_POOL.name


def test_a_cluster_that_cannot_resize_says_so():
    reason = r.NOT_SUPPORTED("the cluster runs Kubernetes 1.32")
    assert code_of(advise(running(), wants(cpu=200), unsupported=reason)) == r.NOT_SUPPORTED.name


def test_a_request_that_an_autoscaler_counts_on_is_refused_with_its_own_reason():
    refusal = RUNNING_HPA("HPA web scales by cpu")
    assert code_of(advise(running(), WantedRequests(refusals={("app", "cpu"): refusal}))) == "resize-hpa-divides"


def test_what_cannot_be_computed_is_a_refusal():
    assert code_of(advise(running(), Unreadable("the next pod", "a policy would deny the pod"))) == r.UNREADABLE.name


def test_a_pod_whose_resize_is_in_progress_is_not_proposed_again():
    assert advise(running(), wants(cpu=200), open_uids=frozenset({"uid-web-1"})) == ResizeAdvice()


def test_a_pod_that_ends_is_not_proposed():
    assert advise(running(deleted="2026-01-01T00:00:00Z"), wants(cpu=200)) == ResizeAdvice()


def test_an_unwritable_request_never_shrinks():
    assert code_of(advise(running(cpu="half"), wants(cpu=200))) == r.NO_REQUEST.name


def test_the_kubelets_answer_is_read_from_the_status():
    def answer(**more: Any) -> ResizeAnswer:
        return ResizablePodReader().read_pod(api_pod(**more)).answer

    assert answer() is ResizeAnswer.DONE
    assert answer(has={"cpu": "0.5", "memory": "512Mi"}) is ResizeAnswer.DONE
    assert answer(has={"cpu": "700m", "memory": "512Mi"}) is ResizeAnswer.UNANSWERED
    assert answer(has=None) is ResizeAnswer.UNSUPPORTED
    assert answer(conditions=(pending("Deferred"),)) is ResizeAnswer.DEFERRED
    assert answer(conditions=(pending("Infeasible"),)) is ResizeAnswer.INFEASIBLE


def test_a_revert_of_a_pod_that_requests_zero_needs_all_of_it() -> None:
    changes = shrinks("web-1").changes
    record = OpenResize(pod="default/web-1", node="a", owner="x", changes=changes, since=NOW)
    assert amounts_to_hold(record, running(cpu="0")) == {"cpu": changes[0].amount_before}


def test_a_pod_does_not_grow_into_what_a_revert_may_need():
    items = (node("a", cpu="1"), pod("web-1", "a", "500m"), pod("other-1", "a", "200m"))
    other = OpenResize(pod="default/other-1", node="a", owner="x", changes=shrinks("other-1").changes, since=NOW)
    shrunk = running("other-1", cpu="200m")
    inventory = with_held_requests(cluster(*items), {"uid-other-1": other}, {"uid-other-1": shrunk})

    def advice(world: Any) -> ResizeAdvice:
        return propose_resizes([running()], lambda _: wants(cpu=700), world, [ALL], context=ResizeContext(now=NOW))

    assert advice(cluster(*items)).proposals
    assert code_of(advice(inventory)) == r.NODE_FULL.name


def test_a_pod_does_not_grow_into_what_the_pods_of_a_drain_need():
    grown = {"requests": {"cpu": "100m"}}
    advice = advise(
        running(cpu="100m", **grown),
        wants(cpu=400),
        node("a"),
        node("b"),
        pod("web-1", "a", "100m"),
        leaving_nodes=frozenset({"b"}),
    )
    assert code_of(advice) == "resize-node-full"
    assert "node b" in advice.refusals[0].reason.sentence


def test_what_an_init_container_requests_anyway_is_not_freed():
    inits = (
        Container(name="proxy", restart_policy="Always", resources=Resources(requests={"cpu": "50m"})),
        Container(name="migrate", resources=Resources(requests={"cpu": "350m"})),
    )
    world = (node("a"), pod("web-1", "a", "550m", "512Mi"))
    (proposal,) = advise(running(spec={"init_containers": inits}), wants(cpu=100), *world).proposals
    assert proposal.given_up("cpu") == 400
    # The containers request 550m together, and 150m after the resize; while `migrate` runs, 400m.
    assert with_resized_requests(cluster(*world), [proposal]).pods[0].requirements.requests["cpu"] == 400
