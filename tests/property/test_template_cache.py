"""The law of templates: a decision that is reused for another revision's pod is the one that it would get by itself."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.build import SIGNING, review
from tests.property import strategies as some
from tests.property.drawn_outcomes import crowded_worlds
from tests.property.drawn_parts import VALUES
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.owner import Owner
from trimtab.cluster.replicas import Replicas
from trimtab.policy.pod_context import DEFAULT_SETTINGS

_HASHES = st.sampled_from(["5d4f", "6b7c", "aaaa", "w"])
_JOBS = st.sampled_from(["work-28000001", "work-28000002"])
_HASH_LABELS = st.sampled_from(["pod-template-hash", "pod-template-hash", "rollouts-pod-template-hash"])
_NOTES = st.sampled_from(["x", "x", "y", "z"])


def _with_other_tags(containers, draw):
    return [
        {**one, "image": one["image"].rpartition(":")[0] + draw(st.sampled_from([":1", ":2"]))} for one in containers
    ]


@st.composite
def _metadata(draw, metadata, kind, hash_label):
    """The metadata as one revision of the owner has it."""
    name = f"web-{draw(_HASHES)}" if kind == "ReplicaSet" else draw(_JOBS) if kind == "Job" else "web"
    labels = {key: draw(st.just(value) | VALUES) for key, value in (metadata.get("labels") or {}).items()}
    labels |= {hash_label: name.partition("-")[2]} if kind == "ReplicaSet" else {"controller-uid": draw(_HASHES)}
    owner = {"kind": kind, "name": name, "uid": draw(_HASHES), "controller": True}
    own = {"name": f"{name}-0"} if "name" in metadata else {"generateName": f"{name}-"}
    annotations = dict(metadata.get("annotations") or {})
    if "note" in annotations:
        annotations["note"] = draw(_NOTES)
    left = {key: value for key, value in metadata.items() if key not in ("name", "generateName", "annotations")}
    return {**left, **own, "labels": labels, "ownerReferences": [owner]} | (
        {"annotations": annotations} if annotations else {}
    )


@st.composite
def revisions(draw):
    """Pods of one spec, as several revisions of their owner send them."""
    manifest = draw(some.manifests())
    kind, hash_label = draw(st.sampled_from(["ReplicaSet", "ReplicaSet", "Job", "StatefulSet"])), draw(_HASH_LABELS)
    found = []
    for _ in range(draw(st.integers(2, 4))):
        spec = dict(manifest["spec"])
        for part in ("containers", "initContainers"):
            if spec.get(part):
                spec[part] = _with_other_tags(spec[part], draw)
        found.append({**manifest, "metadata": draw(_metadata(manifest["metadata"], kind, hash_label)), "spec": spec})
    return found


@st.composite
def turns(draw):
    """Facts that follow each other, in which some of the owners are known, with their replicas."""
    found, with_quotas = [], draw(st.booleans())
    for world in draw(st.lists(some.worlds(with_quotas=with_quotas), min_size=1, max_size=2)):
        owners, replicas = dict(world.owners), dict(world.replicas)
        for name in draw(st.sets(st.sampled_from(["web-5d4f", "web-6b7c", "web-aaaa"]))):
            owners["team-a", "ReplicaSet", name] = Owner("Deployment", "web")
            if draw(st.booleans()):
                wanted = Replicas(wanted=draw(st.sampled_from([1, 3])), revision=draw(_HASHES))
                replicas["team-a", "ReplicaSet", name] = wanted
        if draw(st.booleans()):
            owners["team-a", "CronJob", "work"] = None
        found.append(replace(world, owners=owners, replicas=replicas))
    return found


@given(revisions(), some.policies(), turns(), st.sampled_from([DEFAULT_SETTINGS, SIGNING]))
def test_the_pod_of_another_revision_gets_its_own_answer(pods, by, worlds, terms):
    memory = ResponseCache()
    for world in (*worlds, worlds[0]):
        for number, manifest in enumerate(pods):
            body = review(manifest, uid=f"u-{number}")
            answer, alone = answer_review(body, by, world, terms, memory), answer_review(body, by, world, terms)
            assert answer.body == alone.body
            assert answer.record.decision == alone.record.decision


@given(revisions(), some.policies(), crowded_worlds())
def test_it_does_in_a_crowded_cluster_too(pods, by, drawn):
    memory = ResponseCache()
    for manifest in pods:
        body = review(manifest)
        answer, alone = answer_review(body, by, drawn[0], DEFAULT_SETTINGS, memory), answer_review(body, by, drawn[0])
        assert answer.body == alone.body
        assert answer.record.decision == alone.record.decision
