"""Requests from usage that replace what the author wrote, without a webhook: the pods that the API server makes by
compiled policies, beside those of `trimtab admit`.

The parameters are in Trimtab's own namespace, where no tenant writes.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import msgspec
import pytest

from tests.build import policies, policy
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.flags import minor_of
from tests.e2e import compiled_pods
from tests.e2e.compiled_pods import CONTAINERS, PREFIXES, Object
from tests.e2e.test_compiled_policies import THREADS, Bench, bind, compare, made, send
from trimtab.cluster.request_parameters import PARAMETERS_LABEL, PARAMETERS_NAME, name_own_parameters
from trimtab.cluster.snapshot import load_snapshot
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy

PODS = 300
SEED = 41
OWN = "trimtab-system"
RULES = {
    "adaptive": "{requests: {cpu: {from: usage, when: always}, memory: {from: usage, when: always}}}",
    "headroom": "{requests: {cpu: {from: usage, when: always, rule: p99 +15%, min: 60m, max: 150m}}}",
    "with-default": "{requests: {memory: {from: usage, when: always, otherwise: 128Mi, min: 96Mi}}}",
    "fixed": "{requests: {cpu: {from: policy, when: always, otherwise: 300m}}}",
}
POLICIES = policies(*(policy(rules, name=name) for name, rules in RULES.items())).all


def own(item: Object) -> Object:
    """The parameters of a namespace as they are in Trimtab's own."""
    meta = item["metadata"]
    if item["kind"] != "ConfigMap" or meta["name"] != PARAMETERS_NAME:
        return item
    name = name_own_parameters(meta["namespace"])
    return {**item, "metadata": {"name": name, "namespace": OWN, "labels": {PARAMETERS_LABEL: "v1"}}}


@pytest.fixture(scope="module")
def bench(whole_cluster: Cluster) -> Iterator[Bench]:
    whole_cluster.needs_own("policies for the whole cluster")
    if whole_cluster.plane is not None and minor_of(whole_cluster.plane.binaries.kubernetes) < (1, 36):
        pytest.skip("MutatingAdmissionPolicy is v1 from Kubernetes 1.36 on")
    tag, chance, cluster = uuid.uuid4().hex[:5], Random(SEED), whole_cluster
    made(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OWN}})
    items = compiled_pods.world(tag, int(time.time()))
    for item in map(own, items):
        made(cluster, item)
    for prefix in PREFIXES:
        for account in ("default", "ci-build"):
            meta = {"name": account, "namespace": f"{prefix}-{tag}"}
            made(cluster, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    snapshot = load_snapshot([("w.json", msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": items}))])
    drawn = [compiled_pods.pod(chance, f"pod-{number}", tag) for number in range(PODS)]
    with ThreadPoolExecutor(THREADS) as pool:
        stored = list(pool.map(lambda one: send(cluster, one, "none"), drawn))
    compiled = [(one, compile_mutating_policy(one, with_parameters=True, parameters_namespace=OWN)) for one in POLICIES]
    for _, one in compiled:
        for manifest in bind(one):
            cluster.apply(manifest)
    result = Bench(cluster, from_snapshot(snapshot.snapshot), drawn, stored, compiled)
    probe = sized(result, f"shared-{tag}")
    for name in RULES:
        cluster.eventually(lambda name=name: probe(name) != {"cpu": "7", "memory": "7Gi"}, what=f"{name} in force")
    yield result
    for _, one in compiled:
        for manifest in one.manifests:
            cluster.delete(manifest["kind"], manifest["metadata"]["name"])


def sized(bench: Bench, namespace: str, cpu: str = "7") -> Callable[[str], Object]:
    """Returns what a pod of the Deployment `api` requests under a policy, although its author wrote another request."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-7d9f", "uid": "u", "controller": True}
    resources = {"requests": {"cpu": cpu, "memory": "7Gi"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "probe",
            "namespace": namespace,
            "labels": {"pod-template-hash": "7d9f"},
            "ownerReferences": [reference],
        },
        "spec": {"containers": [{"name": CONTAINERS[0], "image": "i", "resources": resources}]},
    }

    def requests(policy_name: str) -> Object:
        answer = send(bench.cluster, pod, policy_name)
        assert not isinstance(answer, str), answer
        of_main: Object = answer["spec"]["containers"][0]["resources"]["requests"]
        return of_main

    return requests


def reason_for(bench: Bench, name: str, number: int) -> str:
    """The code of the listed difference that the pod and its namespace make us expect; empty: none."""
    pod = bench.given[number]
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    if pod["metadata"]["namespace"].startswith("ruled-"):
        return "namespace-rules"
    if "kubectl.kubernetes.io/last-applied-configuration" in pod["metadata"].get("annotations", {}):
        return "applied"
    resources = ("cpu", "memory") if name == "adaptive" else ("memory",) if name == "with-default" else ("cpu",)
    limited = any(r in c.get("resources", {}).get("limits", {}) for c in containers for r in resources)
    return "limit-reached" if limited else ""


def test_three_hundred_pods_are_those_of_admit_or_differ_for_a_listed_reason(bench: Bench) -> None:
    verdicts: Counter[str] = Counter()
    unexplained: list[Any] = []
    changed: Counter[str] = Counter()
    for one, _ in bench.compiled:
        with ThreadPoolExecutor(THREADS) as pool:
            results = list(pool.map(lambda number: compare(bench, one, number), range(PODS)))  # noqa: B023 - done here
        for number, (verdict, by_policy, by_webhook) in enumerate(results):
            code = reason_for(bench, one.name, number) if verdict == "differs" else ""
            verdicts[f"{verdict} ({code})" if code else verdict] += 1
            changed[one.name] += verdict == "equal, changed"
            if verdict in ("refused", "webhook refused") or (verdict == "differs" and not code):
                unexplained.append((one.name, number, verdict, by_policy, by_webhook))
    print(f"RESULT {dict(verdicts)} changed={dict(changed)}")
    assert not [pair[:3] for pair in unexplained], unexplained[:1]
    assert min(changed.values()) > 10


def test_what_is_old_missing_or_in_the_tenants_namespace_changes_nothing(bench: Bench) -> None:
    namespace = next(one["metadata"]["namespace"] for one in bench.given if one["metadata"]["namespace"][:4] == "team")
    cluster, name, requests = bench.cluster, name_own_parameters(namespace), sized(bench, namespace)
    authors = {"cpu": "7", "memory": "7Gi"}
    before = cluster.get("ConfigMap", name, OWN)["data"]

    def write(data: dict[str, str] | None, **where: str) -> None:
        meta = {"name": name, "namespace": OWN, "labels": {PARAMETERS_LABEL: "v1"}, **where}
        with contextlib.suppress(ApiError):
            cluster.delete("ConfigMap", meta["name"], meta["namespace"])
        if data is not None:
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

    assert requests("adaptive") != authors
    old = {key: text.replace("until=20", "until=2001-01-01T00:00:00Z was=20", 1) for key, text in before.items()}
    for data in (old, {**before, "_namespace": old["_namespace"]}, None):
        write(data)
        cluster.eventually(lambda: requests("adaptive") == authors, what="the author's requests", within=20)
    # A tenant writes the same into its own namespace, under both names.
    for tenants in (PARAMETERS_NAME, name):
        write(before, name=tenants, namespace=namespace)
    time.sleep(2)
    assert requests("adaptive") == authors
    write(before)
    cluster.eventually(lambda: requests("adaptive") != authors, what="the parameters again", within=20)


def test_what_is_not_certain_lowers_nothing(bench: Bench) -> None:
    namespace = next(one["metadata"]["namespace"] for one in bench.given if one["metadata"]["namespace"][:5] == "build")
    cluster, name = bench.cluster, name_own_parameters(namespace)
    data = cluster.get("ConfigMap", name, OWN)["data"]
    unsure = {key: text.replace("sure=adaptive,", "sure=") for key, text in data.items()}
    cluster.delete("ConfigMap", name, OWN)
    meta = {"name": name, "namespace": OWN, "labels": {PARAMETERS_LABEL: "v1"}}
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": unsure})
    cluster.eventually(lambda: sized(bench, namespace)("adaptive")["cpu"] == "7", what="the author's", within=20)
    raised = sized(bench, namespace, cpu="1m")("adaptive")["cpu"]
    assert raised not in ("1m", "7")
