"""One world of the laws of outcomes: policies and a Deployment, made with us and without, and what does not hold."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import yaml

from tests.committing import print_committed
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e import laws
from tests.e2e.laws import APP, Object
from tests.e2e.ours import Ours
from tests.property import strategies as some
from trimtab.cluster import quantity
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

PLACES = ("nodeSelector[", "nodeAffinity.", "tolerations[")
OWN = f"app={APP}"
OF_NAMESPACE = {"team": "a"}
"""The namespaces' label that placements may take a value from."""
PATIENCE = 90
"""Seconds on an idle machine until all controllers have made what they may."""


class World:
    """A Deployment in two namespaces. The second attempt gives our process more time to hear of what stands around."""

    def __init__(self, ours: Ours, number: int, attempt: int = 0) -> None:
        self.ours, self.cluster, self.attempt = ours, ours.cluster, attempt
        self.name = f"law{number}" + ("-again" if attempt else "")
        drawn, self.case = laws.draw_world(number)
        self.documents = laws.documents(drawn, self.name)
        loaded = load_policies([(f"{d['metadata']['name']}.json", json.dumps(d).encode()) for d in self.documents])
        assert not loaded.mistakes
        self.policies = loaded.policies
        self.inside: dict[bool, Cluster] = {}
        self.is_made = self.ran_without_us = self.was_changed = False

    def begin(self) -> None:
        for with_us in (False, True):
            self._make_namespace(with_us)
        if self.case.usage:
            self._tell_usage()
        self.cluster.apply(self.documents)
        own = {document["metadata"]["name"] for document in self.documents}
        self.cluster.eventually(lambda: own <= set(self.ours.in_force), what="policies in force", every=0.3)
        time.sleep(5 if self.attempt else 1)  # what was made last is known to our process, too
        self.is_made = self._make_deployments()

    def _tell_usage(self) -> None:
        usage = {f"{self._namespace(True)}/Deployment/{APP}": self.case.usage}
        metadata = {"name": self._usage_name, "namespace": self.ours.namespace, "labels": {RECOMMENDATIONS_LABEL: "v1"}}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {PAYLOAD_KEY: encode(usage)}}
        )

    @property
    def _usage_name(self) -> str:
        return f"trimtab-recommendations-{self.name}"

    def _namespace(self, with_us: bool) -> str:
        return f"{self.name}-{'ours' if with_us else 'plain'}"

    def _make_namespace(self, with_us: bool) -> None:
        name = self._namespace(with_us)
        inside = Cluster(self.cluster.kubeconfig, name, self.cluster.plane)
        inside.api = self.cluster.api  # knows all kinds already
        labels = {"law": "ours" if with_us else "plain", **OF_NAMESPACE}
        inside.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.inside[with_us] = inside
        inside.eventually(lambda: inside.get("ServiceAccount", "default"), what="the default service account")
        self.case.settle(inside)

    def _make_deployments(self) -> bool:
        """Is it a Deployment at all? What the server does not take is made in neither namespace."""
        try:
            for inside in self.inside.values():
                inside.create(self.case.deployment(inside.namespace))
        except ApiError as error:
            if error.status != 422:
                raise
            return False
        return True

    # ── what does not hold ──

    def broken(self) -> list[str]:
        """Each with the case and what our process was asked with."""
        if not self.is_made:
            return []
        self._settle()
        result = self._held_against()
        result += [] if self._is_idempotent() else ["-o yaml again"]
        self.ran_without_us = _all_run(self._pods(False))
        return [f"{what}: {self._words()}" for what in result]

    def _settle(self) -> None:
        """Every controller has made what it may, and the scheduler has looked at each pod; where it is worse with us,
        some time more."""
        unsettled = [False, True]

        def all_settled() -> bool:
            unsettled[:] = [with_us for with_us in unsettled if not self._is_settled(with_us)]
            return not unsettled

        try:
            self.cluster.eventually(all_settled, within=PATIENCE, every=0.5, what="all settled")
        except AssertionError as error:
            raise AssertionError([self._state(with_us) for with_us in unsettled] + [self._words()]) from error
        try:
            self.cluster.eventually(lambda: not self._held_against(), within=15, every=0.5)
        except AssertionError:
            return  # `broken` tells what

    def _is_settled(self, with_us: bool) -> bool:
        pods = self._pods(with_us)
        if not all(any(c["type"] == "PodScheduled" for c in pod["status"].get("conditions", ())) for pod in pods):
            return False
        if len(pods) == self.case.replicas:
            return True
        conditions = self.inside[with_us].get("Deployment", APP).get("status", {}).get("conditions", ())
        return any(c["type"] == "ReplicaFailure" and c["status"] == "True" for c in conditions)

    def _state(self, with_us: bool) -> list[Any]:
        """What its controllers have done so far, for the message of a failure."""
        inside = self.inside[with_us]
        statuses = [inside.get("Deployment", APP).get("status"), *(rs["status"] for rs in inside.list("ReplicaSet"))]
        pods = [pod["status"].get("conditions") for pod in self._pods(with_us)]
        return [inside.namespace, statuses, pods, [event["message"] for event in inside.list("Event")]]

    def _pods(self, with_us: bool) -> list[Object]:
        return self.inside[with_us].list("Pod", selector=OWN)

    def _held_against(self) -> list[str]:
        plain, with_us, replicas = self._pods(False), self._pods(True), self.case.replicas
        texts = []
        if len(plain) == replicas > len(with_us):
            texts.append(f"{len(with_us)} of {replicas} replicas were made")
        if len(plain) == replicas and _all_run(plain) and not all(map(_is_scheduled, with_us)):
            texts.append("a pod has no node")
        if plain and with_us:
            texts += self._limits_below(plain[0], with_us[0])
            texts += self._half_placed(with_us[0])
        return texts

    def _limits_below(self, plain: Object, with_us: Object) -> Iterator[str]:
        for was, now in zip(plain["spec"]["containers"], with_us["spec"]["containers"], strict=True):
            before, after = (c.get("resources", {}).get("limits", {}).get("memory") for c in (was, now))
            peak = self.case.peaks.get(now["name"])
            if after in (None, before) or peak is None:
                continue
            if quantity.compare_quantities(after, peak) <= 0:
                yield f"a memory limit of {after} below the peak {peak}"

    def _half_placed(self, pod: Object) -> Iterator[str]:
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

    def _is_idempotent(self) -> bool:
        text = yaml.safe_dump(self.case.deployment(self._namespace(True)), sort_keys=False)
        facts = self._facts()
        once = print_committed(text, self.policies, facts)
        self.was_changed = once != text
        return print_committed(once, self.policies, facts) == once

    def _words(self) -> str:
        return json.dumps(
            {
                "case": self.case.manifest,
                "rules": self.case.rules,
                "peaks": self.case.peaks,
                "policies": self.documents,
                "pods without us": len(self._pods(False)),
                "spec with us": [pod["spec"] for pod in self._pods(True)[:1]],
            }
        )

    # ── the end ──

    def end(self) -> None:
        """No pod of it is on a node any more on return."""
        for document in self.documents:
            self.cluster.delete("PodPolicy", document["metadata"]["name"])
        for inside in self.inside.values():
            inside.delete("Deployment", APP)
        self.cluster.eventually(lambda: not any(map(self._clear, self.inside.values())), within=60, every=0.3)
        if self.case.usage:
            self.cluster.delete("ConfigMap", self._usage_name, self.ours.namespace)
        for inside in self.inside.values():
            self.cluster.delete("Namespace", inside.namespace)

    def _clear(self, inside: Cluster) -> bool:
        """Deletes what is left of the Deployment; was there anything?"""
        left = [(kind, each["metadata"]["name"]) for kind in ("ReplicaSet", "Pod") for each in inside.list(kind)]
        for kind, name in left:
            inside.delete(kind, name, grace=0)
        return bool(left)


def _is_scheduled(pod: Object) -> bool:
    return "nodeName" in pod["spec"]


def _all_run(pods: list[Object]) -> bool:
    return bool(pods) and all(map(_is_scheduled, pods))
