"""What is remembered, for how long, and what never is."""

import json
import tracemalloc
from dataclasses import replace

import pytest

from tests.build import admission_context, facts, namespace, node, policies, policy, quota, review, usage, workload
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.admission.template_cache import MAX_TEMPLATE_BYTES
from trimtab.cluster.api.core import Taint
from trimtab.cluster.replicas import Replicas
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import AdmissionSettings

TERMS = AdmissionSettings()
FILL = policies(policy("{requests: {cpu: {from: usage, otherwise: 10m}}, limits: {cpu: remove}}"))
WORLD = facts(
    usage(cpu=("10m", "90m")),
    workload("ReplicaSet/web-5d4f", owner="Deployment/web"),
    workload("Deployment/web"),
    namespace(),
)


class Broken(dict):
    """Facts that cannot be asked: a mistake of ours."""

    def get(self, *_):
        raise RuntimeError("asked")


def manifest(token="abcde", **more):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f", "uid": "u", "controller": True}
    volume = {"name": f"kube-api-access-{token}", "projected": {"sources": []}}
    mount = {"name": f"kube-api-access-{token}", "mountPath": "/var/run/secrets"}
    app = {"name": "app", "image": "web:1", "resources": {"limits": {"cpu": "1"}}, "volumeMounts": [mount]}
    metadata = {"generateName": "web-5d4f-", "ownerReferences": [owner], **more}
    return {"metadata": metadata, "spec": {"containers": [app], "volumes": [volume]}}


class Door:
    """One memory, and how many answers came from it."""

    def __init__(self, by=FILL):
        self.memory, self.by, self.seen, self.hits = ResponseCache(), by, set(), 0

    def __call__(self, pod, world: ClusterFacts = WORLD, **request):
        answer = answer_review(
            review(pod, **request), admission_context(self.by, world, settings=TERMS, memory=self.memory)
        )
        assert (
            answer.body == answer_review(review(pod, **request), admission_context(self.by, world, settings=TERMS)).body
        )
        self.hits += id(answer.record) in self.seen
        self.seen.add(id(answer.record))
        self.kept = [*getattr(self, "kept", []), answer]
        return answer


def test_pods_that_differ_in_the_name_of_their_token_volume_share_an_answer():
    door = Door()
    first, second = door(manifest("abcde"), uid="u-1"), door(manifest("vwxyz"), uid="u-2", dryRun=True)
    assert second.record is first.record
    assert (second.request.uid, second.request.dry_run) == ("u-2", True)
    assert b'"u-2"' in second.body


@pytest.mark.parametrize(
    "change",
    [
        {"namespaces": {"team-a": {"trimtab.dev/opt-out": "true"}}},
        {"recommendations": facts(usage(cpu=("10m", "40m"))).recommendations},
        {"quotas": {"team-a": (quota({"limits.cpu": "9"}, used={"limits.cpu": "0"}),)}},
        {"listed_kinds": frozenset({"Namespace"})},
    ],
)
def test_what_was_read_and_changed_is_read_anew(change):
    door = Door()
    door(manifest())
    door(manifest(), replace(WORLD, **change))
    assert door.hits == 0


@pytest.mark.parametrize(
    "change",
    [
        {"namespaces": {**WORLD.namespaces, "team-b": {}}},
        {"owners": {**WORLD.owners, ("team-a", "Job", "other"): None}},
        {"recommendations": replace(WORLD.recommendations, workloads={**WORLD.recommendations.workloads, "x": {}})},
        {"quotas": {"team-b": (quota({"limits.cpu": "9"}),)}},
    ],
)
def test_what_was_not_read_may_change(change):
    door = Door()
    door(manifest())
    door(manifest(), replace(WORLD, **change))
    assert door.hits == 1


def use(cpu: str) -> ClusterFacts:
    return replace(WORLD, quotas={"team-a": (quota({"requests.cpu": "1"}, used={"requests.cpu": cpu}),)})


def test_the_use_of_a_quota_forgets_nothing_until_the_owners_pods_would_be_refused_for_it():
    door = Door(policies(policy("{requests: {cpu: {from: policy, otherwise: 200m, when: always}}}")))
    pod = manifest()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    outcomes = [door(pod, use(cpu)).record.outcome for cpu in ("100m", "300m", "800m")]
    assert outcomes == [AdmissionOutcome.CHANGED, AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED]
    assert door.hits == 1


@pytest.mark.parametrize("more", ["", ", labels: {add: {a: b}}"])
def test_room_that_comes_back_in_a_quota_is_noticed(more):
    door = Door(policies(policy("{requests: {cpu: {from: policy, otherwise: 200m, when: always}}" + more + "}")))
    pod = manifest()
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    changes = [len(door(pod, use(cpu)).record.decision.changes) for cpu in ("800m", "700m", "100m")]
    assert changes[0] == changes[1] == changes[2] - 1


def test_what_only_the_check_of_new_nodes_reads_is_recorded():
    strict = "{constraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], by: [app]}"
    door, pod = Door(policies(policy(f"{{topologySpread: {strict}}}"))), manifest(labels={"app": "web"})
    closed = (Taint(key="pool", value="", effect="NoSchedule"),)
    nodes = facts(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}, taints=closed)).nodes
    wants = [{("team-a", "Deployment", "web"): Replicas(wanted=expected)} for expected in (1, 3)]
    # Without nodes, the number of replicas is not read.
    worlds = [WORLD, replace(WORLD, nodes=nodes, replicas=wants[0]), replace(WORLD, nodes=nodes, replicas=wants[1])]
    outcomes = [door(pod, world).record.outcome for world in worlds]
    assert outcomes == [AdmissionOutcome.CHANGED, AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED]
    assert door.hits == 1


def test_another_namespace_is_another_pod():
    door = Door()
    door(manifest())
    door(manifest(), namespace="team-b")
    assert door.hits == 0


@pytest.mark.parametrize(
    "told", [{"labels": {"app": "kube-api-access-abcde"}}, {"annotations": {"note": "see kube-api-access-abcde"}}]
)
def test_a_name_that_stands_elsewhere_too_is_no_likeness(told):
    door = Door()
    door(manifest("abcde", **told))
    door(manifest("abcde", **told))
    assert door.hits == 0


def test_a_token_volume_of_another_kind_is_no_likeness():
    door, pod = Door(policies(policy("{safeToEvictVolumes: {volumes: ['kube-*']}}"))), manifest()
    pod["spec"]["volumes"][0] = {"name": "kube-api-access-abcde", "emptyDir": {}}
    door(pod)
    door(pod)
    assert door.hits == 0


BIG = policies(policy("{requests: {memory: {from: policy, otherwise: 3Gi, when: always}}}"))


def pinned(name, field="matchFields", **more):
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    pod = manifest(ownerReferences=[owner], **more)
    terms = [{field: [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod["spec"]["affinity"] = {"nodeAffinity": required}
    return pod


def of_nodes(**sizes):
    """The cluster with nodes of these sizes, in Gi."""
    world = facts(
        *(
            node(name, labels={"kubernetes.io/hostname": name}, cpu="4", memory=f"{size}Gi")
            for name, size in sizes.items()
        )
    )
    return replace(WORLD, nodes=world.nodes, machines=world.machines)


class CompactDoor(Door):
    """As an API server sends reviews: without spaces."""

    def __call__(self, pod, world=WORLD, **request):
        compact = json.dumps(json.loads(review(pod, **request)), separators=(",", ":")).encode()
        answer = answer_review(compact, admission_context(self.by, world, settings=TERMS, memory=self.memory))
        assert answer.body == answer_review(compact, admission_context(self.by, world, settings=TERMS)).body
        self.hits += id(answer.record) in self.seen
        self.seen.add(id(answer.record))
        self.kept = [*getattr(self, "kept", []), answer]
        return answer


def test_pods_that_are_pinned_to_nodes_of_one_shape_share_an_answer():
    door, world = CompactDoor(BIG), of_nodes(n1="4", n2="4", n3="2")
    outcomes = [door(pinned(name), world).record.outcome for name in ("n1", "n2", "n3", "n1")]
    assert outcomes[0] == outcomes[1] == outcomes[3] != outcomes[2]
    assert door.hits == 2


def test_a_node_of_another_shape_by_now_is_noticed():
    door = CompactDoor(BIG)
    for world in (WORLD, of_nodes(n1="4", n2="2"), of_nodes(n1="2", n2="4"), of_nodes(n1="4"), of_nodes(n2="4")):
        for name in ("n1", "n2"):
            door(pinned(name), world)


@pytest.mark.parametrize(
    "told",
    [{"labels": {"node": "n1"}}, {"annotations": {"node": "n1"}}, {"annotations": {"node": '"matchFields":["n1"]'}}],
)
def test_a_node_that_is_named_elsewhere_too_is_no_likeness(told):
    door = CompactDoor()
    door(pinned("n1", **told))
    door(pinned("n2", **{part: dict.fromkeys(values, "n2") for part, values in told.items()}))
    assert door.hits == 0


def test_a_node_that_only_a_preference_names_is_not_masked():
    door = CompactDoor()
    for name in ("n1", "n2"):
        pod = pinned(name)
        [term] = pod["spec"]["affinity"]["nodeAffinity"].pop("requiredDuringSchedulingIgnoredDuringExecution")[
            "nodeSelectorTerms"
        ]
        pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 1, "preference": term}
        ]
        door(pod)
    assert door.hits == 0


def test_bytes_that_are_no_json_are_not_remembered():
    memory = ResponseCache()
    body = review(manifest()).replace(b"web:1", b"web:\xff")
    answer_review(body, admission_context(FILL, WORLD, settings=TERMS, memory=memory))
    assert len(memory) == 0


def test_what_failed_is_not_remembered():
    memory = ResponseCache()
    record = answer_review(
        review(manifest()), admission_context(FILL, replace(WORLD, bounds=Broken()), settings=TERMS, memory=memory)
    ).record
    assert record.decision.failures
    assert len(memory) == 0


def test_other_policies_or_terms_forget_everything():
    door = Door()
    door(manifest())
    assert len(door.memory) == 1
    others = policies()
    for terms in (TERMS, AdmissionSettings(), AdmissionSettings(paused=True)):
        answer_review(review(manifest("abcde")), admission_context(others, WORLD, settings=terms, memory=door.memory))
        assert len(door.memory) == 1


def test_memory_is_bounded_and_keeps_what_is_asked_for():
    memory, often = ResponseCache(room=400_000), review(manifest())
    first = answer_review(often, admission_context(FILL, WORLD, settings=TERMS, memory=memory)).record
    for number in range(200):
        answer_review(
            review(manifest(labels={"n": str(number)})), admission_context(FILL, WORLD, settings=TERMS, memory=memory)
        )
        assert answer_review(often, admission_context(FILL, WORLD, settings=TERMS, memory=memory)).record is first
    assert len(memory) < 50


@pytest.mark.parametrize(("room", "field"), [(8 << 20, "nodeName"), (1, "serviceAccountName")])
def test_pods_whose_decoded_form_is_far_larger_than_their_json_take_no_more_memory(room, field):
    """`room` for responses alone, or hardly any, so that only the templates are in memory."""
    memory = ResponseCache(room=room)
    tracemalloc.start()
    for number in range(40):
        pod = manifest(labels={"n": str(number)})
        pod["spec"] |= {"schedulingGates": [{"name": ""}] * 4000, field: f"n-{number}"}
        answer_review(review(pod), admission_context(FILL, WORLD, settings=TERMS, memory=memory))
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used < room + MAX_TEMPLATE_BYTES


@pytest.mark.parametrize("action", ["{requests: {cpu: {from: usage, otherwise: 10m}}}", "{labels: {add: {a: b}}}"])
def test_a_pod_with_an_invalid_quantity_gets_the_same_answer_when_nodes_change(action):
    pod = manifest(annotations={"trimtab.dev/opt-out": "*"})
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "one"}}
    door = Door(policies(policy(action)))
    for size in ("1", "2"):
        door(pod, replace(WORLD, nodes=facts(node("n1", cpu=size)).nodes))
