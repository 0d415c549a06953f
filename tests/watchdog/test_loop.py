"""One look: what is told, what is written, and what never is."""

import pytest

from tests.admission.audit.test_counts import killed
from tests.admission.audit.worlds import DAY, SIZES, admitted
from tests.build import NAMESPACE, container, facts, node, pod, policies, policy, runtime_class
from tests.reasons import has_facts
from tests.watchdog.worlds import CONFLICT, Bench, bench, deployment, policy_object
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod, PodStatus
from trimtab.policy.status import HARM_BRAKE
from trimtab.watchdog.harm_brake import DryRunBrakeActuator

CPU = {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}}
MEMORY = {"requests": {"memory": {"from": "policy", "otherwise": "16Mi"}}}
BY_MEMORY = policies(policy("{requests: {memory: {from: policy, otherwise: 16Mi}}}", name="memory"))


def test_a_missed_pod_is_told_by_metric_event_and_status() -> None:
    watchdog_bench = bench()
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    watchdog_bench.pods += [admitted(pod()), admitted(pod(), policies(SIZES), number=2)]
    watchdog_bench.look()
    assert watchdog_bench.metric("trimtab_unpatched_pods", policy="sizes", reason="missed-by-webhook") == 1
    [event] = watchdog_bench.events
    assert (event["reason"], event["type"], event["regarding"]["kind"]) == ("MissedByWebhook", "Warning", "ReplicaSet")
    assert "containers[app].requests.cpu: none → 50m" in event["note"]
    [status] = watchdog_bench.statuses
    assert (status["matched"], status["changed"], status["unpatched"]) == (2, 1, 1)


def test_the_event_is_on_the_topmost_owner_that_is_known() -> None:
    watchdog_bench = bench()
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    watchdog_bench.tell("Deployment", deployment("web"))
    labelled = pod(labels={"pod-template-hash": "5d8f"})
    watchdog_bench.pods.append(admitted(labelled))
    watchdog_bench.look()
    [event] = watchdog_bench.events
    regarding = event["regarding"]
    assert (regarding["kind"], regarding["name"], regarding["apiVersion"]) == ("Deployment", "web", "apps/v1")


def test_the_same_is_not_told_again_with_every_look() -> None:
    watchdog_bench = bench()
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    watchdog_bench.pods.append(admitted(pod()))
    for _ in range(5):
        watchdog_bench.look()
    assert len(watchdog_bench.events) == 1
    watchdog_bench.look(after=3601)
    assert len(watchdog_bench.paper.to("/events")) == 2


def test_no_more_events_in_one_look_than_there_may_be() -> None:
    watchdog_bench = bench(events=2)
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    watchdog_bench.pods += [admitted(pod(), number=n, owner=f"ReplicaSet/web-{n}") for n in range(5)]
    for message in (2, 4, 5, 5):
        watchdog_bench.look()
        assert len(watchdog_bench.events) == message


def test_a_status_is_written_when_it_differs_and_not_too_often() -> None:
    watchdog_bench = bench()
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    watchdog_bench.look()
    watchdog_bench.look()
    assert len(watchdog_bench.statuses) == 1
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU, status=watchdog_bench.statuses[0]))
    watchdog_bench.look(after=100)
    assert len(watchdog_bench.statuses) == 1, "what stands there is what it would say"
    watchdog_bench.pods.append(admitted(pod()))
    watchdog_bench.look(after=100)
    assert watchdog_bench.statuses[1]["unpatched"] == 1


def test_a_broken_policy_says_so_in_its_status_and_stays_as_it_was() -> None:
    watchdog_bench = bench()
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    broken = policy_object("sizes", {"requests": {"cpu": "much"}})
    watchdog_bench.tell("PodPolicy", change(broken, metadata=change(broken.metadata, generation=2)))
    watchdog_bench.pods.append(admitted(pod()))
    watchdog_bench.look()
    [status] = watchdog_bench.statuses
    loaded = next(c for c in status["conditions"] if c["type"] == "Loaded")
    assert (loaded["status"], status["observedGeneration"]) == ("False", 2)
    assert "spec.actions.requests.cpu" in status["lastError"]
    assert status["unpatched"] == 1


def test_stale_overhead_is_told() -> None:
    watchdog_bench = bench()
    boxed = pod(container(requests={"cpu": "1"}), runtime_class_name="kata")
    watchdog_bench.pods.append(admitted(boxed, world=facts(runtime_class("kata", overhead={"cpu": "250m"}))))
    dated = _dated(overhead={"cpu": "500m"})
    watchdog_bench.tell("RuntimeClass", dated)
    watchdog_bench.look()
    assert watchdog_bench.metric("trimtab_wrong_overhead_pods", reason="overhead-stale") == 1
    assert [event["reason"] for event in watchdog_bench.events] == ["OverheadStale"]


def test_the_overhead_of_a_class_is_told_as_its_pods_carry_it() -> None:
    watchdog_bench, boxed = bench(), pod(runtime_class_name="kata")
    watchdog_bench.pods.append(
        admitted(boxed, world=facts(runtime_class("kata", overhead={"cpu": "250m", "memory": "1Mi"})))
    )
    watchdog_bench.look()
    names = ("runtime_class_pods", "overhead_cpu_cores", "overhead_memory_bytes")
    assert [watchdog_bench.metric(f"trimtab_{name}", runtime_class="kata") for name in names] == [1, 0.25, 1 << 20]


def _dated(**fields: object) -> object:
    from trimtab.cluster.api.core import DatedRuntimeClass
    from trimtab.cluster.api.meta import Dated

    plain = runtime_class("kata", **fields)  # type: ignore[arg-type]
    meta = Dated(name="kata", creation_timestamp="2026-01-01T00:00:00Z")
    return DatedRuntimeClass(metadata=meta, overhead=plain.overhead)


def test_while_pods_wait_for_their_turn_nothing_is_written() -> None:
    watchdog_bench = bench(most=1)
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU))
    watchdog_bench.pods += [admitted(pod(container(limits={"memory": f"{n + 1}Mi"})), number=n) for n in range(3)]
    assert watchdog_bench.look() < 5
    assert watchdog_bench.paper.writes == []
    watchdog_bench.look()
    assert watchdog_bench.look() == 30
    assert len(watchdog_bench.statuses) == 1


def test_findings_of_a_namespace_that_come_without_end_leave_others_their_event() -> None:
    found = bench(events=2)
    found.tell("PodPolicy", policy_object("sizes", CPU))
    ours = admitted(pod(), owner="ReplicaSet/api", namespace="shop")
    for look in range(4):
        theirs = [admitted(pod(), number=n, owner=f"ReplicaSet/web-{look}-{n}") for n in range(5)]
        found.pods[:] = [*theirs, *([ours] if look >= 1 else [])]
        found.look()
    told = [event["regarding"].get("namespace") for event in found.events]
    assert "shop" in told[2:4], "in the first look in which there is something to tell of it"


@pytest.mark.parametrize("new_per_round", [0, 300])
def test_new_templates_of_a_namespace_without_end_delay_no_status(new_per_round: int) -> None:
    """A tenant creates 300 pods a second, each from a template of its own: more than an API server admits."""
    found = bench()
    found.tell("PodPolicy", policy_object("sizes", CPU))
    found.pods.append(admitted(pod(), namespace="shop"))
    base = admitted(pod())
    waits = []
    for look in range(3):
        found.pods[1:] = [
            change(base, metadata=change(base.metadata, labels={"n": f"{look}-{n}"})) for n in range(new_per_round)
        ]
        waits.append(found.look())
    assert waits == [30, 30, 30]
    assert len(found.statuses) >= 1


# ── the brake ────────────────────────────────────────────────────────────────────────────────────────


def harmed(bench: Bench, hit: int, *, memory: object = None) -> list[Pod]:
    """Six pods from before the policy, and eight it changed, so many of which were killed."""
    bench.tell("PodPolicy", memory or policy_object("memory", MEMORY))
    before = [admitted(pod(), number=n, created=DAY - 5000) for n in range(6)]
    after = [admitted(pod(), BY_MEMORY, number=n) for n in range(8)]
    bench.pods[:] = [*before, *(killed(one) if n < hit else one for n, one in enumerate(after))]
    return bench.pods


def patches(bench: Bench) -> list[object]:
    """What the brake wrote: alone among the writes of a status, it names the version that was judged."""
    return [
        body
        for _, path, body in bench.paper.writes
        if path.endswith("/podpolicies/memory/status") and "resourceVersion" in body["metadata"]
    ]


def test_a_harmful_policy_is_set_to_warn_and_says_why() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.look()
    fence = {"resourceVersion": "7", "uid": "uid-memory"}
    assert patches(watchdog_bench) == [{"metadata": fence, "status": {"brakedGeneration": 1}}]
    assert watchdog_bench.statuses[-1]["brakedGeneration"] == 1
    [event] = [event for event in watchdog_bench.events if event["reason"] == "HarmBrake"]
    assert has_facts(event["note"], "3 of 8 pods", "policy memory", "0 of 6 pods")
    brake = next(c for c in watchdog_bench.statuses[-1]["conditions"] if c["type"] == HARM_BRAKE)
    assert (brake["status"], brake["reason"]) == ("True", "OomKilled")
    assert (
        watchdog_bench.metric("trimtab_harm_brakes_total", policy="memory", trouble="oom-killed", done="set-to-warn")
        == 1
    )


def test_a_tenants_failing_pods_take_the_policy_from_no_other_namespace() -> None:
    found = bench()
    harmed(found, 8)
    found.pods.append(admitted(pod(), BY_MEMORY, number=9, namespace="shop"))
    found.look()
    assert patches(found) == []
    assert [event["reason"] for event in found.events if "Harm" in event["reason"]] == ["HarmInOneNamespace"]
    assert brake_of(found)[:2] == ("False", "ReportedOnly")
    assert found.metric("trimtab_harm_brakes_total", policy="memory", trouble="oom-killed", done="withheld") == 1


def test_a_policy_that_is_harmful_in_a_second_namespace_too_is_set_to_warn_then() -> None:
    found = bench()
    harmed(found, 8)
    found.pods.append(admitted(pod(), BY_MEMORY, number=9, namespace="shop"))
    found.look()
    found.pods[-1] = killed(found.pods[-1])
    found.look()
    assert len(patches(found)) == 1


def test_a_tenants_failing_pods_switch_off_no_required_action() -> None:
    found = bench()
    actions = {"requests": {**MEMORY["requests"], "required": True}}
    harmed(found, 8, memory=policy_object("memory", actions, match={"namespaces": {"include": [NAMESPACE]}}))
    found.look()
    assert patches(found) == []
    assert [event["reason"] for event in found.events if "Harm" in event["reason"]] == ["HarmWithRequiredAction"]


def test_not_before_the_minimum() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 2)
    watchdog_bench.look()
    assert patches(watchdog_bench) == []


def test_one_patch_while_the_watch_has_not_told_of_it() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.look()
    watchdog_bench.look(after=100)
    assert len(patches(watchdog_bench)) == 1
    assert watchdog_bench.statuses[-1]["brakedGeneration"] == 1


def test_a_policy_that_somebody_edits_meanwhile_is_not_overwritten() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.paper.refuse = CONFLICT
    watchdog_bench.look()
    assert patches(watchdog_bench) == []
    assert watchdog_bench.metric("trimtab_harm_brakes_total", policy="memory", trouble="oom-killed", done="failed") == 1
    watchdog_bench.tell("PodPolicy", policy_object("memory", MEMORY, version="8"))
    watchdog_bench.look()
    assert len(patches(watchdog_bench)) == 1


def test_a_brake_that_did_not_take_is_tried_again_with_the_next_look() -> None:
    """The harm may be done already: no number changes any more, and nothing else would ask for it again."""
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.paper.refuse = CONFLICT
    watchdog_bench.look()
    watchdog_bench.look(after=100)
    assert len(patches(watchdog_bench)) == 1


def brake_of(bench: Bench) -> tuple[str, str, int]:
    """Status and reason of the condition in the last status, and the generation that is held."""
    [brake] = [c for c in bench.statuses[-1]["conditions"] if c["type"] == HARM_BRAKE]
    return brake["status"], brake["reason"], bench.statuses[-1]["brakedGeneration"]


def test_the_brake_holds_this_version_of_the_policy_and_ends_when_its_author_edits_it() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.look()
    braked = watchdog_bench.statuses[-1]
    watchdog_bench.tell("PodPolicy", policy_object("memory", MEMORY, version="8", status=braked))
    watchdog_bench.look(after=100)
    assert brake_of(watchdog_bench) == ("True", "OomKilled", 1)
    edited = policy_object("memory", MEMORY, version="9", generation=2, since=DAY + 200, status=braked)
    watchdog_bench.tell("PodPolicy", edited)
    watchdog_bench.look(after=100)
    assert brake_of(watchdog_bench) == ("False", "AppliedAgain", 0)
    assert len(patches(watchdog_bench)) == 1


def test_a_policy_that_an_earlier_version_set_to_warn_stays_there_until_its_mode_is_apply() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.look()
    earlier = {**watchdog_bench.statuses[-1], "brakedGeneration": 0}
    in_warn = policy_object("memory", MEMORY, mode="warn", version="8", generation=2, since=DAY + 1, status=earlier)
    watchdog_bench.tell("PodPolicy", in_warn)
    watchdog_bench.look(after=100)
    assert brake_of(watchdog_bench) == ("True", "OomKilled", 0)


def test_a_policy_that_the_brake_holds_is_not_in_force_for_the_watchdog_either() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    holding = policy_object("memory", MEMORY, version="8", status={"brakedGeneration": 1})
    watchdog_bench.tell("PodPolicy", holding)
    watchdog_bench.look()
    assert patches(watchdog_bench) == []
    assert watchdog_bench.statuses[-1]["would"] > 0


def test_where_it_is_only_told_nothing_is_patched() -> None:
    from trimtab.runtime import log

    watchdog_bench = bench(door=DryRunBrakeActuator(log.build_logger("error")))
    harmed(watchdog_bench, 3)
    for _ in range(3):
        watchdog_bench.look()
    assert patches(watchdog_bench) == []
    [note] = [event["note"] for event in watchdog_bench.events if event["reason"] == "HarmBrake"]
    assert has_facts(note, "would be set", "warn")


def test_a_policy_from_a_folder_is_only_told() -> None:
    from trimtab.runtime import log

    watchdog_bench = bench(policies=BY_MEMORY, door=DryRunBrakeActuator(log.build_logger("error")))
    before = [admitted(pod(), number=n) for n in range(6)]
    watchdog_bench.pods += [*before, *(killed(admitted(pod(), BY_MEMORY, number=n)) for n in range(8))]
    watchdog_bench.look()
    assert (
        watchdog_bench.metric("trimtab_harm_brakes_total", policy="memory", trouble="oom-killed", done="reported") == 1
    )
    assert watchdog_bench.paper.to("podpolicies") == []


def test_what_was_known_before_a_restart_still_counts() -> None:
    first = bench()
    harmed(first, 0)
    first.look()
    status = first.statuses[-1]
    second_bench = bench()
    pods = harmed(second_bench, 3, memory=policy_object("memory", MEMORY, status=status))
    del pods[:6]  # a rollout replaced them while nobody looked
    second_bench.look()
    assert len(patches(second_bench)) == 1


def test_pods_that_went_since_the_last_look_are_remembered() -> None:
    watchdog_bench = bench()
    pods = harmed(watchdog_bench, 0)
    watchdog_bench.look()
    for old in pods[:6]:
        watchdog_bench.tell("Pod", old, gone=True)
    del pods[:6]
    pods[:] = [killed(one) if n < 3 else one for n, one in enumerate(pods)]
    watchdog_bench.look()
    assert len(patches(watchdog_bench)) == 1


def test_nothing_but_status_and_events_is_ever_written() -> None:
    watchdog_bench = bench()
    harmed(watchdog_bench, 3)
    watchdog_bench.look()
    paths = [path for _, path, _ in watchdog_bench.paper.writes]
    assert paths
    assert all(path.endswith(("/podpolicies/memory/status", "/events")) for path in paths)


def test_running_pods_are_told_by_their_quality_of_service() -> None:
    watchdog_bench = bench()
    watchdog_bench.pods += [admitted(pod()), admitted(pod(), number=2)]
    watchdog_bench.look()
    metrics = {
        qos: watchdog_bench.metric("trimtab_qos_pods", qos=qos) for qos in ("Guaranteed", "Burstable", "BestEffort")
    }
    assert sum(number or 0 for number in metrics.values()) == 2
    assert None not in metrics.values()


def test_money_is_told_by_class_and_namespace_with_the_sandbox_apart() -> None:
    watchdog_bench = bench()
    kata = runtime_class("kata", overhead={"cpu": "500m"})
    watchdog_bench.pods.append(
        admitted(pod(container(requests={"cpu": "1"}), runtime_class_name="kata"), world=facts(kata))
    )
    watchdog_bench.look()
    assert watchdog_bench.metric("trimtab_overhead_dollars_per_hour", runtime_class="kata") is None
    labels = {"kubernetes.io/hostname": "n1", "trimtab.dev/price": "300000"}
    watchdog_bench.tell("Node", node("n1", labels=labels, cpu="2", memory="7680Mi"))
    watchdog_bench.look()
    assert watchdog_bench.metric("trimtab_overhead_dollars_per_hour", runtime_class="kata") == 0.05
    parts = [watchdog_bench.metric("trimtab_namespace_dollars_per_hour", namespace=NAMESPACE, part=p) for p in PARTS]
    assert parts == [0.1, 0.05]


PARTS = ("workload", "sandbox")


def test_evictions_are_counted_once_by_class_and_not_those_from_before() -> None:
    evicted = PodStatus(phase="Failed", reason="Evicted")
    watchdog_bench, world = bench(), facts(runtime_class("kata"))
    boxed = [admitted(pod(runtime_class_name="kata"), world=world, number=number) for number in (1, 2)]
    watchdog_bench.pods.append(change(boxed[0], status=evicted))
    watchdog_bench.look()
    watchdog_bench.pods += [change(boxed[1], status=evicted), change(admitted(pod(), number=3), status=evicted)]
    for _ in range(3):
        watchdog_bench.look()
    evictions = [
        watchdog_bench.metric("trimtab_runtime_class_evictions_total", runtime_class=c) for c in ("kata", "none")
    ]
    assert evictions == [1, 1]


def test_annotations_that_policies_match_by_are_known() -> None:
    watchdog_bench = bench()
    assert watchdog_bench.seen.matched_annotations == frozenset()
    match = {"annotations": {"note": "y"}, "exclude": [{"annotations": {"not": "*"}}]}
    watchdog_bench.tell("PodPolicy", policy_object("sizes", CPU, match=match))
    assert watchdog_bench.seen.matched_annotations == {"note", "not"}
