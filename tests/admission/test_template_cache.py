"""Pods of one spec share a decision, unless anything that was read for it differs."""

from dataclasses import replace

import pytest

from tests.build import (
    NAMESPACE,
    SIGNER,
    SIGNING,
    admission_context,
    container_usage,
    facts,
    namespace,
    node,
    policies,
    policy,
    quota,
    review,
    runtime_class,
    usage,
    workload,
)
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.admission.template_cache import MAX_TEMPLATES
from trimtab.cluster.api.meta import change
from trimtab.cluster.replicas import Replicas
from trimtab.policy.changed_annotation import read_trusted_annotation
from trimtab.policy.match import rollout_place

FILL = policies(policy("{requests: {cpu: {from: usage, otherwise: 10m}}, limits: {cpu: remove}}"))
WORLD = facts(
    usage(cpu=("10m", "90m")),
    workload("ReplicaSet/web-5d4f", owner="Deployment/web"),
    workload("Deployment/web"),
    workload("CronJob/work"),
    namespace(),
    runtime_class("kata"),
)


def manifest(template_hash="5d4f", *, kind="ReplicaSet", name="web-", tag="1", labels=(), annotations=(), **spec):
    owner = {"kind": kind, "name": f"{name}{template_hash}", "uid": f"u-{template_hash}", "controller": True}
    volume = {"name": f"kube-api-access-{template_hash[-4:]}x", "projected": {"sources": []}}
    app = {"name": "app", "image": f"web:{tag}", "resources": {"limits": {"cpu": "1"}}}
    metadata = {
        "generateName": f"{name}{template_hash}-",
        "ownerReferences": [owner],
        "labels": {"app": "web", "tier": "a", "pod-template-hash": template_hash, **dict(labels)},
        "annotations": {"note": "x", "checksum/config": "1", **dict(annotations)},
    }
    return {"metadata": metadata, "spec": {"containers": [app], "volumes": [volume], **spec}}


class Door:
    """One memory. Each answer is compared with the one that the pod gets by itself."""

    def __init__(self, by=FILL, terms=SIGNING):
        self.memory, self.by, self.terms, self.known = ResponseCache(), by, terms, []

    def is_shared(self, pod, world=WORLD, **request) -> bool:
        """Whether the decision on this pod is that on an earlier one."""
        answer = answer_review(
            review(pod, **request), admission_context(self.by, world, settings=self.terms, memory=self.memory)
        )
        alone = answer_review(review(pod, **request), admission_context(self.by, world, settings=self.terms))
        assert answer.body == alone.body
        assert answer.record.decision == alone.record.decision
        decision = answer.record.decision
        shared = any(decision.changes is earlier.changes for earlier in self.known if decision.changes)
        self.known.append(decision)
        return shared


def second_is_shared(first, second, by=FILL, world=WORLD, **request) -> bool:
    door = Door(by)
    assert not door.is_shared(first, world)
    return door.is_shared(second, world, **request)


@pytest.mark.parametrize(
    "other",
    [
        {"template_hash": "6b7c"},
        {"tag": "2"},
        {"labels": {"tier": "b"}},
        {"annotations": {"checksum/config": "2", "note": "y"}},
    ],
)
def test_what_no_decision_reads_may_differ(other):
    assert second_is_shared(manifest(), manifest(**{"template_hash": "6b7c", **other}))


def test_two_jobs_of_one_cron_job_share_a_decision():
    of_cron = {"kind": "Job", "name": "work-"}
    assert second_is_shared(manifest("28000001", **of_cron), manifest("28000002", **of_cron))


ALWAYS = policies(policy("{requests: {cpu: {from: policy, otherwise: 10m, when: always}}}"))


@pytest.mark.parametrize("kind", ["Job", "Workflow", "Pod", "StatefulSet"])
def test_the_name_of_the_only_owner_may_differ_if_nothing_was_read_by_it(kind):
    pods = [manifest(name_of_run, kind=kind, name="lone-") for name_of_run in ("x7k2p", "b4c9d")]
    assert second_is_shared(*pods, ALWAYS)


def test_a_reason_that_names_the_only_owner_holds_for_no_other():
    pods = [manifest(name_of_run, kind="Job", name="lone-") for name_of_run in ("28000001", "28000002")]
    assert not second_is_shared(*pods)


def test_usage_that_is_known_of_one_only_owner_is_not_that_of_another():
    pods = [manifest(name_of_run, kind="Job", name="lone-") for name_of_run in ("a", "b")]
    used = {f"{NAMESPACE}/Job/lone-b": {"app": container_usage({"cpu": ("1m", "5m")})}}
    own = replace(WORLD, recommendations=replace(WORLD.recommendations, workloads=used))
    by = policies(policy("{requests: {cpu: {from: usage, when: always, otherwise: 10m}}}"))
    assert not second_is_shared(*pods, by, own)


def in_half(names):
    """The first two of these names of pods in one half of owners, and the first one in the other half."""
    half = {name: rollout_place("p", f"{NAMESPACE}/Pod/{name}") < 50 for name in names}
    inside = [name for name, is_included in half.items() if is_included]
    return inside[0], inside[1], next(name for name, is_included in half.items() if not is_included)


def bare(name, **more):
    pod = manifest(**more)
    del pod["metadata"]["ownerReferences"], pod["metadata"]["generateName"]
    pod["metadata"]["name"] = name
    return pod


def test_a_pod_without_an_owner_shares_with_those_that_the_same_policies_are_rolled_out_to():
    half = policies(policy("{requests: {cpu: {from: policy, otherwise: 10m, when: always}}}", rollout=50))
    first, second, outside = in_half([f"run-{number}" for number in range(20)])
    assert second_is_shared(bare(first), bare(second), half)
    assert not second_is_shared(bare(first), bare(outside), half)


def test_a_pod_without_an_owner_shares_with_those_whose_names_pass_the_same_tests():
    by = policies(
        policy("{requests: {cpu: {from: policy, otherwise: 10m, when: always}}}", match="{owners: ['Pod/*a']}")
    )
    assert second_is_shared(bare("run-1a"), bare("run-2a"), by)
    assert not second_is_shared(bare("run-1a"), bare("run-2b"), by)


def test_a_reason_that_contains_a_pods_own_name_holds_for_no_other():
    by = policies(policy(REST + ", labels: {add: {tier: c}}}"))
    assert second_is_shared(bare("run-1a"), bare("run-2b"), by)
    assert not second_is_shared(
        bare("run-1a", labels={"tier": "run-1a"}), bare("run-2b", labels={"tier": "run-1a"}), by
    )


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {"one": "more"}},
        {"annotations": {"one": "more"}},
        {"annotations": {"trimtab.dev/changed": "{}"}},
        {"restartPolicy": "Never"},
        {"kind": "StatefulSet"},
        {"name": "shop-"},
        {"tag": "2/other"},
    ],
)
def test_what_every_decision_depends_on_may_not(other):
    assert not second_is_shared(manifest(), manifest(**{"template_hash": "6b7c", **other}))


OTHER_HASH = {"template_hash": "6b7c"}
REST = "{requests: {cpu: {from: usage, otherwise: 10m}}, limits: {cpu: remove}"


@pytest.mark.parametrize(
    ("match", "actions", "other"),
    [
        ("{podLabels: {tier: '*'}}", "}", {"labels": {"tier": "b"}}),
        ("{podSelector: {matchExpressions: [{key: tier, operator: Exists}]}}", "}", {"labels": {"tier": "b"}}),
        ("{annotations: {note: '*'}}", "}", {"annotations": {"note": "y"}}),
        ("{owners: ['ReplicaSet/*4f']}", "}", {"template_hash": "6b7c"}),
        ("{exclude: [{owners: ['ReplicaSet/*7c']}]}", "}", {"template_hash": "6b7c"}),
        ("{owners: ['ReplicaSet/web-5d4f']}", "}", {"template_hash": "6b7c"}),
        ("{podSelector: {matchLabels: {tier: a}}}", "}", {"labels": {"tier": "b"}}),
        ("{containers: {images: ['*:1']}}", "}", {"tag": "2"}),
        ("{containers: {notImages: ['web:2']}}", "}", {"tag": "2"}),
        ("{}", ", labels: {add: {tier: c}}}", {"labels": {"tier": "c"}}),
        ("{}", ", labels: {add: {}, fromPod: {cost: {label: tier, among: [a, b]}}}}", {"labels": {"tier": "b"}}),
        ("{}", ", annotations: {add: {note: z}, override: true}}", {"annotations": {"note": "z"}}),
        ("{}", ", topologySpread: {constraints: [{topologyKey: zone}], by: [pod-template-hash]}}", OTHER_HASH),
    ],
)
def test_what_a_policy_reads_may_not(match, actions, other):
    by = policies(policy(REST + actions, match=match))
    if "template_hash" not in other:
        assert second_is_shared(manifest(), manifest("6b7c"), by)
    assert not second_is_shared(manifest(), manifest(**other), by)


def test_a_name_with_a_quotation_mark_in_a_reason_shares_nothing():
    by = policies(policy(REST + ", labels: {add: {tier: c}, override: true}}"))
    assert not second_is_shared(manifest(name='we"b-'), manifest("6b7c", name='we"b-'), by)


def test_images_with_a_slash_after_the_digests_mark_may_be_of_another_registry():
    by = policies(policy(REST + "}", match="{containers: {images: ['docker.io/*']}}"))
    pods = [manifest(containers=[{"name": "app", "image": image}]) for image in ("web@a/b", "web@a.b/b")]
    assert not second_is_shared(*pods, by)


OTHER = (NAMESPACE, "ReplicaSet", "web-6b7c")


def test_facts_about_the_other_owner_may_not_differ():
    pods = manifest(), manifest("6b7c")
    by = policies(policy(REST + ", labels: {add: {tier: b}, override: true}}"))
    selected = Replicas(wanted=1, revision="2", selected=("app",))
    facts = {(NAMESPACE, "ReplicaSet", "web-5d4f"): selected, OTHER: change(selected, revision="3")}
    assert second_is_shared(*pods, by, replace(WORLD, replicas=facts))
    facts[OTHER] = change(selected, selected=("tier",))
    assert not second_is_shared(*pods, by, replace(WORLD, replicas=facts))


def test_usage_of_the_nearest_owner_itself_is_its_own():
    used = {f"{NAMESPACE}/ReplicaSet/web-6b7c": {"app": container_usage({"cpu": ("1m", "5m")})}}
    nothing_known = replace(WORLD, recommendations=replace(WORLD.recommendations, workloads={}))
    own = replace(WORLD, recommendations=replace(WORLD.recommendations, workloads=used))
    door = Door()
    door.is_shared(manifest(), nothing_known)
    assert not door.is_shared(manifest("6b7c"), own)


def test_a_changed_fact_is_read_anew():
    door = Door()
    door.is_shared(manifest())
    assert not door.is_shared(manifest("6b7c"), facts(usage(cpu=("10m", "40m")), namespace()))
    assert not door.is_shared(manifest("7777"), replace(WORLD, listed_kinds=frozenset({"Namespace"})))


def test_a_namespace_with_a_quota_shares_nothing():
    world = replace(WORLD, quotas={NAMESPACE: (quota({"requests.cpu": "9"}, used={"requests.cpu": "0"}),)})
    assert not second_is_shared(manifest(), manifest("6b7c"), world=world)


def test_a_pod_that_server_side_apply_wrote_shares_nothing():
    applied = manifest("6b7c")
    applied["metadata"]["managedFields"] = [{"operation": "Apply", "manager": "x", "fieldsV1": {"f:spec": {}}}]
    assert not second_is_shared(manifest(), applied)
    assert not second_is_shared(applied, manifest())


def test_a_pod_that_the_server_refuses_for_its_labels_shares_nothing():
    assert not second_is_shared(manifest(labels={"tier": "not a value"}), manifest("6b7c"))


def test_annotations_that_the_server_would_refuse_only_with_the_changes_share_nothing():
    added = [policy(f"{{annotations: {{add: {{{name}: '{'x' * 58_000}'}}}}}}", name=name) for name in ("a", "b")]
    assert not second_is_shared(manifest(), manifest("6b7c", annotations={"note": "y" * 40_000}), policies(*added))


def test_another_namespace_is_another_template():
    assert not second_is_shared(manifest(), manifest("6b7c"), namespace="team-b")


def test_other_policies_forget_all_templates():
    door = Door()
    door.is_shared(manifest())
    door.by = policies(policy("{requests: {cpu: {from: usage, otherwise: 10m}}}"))
    assert not door.is_shared(manifest("6b7c"))


def with_nodes(*pools: str):
    """The cluster with one node in each of these pools."""
    nodes = [node(f"n{number}", labels={"pool": pool}, cpu="4") for number, pool in enumerate(pools)]
    return replace(WORLD, nodes=facts(*nodes).nodes)


@pytest.mark.parametrize("template_hash", ["5d4f", "6b7c"])
def test_a_decision_is_not_reused_when_its_node_is_gone(template_hash):
    door, both, one = Door(PLACED), with_nodes("web", "batch"), with_nodes("web")
    door.is_shared(manifest(), both)
    # The cached response of the first pod is checked with the new nodes first, and dropped.
    assert not door.is_shared(manifest(), one)
    assert not door.is_shared(manifest(template_hash), one)


PLACED = policies(policy("{placement: {nodeSelector: {pool: batch}}}"))


def test_a_pod_that_names_its_token_volume_elsewhere_is_not_cached_for_others():
    def pod(token, tier):
        actual_manifest = manifest(labels={"tier": f"kube-api-access-{tier}"})
        actual_manifest["spec"]["volumes"][0]["name"] = f"kube-api-access-{token}"
        return actual_manifest

    door = Door(policies(policy(REST + "}", match="{podLabels: {tier: '*-bbbbb'}}")))
    door.is_shared(pod("aaaaa", "bbbbb"))
    assert door.is_shared(pod("bbbbb", "bbbbb"))
    assert not door.is_shared(pod("ccccc", "ccccc"))


def test_each_pod_gets_its_own_signature():
    memory = ResponseCache()
    for template_hash in ("5d4f", "6b7c"):
        body = review(manifest(template_hash))
        pod = answer_review(body, admission_context(FILL, WORLD, settings=SIGNING, memory=memory)).record.decision.pod
        assert read_trusted_annotation(pod, NAMESPACE, SIGNER) is not None


def test_what_the_pods_siblings_get_is_cached_as_if_it_had_been_decided():
    door = Door()
    door.is_shared(manifest())
    second = [
        answer_review(
            review(manifest("6b7c")), admission_context(FILL, WORLD, settings=SIGNING, memory=door.memory)
        ).record
        for _ in range(2)
    ]
    assert second[0] is second[1]
    newer = facts(usage(cpu=("10m", "40m")), namespace())
    third = answer_review(
        review(manifest("6b7c")), admission_context(FILL, newer, settings=SIGNING, memory=door.memory)
    ).record
    assert third is not second[0]


def test_the_response_to_a_pod_that_seldom_repeats_is_stored_for_the_second_equal_pod():
    door = Door()

    def count_stored(number: str, name: str = "") -> int:
        pod = manifest(number, kind="Job", name="work-")
        pod["metadata"] |= {"name": name} if name else {}
        door.is_shared(pod)
        return len(door.memory)

    # The first pod is decided; each later one is similar to it.
    jobs = ("28000001", "28000002", "28000003", "28000003", "28000003")
    assert [count_stored(job) for job in jobs] == [1, 1, 1, 2, 2]
    assert [count_stored("28000003", name) for name in ("step-one", "step-two", "step-six", "step-six")] == [3, 3, 3, 4]


def test_the_number_of_templates_is_bounded():
    memory = ResponseCache()
    for number in range(MAX_TEMPLATES + 9):
        answer_review(
            review(manifest(serviceAccountName=f"a-{number}")),
            admission_context(FILL, WORLD, settings=SIGNING, memory=memory),
        )
    assert len(memory.templates) == MAX_TEMPLATES
