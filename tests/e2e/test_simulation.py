"""Does a pod become what `trimtab admit` says it becomes, on a real API server with our own webhook in the chain?

Each world is a namespace with LimitRanges and quotas of its own, RuntimeClasses and PriorityClasses around it. Every
pod is created for the server to try (dry run: all of admission, nothing stored) and simulated from what a reading of
the cluster says; both must come to the same pod, or to the same refusal.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import msgspec
import pytest

from tests.build import admission_context
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer
from tests.e2e import worlds
from trimtab.admission.apiserver import serialization
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.handler import answer_review
from trimtab.admission.preview import preview_admission
from trimtab.cluster.api.meta import change, value_or, without_nulls
from trimtab.cluster.api.pod import Pod
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.listing import list_kinds
from trimtab.kube.resources import list_sources
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies

KINDS = ("Namespace", "RuntimeClass", "PriorityClass", "LimitRange", "ResourceQuota", "Node")
WORLDS = range(12)
PODS = 50


class Ours(WebhookServer):
    """Our own answer, bytes to bytes, behind the test bed's server."""

    def __init__(self, policies: Policies, facts: ClusterFacts) -> None:
        super().__init__([])
        self.policies, self.facts = policies, facts

    def answer(self, review: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(review["request"])
        answer = answer_review(json.dumps(review).encode(), admission_context(self.policies, self.facts))
        decoded: dict[str, Any] = msgspec.json.decode(answer.body)
        return decoded


@pytest.mark.parametrize("seed", WORLDS)
def test_what_is_simulated_is_what_is_stored(cluster: Cluster, seed: int) -> None:
    chance, tag = Random(seed), f"{seed}-{cluster.namespace[-5:]}"
    cluster.apply([*worlds.classes(tag), *worlds.rules(chance)])
    policies = the_policies(tag)
    settled(cluster)
    facts = the_facts(cluster)
    pods = [worlds.pod(chance, f"pod-{number}", tag) for number in range(PODS)]
    with Ours(policies, facts) as hook:
        cluster.webhook_configuration("ours", hook, reinvocation_policy="IfNeeded")
        differences = [result for pod in pods if (result := lasting(cluster, pod, policies, facts))]
    cluster.delete("MutatingWebhookConfiguration", f"{cluster.namespace}-ours")
    assert hook.calls
    assert not differences, f"{len(differences)} of {PODS}:\n" + "\n\n".join(differences)


OUTCOMES: Counter[str] = Counter()
SAYS = {
    "quota": "exceeded quota|failed quota|status unknown",
    "LimitRanger": "usage per|ratio per",
    "RuntimeClass": "RuntimeClass",
    "Priority": "priority|PriorityClass|PreemptionPolicy",
    "ours": "denied the request",
    "validation": "is invalid",
    "decoding": "unreadable",
}


def _by(printed_text: Any) -> str:
    """Who refused it."""
    text = str(printed_text)
    return next((who for who, words in SAYS.items() if re.search(words, text)), "somebody else")


def test_everybody_who_can_refuse_a_pod_did_and_enough_were_stored() -> None:
    """Runs after the worlds: were they worth looking at?"""
    if sum(OUTCOMES.values()) < len(WORLDS) * PODS:
        pytest.skip("only some of the worlds were looked at")
    print(dict(OUTCOMES))
    assert {outcome.partition(" ")[2] for outcome in OUTCOMES} >= {*SAYS} - {"ours"}
    assert OUTCOMES["stored"] > 100


def the_policies(tag: str) -> Policies:
    text = worlds.POLICIES.replace("CLASS", f"kata-{tag}").replace("PRIORITY", f"p1000-{tag}")
    loaded = load_policies([("policies.yaml", text.encode())])
    assert not loaded.mistakes
    return loaded.policies


def settled(cluster: Cluster) -> None:
    """The quota controller has confirmed every quota, and the API server's caches have seen all of it."""
    cluster.eventually(lambda: all("used" in quota["status"] for quota in cluster.list("ResourceQuota")))
    pod = worlds.pod(Random(1), "taken", "none")
    pod["spec"] = {
        "containers": [
            {
                "name": "c",
                "image": "pause",
                "resources": {
                    "requests": {"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi"},
                    "limits": {"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "1Gi"},
                },
            }
        ]
    }
    pod["metadata"] = {"name": "taken"}
    time.sleep(1)
    try:
        cluster.create(pod)
        time.sleep(1)
    except ApiError:
        return  # some worlds take no such pod


def the_facts(cluster: Cluster) -> ClusterFacts:
    client = connect_to_cluster(str(cluster.kubeconfig))
    try:
        return from_snapshot(list_kinds(client, list_sources(KINDS)).snapshot)
    finally:
        client.close()


def lasting(cluster: Cluster, sent: dict[str, Any], policies: Policies, facts: ClusterFacts) -> str:
    """A difference that is still there after some seconds: caches of the API server may be behind what was applied."""
    for pause in (0.0, 1.0, 3.0, 6.0):
        time.sleep(pause)
        if not (actual_difference := difference(cluster, sent, policies, facts)):
            return ""
    return actual_difference


def difference(cluster: Cluster, sent: dict[str, Any], policies: Policies, facts: ClusterFacts) -> str:
    """What the two say of it, where that is not the same."""
    real = created(cluster, sent)
    OUTCOMES["stored" if isinstance(real, dict) else f"{real[0]} {_by(real[1])}"] += 1
    pod = msgspec.convert(without_nulls(copy.deepcopy(sent)), Pod)
    possible = [
        told(preview_admission(pod, cluster.namespace, admission_context(policies, each)).result, sent)
        for each in orders(facts)
    ]
    if real in possible:
        return ""
    text = possible[0]
    if isinstance(real, dict) and isinstance(text, dict):
        parts = [
            f"  {field}\n    real {real[field]}\n    ours {text[field]}" for field in real if real[field] != text[field]
        ]
        return f"{json.dumps(sent)}\n" + "\n".join(parts)
    return f"{json.dumps(sent)}\n    real {real}\n    ours {text}"


def orders(facts: ClusterFacts) -> Iterator[ClusterFacts]:
    """Which of several LimitRanges (or quotas) speaks first is not promised: the server reads them from a map."""
    for ranges, quotas in product((1, -1), (1, -1)):
        yield replace(
            facts,
            limit_ranges={namespace: limit_range[::ranges] for namespace, limit_range in facts.limit_ranges.items()},
            quotas={namespace: quota[::quotas] for namespace, quota in facts.quotas.items()},
        )


def told(admission: PodAdmitted | PodRejected, sent: dict[str, Any]) -> Any:
    """The server's ServiceAccount plugin, which is not simulated, names the account of a pod that names none."""
    if isinstance(admission, PodRejected):
        return refusal(admission, sent["metadata"]["name"])
    stored = plain(admission.pod)
    return {**stored, "service_account_name": stored["service_account_name"] or "default"}


def created(cluster: Cluster, sent: dict[str, Any]) -> Any:
    try:
        stored = cluster.create(copy.deepcopy(sent), dryRun="All")
    except ApiError as error:
        return (error.status, words(error.message))
    return plain(msgspec.convert(stored, Pod))


def refusal(admission: PodRejected, name: str) -> tuple[int, Any]:
    """As the API server words it."""
    if admission.plugin == "decoding":
        return (admission.code, words(admission.message))
    if admission.plugin == "trimtab":
        return (
            admission.code,
            words(f'admission webhook "ours.testbed.trimtab.dev" denied the request: {admission.message}'),
        )
    begin = f'Pod "{name}" is invalid' if admission.code == 422 else f'pods "{name}" is forbidden'
    return (admission.code, words(f"{begin}: {admission.message}"))


def words(message: str) -> Any:
    """Complaints as a bag: the server's order among the resources of a bound is random."""
    if "cannot be handled as a Pod" in message or message.startswith("Internal error occurred"):
        return "unreadable"  # which part of it, the decoder tells in words that are not promised
    return Counter(re.split(r"\]?, \[?|: \[|\]$", message))


def plain(pod: Pod) -> dict[str, Any]:
    """What of a pod is compared: all that our shapes read, without what every stored pod is given beside admission."""
    volumes = tuple(v for v in pod.spec.volumes if not v.name.startswith("kube-api-access-"))
    canonical_object = serialization.to_canonical(change(pod, spec=change(pod.spec, volumes=volumes)))
    fields = {field: getattr(canonical_object.spec, field) for field in canonical_object.spec.__struct_fields__}
    labels, annotations = (
        value_or(part, {}) for part in (canonical_object.metadata.labels, canonical_object.metadata.annotations)
    )
    return {**fields, "labels": labels, "annotations": annotations}
