"""Compiled policies on a real API server: the pods that they give, beside those that the webhook would give.

The webhook's pod is what the API server stores when it is sent the pod as the webhook's decision changes it: the
decision is a function of values, and the plugins that run after it are the server's own.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import jsonpatch
import msgspec
import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e import compiled_pods
from tests.e2e.compiled_pods import MARK, PREFIXES, Object
from trimtab.admission.json_patch import diff_pods
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import load_snapshot
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.compiled.differences import DIFFERENCES
from trimtab.policy.compiled.mutating_policy import CompiledMutation, compile_mutating_policy
from trimtab.policy.compiled_annotation import COMPILED_PREFIX
from trimtab.policy.decide import decide
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import PodPolicy, Policies

# Sixteen thousand pairs of pods and policies take minutes.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PODS = 600
SEED = 22
THREADS = 3


def shipped() -> tuple[PodPolicy, ...]:
    """The recommended policies and the library."""
    files = [p for folder in ("recommended", "library") for p in sorted((ROOT / "policies" / folder).glob("*.yaml"))]
    return load_policies([(str(path), path.read_bytes()) for path in files]).policies.all


@dataclass(frozen=True, slots=True)
class Bench:
    """The pods, what the API server makes of each alone, and the facts that the webhook would have."""

    cluster: Cluster
    facts: ClusterFacts
    given: list[Object]
    stored: list[Object | str]
    """Each pod without any policy; text where the server refuses it."""
    compiled: list[tuple[PodPolicy, CompiledMutation]] = field(default_factory=list)


def send(cluster: Cluster, pod: Object, mark: str) -> Object | str:
    """The pod as the server would store it, or its refusal."""
    meta = {**pod["metadata"], "labels": {**pod["metadata"].get("labels", {}), MARK: mark}}
    try:
        return cluster.create({**pod, "metadata": meta}, dryRun="All")
    except ApiError as error:
        return f"{error.status} {error}"


def made(cluster: Cluster, item: Object) -> None:
    try:
        cluster.create(item)
    except ApiError as error:
        if error.status != 409:
            raise


def bind(compiled: CompiledMutation) -> list[Object]:
    """The manifests, bound to pods that carry the policy's name only."""
    policy, binding = compiled.manifests
    only = {"objectSelector": {"matchLabels": {MARK: compiled.policy}}}
    return [policy, {**binding, "spec": {**binding["spec"], "matchResources": only}}]


@pytest.fixture(scope="module")
def bench(whole_cluster: Cluster) -> Bench:
    whole_cluster.needs_own("policies for the whole cluster")
    return prepare(whole_cluster, PODS)


def prepare(cluster: Cluster, pods: int) -> Bench:
    """Everything made and in force."""
    tag, chance = uuid.uuid4().hex[:5], Random(SEED)
    items = compiled_pods.world(tag, int(time.time()))
    made(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trimtab-system"}})
    for item in items:
        made(cluster, item)
    for prefix in PREFIXES:
        for account in ("default", "ci-build"):
            meta = {"name": account, "namespace": f"{prefix}-{tag}"}
            made(cluster, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    snapshot = load_snapshot(
        [("world.json", msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": items}))]
    )
    assert not snapshot.mistakes
    actual_pods = [compiled_pods.pod(chance, f"pod-{number}", tag) for number in range(pods)]
    cluster.eventually(lambda: not isinstance(send(cluster, actual_pods[0], "none"), str) or True, what="pods")
    with ThreadPoolExecutor(THREADS) as pool:
        stored = list(pool.map(lambda pod: send(cluster, pod, "none"), actual_pods))
    everything = shipped()
    compiled = [(p, compile_mutating_policy(p, (p,), with_parameters=True)) for p in everything]
    for _, one in compiled:
        for item in bind(one) if one.manifests else ():
            cluster.apply(item)
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": f"shared-{tag}"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }

    def in_force() -> bool:
        answer = send(cluster, probe, "labels-for-cost-allocation")
        return not isinstance(answer, str) and "cost-center" in answer["metadata"]["labels"]

    cluster.eventually(in_force, what="the last policy in force")
    time.sleep(2)  # all policies are read at once; their parameters' informers start then
    return Bench(cluster, from_snapshot(snapshot.snapshot), actual_pods, stored, compiled)


def webhook_pod(bench: Bench, policy: PodPolicy, stored: Object) -> Object:
    """What the webhook makes of a pod that the server's plugins have seen."""
    received = {"apiVersion": "v1", "kind": "Pod", **{key: stored[key] for key in ("metadata", "spec")}}
    meta = {k: v for k, v in stored["metadata"].items() if k not in ("uid", "creationTimestamp", "managedFields")}
    received = {**received, "metadata": meta}
    before = msgspec.convert(without_nulls(received), Pod)
    decision = decide(before, Policies.from_policies(policy), bench.facts, meta["namespace"])
    patched: Object = jsonpatch.apply_patch(received, list(diff_pods(before, decision.pod)))
    return patched


def normal(pod: Object) -> Object:
    """The pod without what names the moment or the one who changed it, quantities by value."""
    meta = pod["metadata"]
    notes = {
        key: text
        for key, text in meta.get("annotations", {}).items()
        if not key.startswith(COMPILED_PREFIX) and key not in ("trimtab.dev/changed", "trimtab.dev/written-requests")
    }
    labels = {key: text for key, text in meta.get("labels", {}).items() if key != MARK}
    spec = {**pod["spec"]}
    for part in ("containers", "initContainers"):
        if part in spec:
            spec[part] = [{**c, "resources": _by_value(c.get("resources", {}))} for c in spec[part]]
    return {"annotations": notes, "labels": labels, "spec": spec}


def _by_value(resources: Object) -> Object:
    return {
        side: {name: quantity.scheduler_value(name, text) for name, text in amounts.items()}
        for side, amounts in resources.items()
        if side in ("requests", "limits")
    }


def compare(bench: Bench, policy: PodPolicy, number: int) -> tuple[str, Object | str, Object | str]:
    """(verdict, pod by the compiled policy, pod by the webhook) of one pod."""
    alone = bench.stored[number]
    by_policy = send(bench.cluster, bench.given[number], policy.name)
    if isinstance(alone, str) and isinstance(by_policy, str):
        return "refused anyway", by_policy, alone
    # What the server alone refuses (overhead without a class) it refuses after webhooks too, which see it as sent.
    observation = bench.given[number] if isinstance(alone, str) else alone
    expected_webhook_pod = webhook_pod(bench, policy, observation)
    by_webhook = (
        alone
        if normal(expected_webhook_pod) == normal(observation)
        else send(bench.cluster, expected_webhook_pod, "none")
    )
    if isinstance(by_policy, str):
        return "refused", by_policy, by_webhook
    if isinstance(by_webhook, str):
        return "webhook refused", by_policy, by_webhook
    same = normal(by_policy) == normal(by_webhook)
    changed = normal(by_policy) != normal(observation)
    return ("equal, changed" if changed else "equal") if same else "differs", by_policy, by_webhook


def reason_for(bench: Bench, policy: PodPolicy, number: int) -> str:
    """The code of the difference that the pod and its namespace make us expect; empty: none."""
    pod, stored = bench.given[number], bench.stored[number]
    stored = pod if isinstance(stored, str) else stored
    actions = policy.spec.actions
    sizes = actions.requests is not None or actions.limits is not None
    if pod["metadata"]["namespace"].startswith("ruled-") and sizes:
        return "namespace-rules"
    before = msgspec.convert(without_nulls({key: stored[key] for key in ("metadata", "spec")}), Pod)
    decision = decide(before, Policies.from_policies(policy), bench.facts, pod["metadata"]["namespace"])
    if any(
        kept_field.reason.code.name in ("contradiction", "runtimeclass-conflict") for kept_field in decision.fields_kept
    ):
        return "own-contradiction"
    containers = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]
    if any(c.get("resources", {}).get("requests", {}).get("cpu") == "0" for c in containers) and actions.limits:
        return "zero-request"
    if "kubectl.kubernetes.io/last-applied-configuration" in pod["metadata"].get("annotations", {}):
        return "applied"
    overrides = actions.runtime_class is not None and actions.runtime_class.override
    if overrides and "runtimeClassName" in pod["spec"]:
        return "old-class"
    return "named-class" if actions.overhead is not None and "runtimeClassName" in pod["spec"] else ""


def test_two_thirds_of_the_shipped_policies_compile_and_the_others_say_why(bench: Bench) -> None:
    refused = {policy.name: one.problem for policy, one in bench.compiled if one.problem}
    assert all(problem.startswith("spec.") and ": " in problem for problem in refused.values())
    assert 3 * len(refused) <= len(bench.compiled)
    print(f"compiled={len(bench.compiled) - len(refused)} refused={len(refused)}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs of pods and compiled policies."""

    verdicts: Counter[str]
    changed: dict[str, int]
    """Policy → pods that it changes as the webhook does."""
    unexplained: list[tuple[str, int, str, Object | str, Object | str]]
    """(policy, number of the pod, verdict, pod by the compiled policy, pod by the webhook)."""

    @property
    def unequal_pods(self) -> set[int]:
        """The pods that differ under any policy for a reason that is not listed."""
        return {number for _, number, *_ in self.unexplained}


def compare_all(bench: Bench) -> Comparison:
    """Every pod under every compiled policy."""
    codes = {difference.code for difference in DIFFERENCES}
    verdicts: Counter[str] = Counter()
    unexplained = []
    changed: dict[str, int] = defaultdict(int)
    for policy, one in bench.compiled:
        if not one.manifests:
            continue
        numbers = range(len(bench.given))
        with ThreadPoolExecutor(THREADS) as pool:
            objects = list(pool.map(lambda number: compare(bench, policy, number), numbers))  # noqa: B023 - done here
        for number, (verdict, by_policy, by_webhook) in enumerate(objects):
            code = reason_for(bench, policy, number) if verdict == "differs" else ""
            verdicts[f"{verdict} ({code})" if code else verdict] += 1
            changed[policy.name] += verdict == "equal, changed"
            if verdict in ("refused", "webhook refused") or (verdict == "differs" and code not in codes):
                unexplained.append((policy.name, number, verdict, by_policy, by_webhook))
    return Comparison(verdicts, changed, unexplained)


def test_every_pod_is_the_webhooks_or_differs_for_a_listed_reason(bench: Bench) -> None:
    result = compare_all(bench)
    print(dict(result.verdicts), dict(result.changed))
    assert not [pair[:3] for pair in result.unexplained], result.unexplained[:1]
    assert all(result.changed.values())


def _sized(cluster: Cluster, namespace: str, name: str = "fuzz") -> Callable[[], Object]:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"pod-template-hash": "7d9f"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api-7d9f", "uid": "u", "controller": True}
            ],
        },
        "spec": {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": "i"}]},
    }

    def resources() -> Object:
        answer = send(cluster, pod, "burstable-by-default")
        assert not isinstance(answer, str), answer
        requests: Object = answer["spec"]["containers"][0]["resources"].get("requests", {})
        return requests

    return resources


@pytest.fixture
def parameters(bench: Bench) -> Iterator[Callable[[dict[str, str]], None]]:
    """Replaces the parameters of one namespace."""
    namespace = next(pod["metadata"]["namespace"] for pod in bench.given if pod["metadata"]["namespace"][:4] == "team")
    before = bench.cluster.get("ConfigMap", "trimtab-requests", namespace)["data"]

    def put(data: dict[str, str]) -> None:
        bench.cluster.delete("ConfigMap", "trimtab-requests", namespace)
        meta = {"name": "trimtab-requests", "namespace": namespace}
        bench.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

    put.__dict__["namespace"] = namespace
    yield put
    put(before)


def test_requests_are_set_without_any_process_until_their_end(bench: Bench, parameters: Any) -> None:
    """Neither recommender nor webhook runs here: the last parameters hold, and end by the server's own time."""
    request, later = _sized(bench.cluster, parameters.namespace), time.gmtime(time.time() + 25)
    rules = "until=2099-01-01T00:00:00Z limitranges=0 quotas=0 hpas= vpas="
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", later)
    parameters({"_namespace": rules, "Deployment.api.main": f"until={end} cpu=333 memory=209715200"})
    bench.cluster.eventually(lambda: request() == {"cpu": "333m", "memory": "200Mi"}, what="the parameters", within=20)
    bench.cluster.eventually(
        lambda: request() == {"cpu": "50m", "memory": "128Mi"}, what="their end", within=60, every=1
    )
    assert time.gmtime() >= later


def test_half_a_mebibyte_of_parameters_stays_within_the_cost_limits(bench: Bench, parameters: Any) -> None:
    entry = "until=2099-01-01T00:00:00Z cpu=251 memory=209715200 cpu.p5=1 cpu.p50=2 cpu.p95=3 cpu.p99=4 memory.p5=5"
    entry += " memory.p50=100000000 memory.p90=100000000 memory.p95=100000000 memory.p99=100000000 memory.max=200000000"
    data = {f"Deployment.workload-{number:05}.main": entry for number in range(1999)}
    data |= {
        "_namespace": "until=2099-01-01T00:00:00Z limitranges=0 quotas=0 hpas= vpas=",
        "Deployment.api.main": entry,
    }
    data["padding"] = "x" * (512 * 1024 - sum(len(key) + len(text) for key, text in data.items()))
    parameters(data)
    request = _sized(bench.cluster, parameters.namespace)
    bench.cluster.eventually(lambda: request() == {"cpu": "251m", "memory": "200Mi"}, what="the large parameters")


GARBAGE = (
    "",
    " ",
    "until=",
    "until=2099-01-01T00:00:00Z",
    "until=2099-01-01T00:00:00Z cpu=",
    "cpu=5",
    "until=2099-01-01T00:00:00Z cpu=999999999999999999999 memory=99999999999999999999",
    "\x00\x01",
    "ü" * 400,
    "until=2099-01-01T00:00:00Z cpu=-5 memory=1e9",
    "until=2099-01-01T00:00:00Z cpu=999999999999999 memory=999999999999999",
    "until=2099-01-01T00:00:00Z cpu=0 memory=0 memory.floor=0",
    "until=9999 cpu=1 memory=1",
    "until=2099-01-01T00:00:00Z cpu=1 cpu=2 memory=1 memory.floor=999999999999999",
    "a=b=c=d " * 5000,
    "until=" * 9000,
    "until=2099-01-01T00:00:00Z limitranges=0 quotas=0 hpas=" + "x," * 20000 + " vpas=",
    "until=2099-01-01T00:00:00Z limitranges=0 quotas=0 hpas=Deployment.api vpas=Deployment.api",
)
"""What a tenant might write into its ConfigMap, were it allowed to."""


def test_no_parameters_of_a_tenant_refuse_a_pod_or_break_the_server(bench: Bench, parameters: Any) -> None:
    chance = Random(SEED)
    names = [p.name for p, one in bench.compiled if one.manifests and "paramKind" in one.manifests[0]["spec"]]
    mine = [n for n, pod in enumerate(bench.given) if pod["metadata"]["namespace"] == parameters.namespace]
    tried = 0
    for _ in range(24):
        keys = ("_namespace", "Deployment.api.main", "Deployment.hpa.istio-proxy", "StatefulSet.db.main", "x")
        parameters({key: chance.choice(GARBAGE) for key in keys if chance.random() < 0.9})
        time.sleep(0.1)
        for number in chance.sample([n for n in mine if not isinstance(bench.stored[n], str)], 8):
            for name in names:
                answer = send(bench.cluster, bench.given[number], name)
                assert not isinstance(answer, str), (name, number, answer)
                tried += 1
    print(f"tried={tried}")
    assert bench.cluster.api.request("GET", "/readyz") == "ok"
