"""How many pods with a policy's change were hit, and how many without?"""

from typing import Any

from tests.admission.audit.worlds import DAY, NOTHING, SIZES, admitted, held
from tests.build import container, pod, policies, policy
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.harm import (
    Count,
    Counts,
    FailureHistory,
    HarmTerms,
    Watched,
    compare_failures,
    recent_failures,
)
from trimtab.admission.audit.original_pod import AuditedPod, FailureKind, read_failures
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Condition, ContainerStatus, Pod, PodStatus
from trimtab.cluster.timestamps import format_timestamp
from trimtab.policy.cluster_facts import ClusterFacts

MEMORY = policies(policy("{requests: {memory: {from: policy, otherwise: 64Mi}}}", name="memory"))
THIS = Watched(name="memory", since=float(DAY - 1000))


def killed(pod: Pod, at: int = DAY) -> Pod:
    ended: dict[str, Any] = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": format_timestamp(at)}}
    status = ContainerStatus(name="app", restart_count=1, state={"running": {}}, last_state=ended)
    return change(pod, status=change(pod.status, container_statuses=(status,)))


def waiting(pod: Pod, since: int = DAY - 400) -> Pod:
    unplaced = Condition(
        type="PodScheduled", status="False", reason="Unschedulable", last_transition_time=format_timestamp(since)
    )
    return change(pod, status=PodStatus(phase="Pending", conditions=(unplaced,)))


def counted(pods: list[AuditedPod], ledger: FailureHistory | None = None, now: int = DAY, by: Watched = THIS) -> Counts:
    world = AuditInputs(policies=MEMORY, facts=ClusterFacts())
    survey = Auditor()
    audit_state = survey.audit_pods(pods, world)
    return compare_failures(pods, audit_state.results, [by], ledger or FailureHistory(), now)[by.name]


def test_pods_with_the_change_are_after_those_it_means_without_it_before() -> None:
    pods = held(killed(admitted(pod(), MEMORY)), admitted(pod(), number=2), admitted(pod(), number=3))
    count = counted(pods)[FailureKind.OOM_KILLED]
    assert (count.after, count.before, count.elsewhere) == (Count(1, 1), Count(2, 0), Count(0, 0))


def test_pods_it_does_not_mean_are_elsewhere() -> None:
    opted_out = admitted(pod(labels={"trimtab.dev/opt-out": "true"}))
    assert counted(held(killed(opted_out)))[FailureKind.OOM_KILLED].elsewhere == Count(1, 1)


def test_a_label_kills_nobody() -> None:
    labels = policies(policy("{labels: {add: {team: a}}}", name="memory"))
    count = counted(held(killed(admitted(pod(), labels))))[FailureKind.OOM_KILLED]
    assert count.after == Count()


def test_a_cpu_request_may_leave_a_pod_without_a_node_but_kills_it_not() -> None:
    sizes = Watched(name="sizes", since=None)
    pods = held(killed(waiting(admitted(pod(), policies(SIZES)))))
    actual_sizes = compare_failures(pods, {}, [sizes], FailureHistory(), DAY)["sizes"]
    assert actual_sizes[FailureKind.OOM_KILLED].after == Count()
    assert actual_sizes[FailureKind.UNSCHEDULABLE].after == Count(1, 1)


def test_what_an_earlier_version_of_the_policy_changed_is_from_before() -> None:
    pods = held(killed(admitted(pod(), MEMORY, created=DAY - 2000)))
    assert counted(pods)[FailureKind.OOM_KILLED].before == Count(1, 1)


def test_only_the_last_hour_counts() -> None:
    assert counted(held(killed(admitted(pod(), MEMORY), DAY - 4000)))[FailureKind.OOM_KILLED].after == Count(1, 0)


def test_a_pod_may_wait_for_an_autoscaler() -> None:
    [short], [long] = (held(waiting(admitted(pod()), DAY - since)) for since in (100, 400))
    assert recent_failures(short, DAY, HarmTerms()) == frozenset()
    assert recent_failures(long, DAY, HarmTerms()) == {FailureKind.UNSCHEDULABLE}


def test_whether_nodes_have_room_only_young_pods_tell() -> None:
    elsewhere = {"trimtab.dev/opt-out": "true"}
    old, young = (waiting(admitted(pod(labels=elsewhere), created=DAY - age, number=age % 7)) for age in (9000, 900))
    assert counted(held(old, young))[FailureKind.UNSCHEDULABLE].elsewhere == Count(1, 1)


def test_pods_that_a_rollout_replaced_are_still_compared_with() -> None:
    [old] = held(admitted(pod()))
    survey = Auditor()
    survey.audit_pods([old], AuditInputs(policies=MEMORY, facts=ClusterFacts()))
    ledger = FailureHistory()
    ledger.record_deleted(old, survey.result_of(old.alike), [THIS], DAY)
    assert counted(held(admitted(pod(), MEMORY)), ledger, DAY + 7200)[FailureKind.OOM_KILLED].before == Count(1, 0)
    ledger.drop_old_counts(DAY + 2 * 86400)
    assert counted([], ledger, DAY + 2 * 86400)[FailureKind.OOM_KILLED].before == Count()


def test_a_changed_pod_that_was_hit_and_is_gone_counts_for_an_hour() -> None:
    [hit] = held(killed(admitted(pod(), MEMORY)))
    ledger = FailureHistory()
    ledger.record_deleted(hit, None, [THIS], DAY)
    assert counted([], ledger, DAY + 60)[FailureKind.OOM_KILLED].after == Count(1, 1)
    assert counted([], ledger, DAY + 3 * 3600)[FailureKind.OOM_KILLED].after == Count()


def test_what_is_gone_of_an_earlier_version_becomes_before() -> None:
    [hit] = held(admitted(pod(), MEMORY))
    ledger = FailureHistory()
    ledger.record_deleted(hit, None, [THIS], DAY)
    now = Watched(name="memory", since=float(DAY + 1))
    assert counted([], ledger, DAY + 60, now)[FailureKind.OOM_KILLED].before == Count(1, 0)


def test_an_earlier_life_is_remembered_while_nobody_knows_of_more() -> None:
    ledger = FailureHistory()
    ledger.restore_counts(THIS, {FailureKind.OOM_KILLED: Count(2, 1)})
    assert counted([], ledger)[FailureKind.OOM_KILLED].before == Count(2, 1)
    three = held(*(admitted(pod(), number=n) for n in range(3)))
    assert counted(three, ledger)[FailureKind.OOM_KILLED].before == Count(3, 0)


def test_a_node_in_need_evicts_and_says_so() -> None:
    when = Condition(type="DisruptionTarget", status="True", last_transition_time=format_timestamp(DAY))
    evicted = PodStatus(phase="Failed", reason="Evicted", conditions=(when,))
    assert [(failure.trouble, failure.at) for failure in read_failures(evicted, 0.0)] == [(FailureKind.EVICTED, DAY)]


def test_an_evicted_pod_counts_though_it_has_finished() -> None:
    stored = admitted(pod(container(requests={"cpu": "1"})), MEMORY, created=DAY - 900)
    when = Condition(type="DisruptionTarget", status="True", last_transition_time=format_timestamp(DAY))
    evicted = change(stored, status=PodStatus(phase="Failed", reason="Evicted", conditions=(when,)))
    assert counted(held(evicted))[FailureKind.EVICTED].after == Count(1, 1)


def test_an_eviction_by_the_api_is_no_trouble() -> None:
    drained = PodStatus(phase="Running", conditions=(Condition(type="DisruptionTarget", status="True"),))
    assert read_failures(drained, 0.0) == ()


def test_a_healthy_pod_has_no_incidents() -> None:
    [running_pod] = held(admitted(pod(), NOTHING))
    assert running_pod.incidents == ()


def test_the_namespace_with_the_most_failures_is_left_out_of_the_others() -> None:
    theirs = [killed(admitted(pod(), MEMORY, number=n, namespace="tenant")) for n in range(4)]
    ours = [admitted(pod(), MEMORY, number=5), killed(admitted(pod(), MEMORY, number=6))]
    counts = counted(held(*theirs, *ours))[FailureKind.OOM_KILLED]
    assert (counts.after, counts.after_in_others) == (Count(6, 5), Count(2, 1))


def test_of_a_policy_in_one_namespace_there_are_no_others() -> None:
    counts = counted(held(killed(admitted(pod(), MEMORY)), admitted(pod(), number=2)))
    assert counts[FailureKind.OOM_KILLED].after_in_others is None


def test_pods_without_the_change_are_another_namespace_too() -> None:
    """The policy would be taken from them."""
    other = admitted(pod(), number=2, namespace="bank")
    counts = counted(held(killed(admitted(pod(), MEMORY)), other))[FailureKind.OOM_KILLED]
    assert (counts.after, counts.after_in_others) == (Count(1, 1), Count())


def test_deleted_pods_count_in_their_namespace() -> None:
    ledger = FailureHistory()
    for gone in held(*(killed(admitted(pod(), MEMORY, number=n, namespace="tenant")) for n in range(3))):
        ledger.record_deleted(gone, None, [THIS], DAY)
    counts = counted(held(admitted(pod(), MEMORY)), ledger, DAY + 60)[FailureKind.OOM_KILLED]
    assert (counts.after, counts.after_in_others) == (Count(4, 3), Count(1, 0))
