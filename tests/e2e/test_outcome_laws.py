"""The laws of outcomes on the real API server, controllers and scheduler: what ran without us runs with us.

Generated policies, pods, LimitRanges, quotas, VPAs and known peaks. Each Deployment is made twice, in a namespace
without us and in one with us.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.controlplane import autoscaler
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e import laws, vpa
from tests.e2e.laws import SLOTS, Case
from tests.e2e.ours import Ours, following, install_crd
from tests.property import strategies as some
from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.preview import preview_admission
from trimtab.cli.manifests import rewrite_manifests
from trimtab.cluster import quantity, yaml_documents
from trimtab.cluster.reason import Reason
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, encode
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.listing import list_kinds
from trimtab.kube.resources import list_sources
from trimtab.policy.actions.placement import CompiledPlacement, missing_part
from trimtab.policy.actions.placement_fields import resolve_labels
from trimtab.policy.cluster_facts import ALL_KINDS, ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import PodContext

WORLDS = int(os.environ.get("LAW_WORLDS", "60"))
"""Of `SLOTS` Deployments each."""
PLACES = ("nodeSelector[", "nodeAffinity.", "tolerations[")
OWN = f"app={laws.APP}"
OF_NAMESPACE = {"team": "a"}
"""The namespaces' label that placements may take a value from."""
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as found, vpa.webhook() as hook:
        install_crd(found.cluster, vpa.definition())
        laws.surroundings(found.cluster)
        with_us = {"namespaceSelector": {"matchLabels": {"law": "ours"}}}
        vpa.registered(found.cluster, "z-vpa", hook, **with_us)
        found.serves(found.cluster, "b-ours", **with_us)
        found.cluster.apply(autoscaler.status({"law": 3}))  # no group may get its first node
        yield found


@pytest.mark.slow
@settings(
    max_examples=WORLDS, phases=[Phase.generate], deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(some.documents(modes=("apply",)), st.tuples(*[laws.cases(slot) for slot in range(SLOTS)]))
def test_what_ran_without_us_runs_with_us(ours: Ours, drawn: list[Any], cases: tuple[Case, ...]) -> None:
    world = World(ours, cases, drawn)
    try:
        world.begin()
        assert world.broken() == []
    finally:
        world.end()


def test_enough_of_them_ran_and_were_changed() -> None:
    """Runs after the law: was it worth looking at?"""
    if not SEEN:
        pytest.skip("the law was left out")
    print(dict(SEEN))
    assert SEEN["deployments"] == WORLDS * SLOTS
    assert SEEN["ran without us"] > WORLDS * SLOTS // 10
    assert SEEN["changed"] > WORLDS * SLOTS // 10


class World:
    """One set of policies, and a Deployment in each slot, with us and without."""

    def __init__(self, ours: Ours, cases: tuple[Case, ...], drawn: list[Any]) -> None:
        self.ours, self.cluster, self.cases = ours, ours.cluster, cases
        self.name = f"law{SEEN['worlds']}"
        SEEN["worlds"] += 1
        self.documents = laws.documents(drawn, self.name)
        loaded = load_policies([(f"{d['metadata']['name']}.json", json.dumps(d).encode()) for d in self.documents])
        assert not loaded.mistakes
        self.policies = loaded.policies
        self.inside: dict[str, Cluster] = {}

    def begin(self) -> None:
        self._tell()
        self.cluster.apply(self.documents)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._namespace, [(case, with_us) for case in self.cases for with_us in (False, True)]))
        own = {document["metadata"]["name"] for document in self.documents}
        self.cluster.eventually(lambda: own <= set(self.ours.in_force), what="policies in force")
        time.sleep(1)  # what was made last is known to our process, too
        self.made = [self._made(case) for case in self.cases]

    def _tell(self) -> None:
        usage = {f"{self._of(case, True)}/Deployment/{laws.APP}": case.usage for case in self.cases if case.usage}
        metadata = {"name": f"trimtab-recommendations-{self.name}", "namespace": self.ours.namespace,
                    "labels": {RECOMMENDATIONS_LABEL: "v1"}}  # fmt: skip
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: encode(usage)}}
        )

    def _of(self, case: Case, with_us: bool) -> str:
        return f"{self.name}-{case.slot}-{'ours' if with_us else 'plain'}"

    def _namespace(self, given: tuple[Case, bool]) -> None:
        case, with_us = given
        name = self._of(case, with_us)
        inside = self.cluster.in_namespace(name)
        labels = {"law": "ours" if with_us else "plain", **OF_NAMESPACE}
        self.cluster.patch("Namespace", name, {"metadata": {"labels": labels}})
        case.settle(inside)
        self.inside[name] = inside

    def _made(self, case: Case) -> bool:
        """Is it a Deployment at all? What the server does not take is made in neither namespace."""
        SEEN["deployments"] += 1
        try:
            for with_us in (False, True):
                name = self._of(case, with_us)
                self.inside[name].create(case.deployment(name))
        except ApiError as error:
            if error.status != 422:
                raise
            return False
        return True

    def broken(self) -> list[str]:
        """What does not hold, each with the case and what our process was asked with."""
        made = [case for case, is_made in zip(self.cases, self.made, strict=True) if is_made]
        self._settle(made)
        found = [f"{what}: {self._words(case)}" for case in made for what in self._held_against(case)]
        facts = self._facts()
        return found + [f"-o yaml again: {self._words(case)}" for case in made if not self._is_idempotent(case, facts)]

    def _settle(self, made: list[Case]) -> None:
        """Every controller has made what it may, and the scheduler has looked at each pod; where it is worse with us,
        some time more."""
        names = [self._of(case, with_us) for case in made for with_us in (False, True)]
        unsettled = names

        def all_settled() -> bool:
            nonlocal unsettled
            unsettled = [name for name in unsettled if not self._is_settled(name)]
            return not unsettled

        try:
            self.cluster.eventually(all_settled, within=60, every=0.5, what="all settled")
        except AssertionError as error:
            raise AssertionError([self._state(name) for name in unsettled]) from error
        try:
            self.cluster.eventually(lambda: not any(self._held_against(case) for case in made), within=15, every=0.5)
        except AssertionError:
            return  # `broken` tells what

    def _is_settled(self, namespace: str) -> bool:
        pods, wanted = self._pods(namespace), self._case(namespace).replicas
        conditions = self.inside[namespace].get("Deployment", laws.APP).get("status", {}).get("conditions", ())
        failed = any(c["type"] == "ReplicaFailure" and c["status"] == "True" for c in conditions)
        looked_at = all(any(c["type"] == "PodScheduled" for c in pod["status"].get("conditions", ())) for pod in pods)
        return looked_at and (failed or len(pods) == wanted)

    def _state(self, namespace: str) -> list[Any]:
        """What its controllers have done so far, for the message of a failure."""
        inside = self.inside[namespace]
        statuses = [
            inside.get("Deployment", laws.APP).get("status"),
            *(rs["status"] for rs in inside.list("ReplicaSet")),
        ]
        pods = [pod["status"].get("conditions") for pod in self._pods(namespace)]
        return [namespace, statuses, pods, [event["message"] for event in inside.list("Event")]]

    def _case(self, namespace: str) -> Case:
        return next(case for case in self.cases if self._of(case, namespace.endswith("ours")) == namespace)

    def _pods(self, namespace: str) -> list[dict[str, Any]]:
        return self.inside[namespace].list("Pod", selector=OWN)

    def _held_against(self, case: Case) -> list[str]:
        plain, with_us = (self._pods(self._of(case, us)) for us in (False, True))
        found = []
        if len(plain) == case.replicas > len(with_us):
            found.append(f"{len(with_us)} of {case.replicas} replicas were made")
        if len(plain) == case.replicas and all(map(_is_scheduled, plain)) and not all(map(_is_scheduled, with_us)):
            found.append("a pod has no node")
        if plain and with_us:
            found += self._limits_below(case, plain[0], with_us[0])
            found += self._half_placed(with_us[0])
        return found

    def _limits_below(self, case: Case, plain: Any, with_us: Any) -> Iterator[str]:
        for was, now in zip(plain["spec"]["containers"], with_us["spec"]["containers"], strict=True):
            before, after = (c.get("resources", {}).get("limits", {}).get("memory") for c in (was, now))
            peak = case.peaks.get(now["name"])
            if (
                after is not None
                and after != before
                and peak is not None
                and quantity.compare_quantities(after, peak) <= 0
            ):
                yield f"a memory limit of {after} below the peak {peak}"

    def _half_placed(self, pod: Any) -> Iterator[str]:
        text = pod["metadata"].get("annotations", {}).get("trimtab.dev/changed", "{}")
        by = json.loads(text).get("by", {}) if text.startswith("{") else {}
        namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
        stored = some.read({**pod, "metadata": {"labels": labels}})
        subject = PodContext(pod=stored, namespace=namespace, facts=ClusterFacts(namespaces={namespace: OF_NAMESPACE}))
        for policy in self.policies.all:
            placing = any(name.startswith(PLACES) for name in by.get(policy.name, ()))
            if not placing or policy.spec.actions.placement is None:
                continue
            settings = resolve_labels(policy.spec.actions.placement, subject)
            if isinstance(settings, Reason) or missing_part(CompiledPlacement(settings), stored.spec) is not None:
                yield f"half of {policy.name}'s placement"

    def _facts(self) -> ClusterFacts:
        client = connect_to_cluster(str(self.cluster.kubeconfig))
        try:
            kinds = list_sources((*sorted(ALL_KINDS), "ConfigMap"))
            return from_snapshot(list_kinds(client, kinds).snapshot, own_namespace=self.ours.namespace)
        finally:
            client.close()

    def _is_idempotent(self, case: Case, facts: ClusterFacts) -> bool:
        text = yaml.safe_dump(case.deployment(self._of(case, True)), sort_keys=False)
        once = self._printed(text, facts)
        SEEN["changed"] += once != text
        return self._printed(once, facts) == once

    def _printed(self, text: str, facts: ClusterFacts) -> str:
        contents = [("it.yaml", text.encode())]
        read = yaml_documents.read_documents(*contents[0]).documents
        found = [
            each for document in read for each in read_templates(document) if isinstance(each, PodTemplateLocation)
        ]
        made = [preview_admission(each.pod, self.policies, each.with_owners(facts), each.namespace) for each in found]
        return rewrite_manifests(contents, list(zip(found, made, strict=True)))

    def _words(self, case: Case) -> str:
        plain = self._pods(self._of(case, False))
        with_us = [pod["spec"] for pod in self._pods(self._of(case, True))[:1]]
        return json.dumps({
            "case": case.manifest, "rules": case.rules, "peaks": case.peaks, "policies": self.documents,
            "pods without us": len(plain), "spec with us": with_us,
        })  # fmt: skip

    def end(self) -> None:
        SEEN["ran without us"] += sum(
            bool(pods) and all(map(_is_scheduled, pods))
            for pods in (
                self._pods(self._of(case, False)) for case in self.cases if self._of(case, False) in self.inside
            )
        )
        for kind in ("Deployment", "ReplicaSet", "Pod"):
            for inside in self.inside.values():
                for found in inside.list(kind, selector=OWN):
                    inside.delete(kind, found["metadata"]["name"], grace=0)
        self.cluster.eventually(lambda: not self.cluster.list("Pod", everywhere=True, selector=OWN), within=60)
        for document in self.documents:
            self.cluster.delete("PodPolicy", document["metadata"]["name"])
        self.cluster.delete("ConfigMap", f"trimtab-recommendations-{self.name}", self.ours.namespace)
        for inside in self.inside.values():
            self.cluster.delete("Namespace", inside.namespace)
            inside.clean_up()


def _is_scheduled(pod: dict[str, Any]) -> bool:
    return "nodeName" in pod["spec"]
