"""What becomes of this manifest, with these policies, in this world?

A manifest → the pod its controller would make → the stored pod, or the server's refusal, and what was decided on the
way. Pure but for reading the shipped files.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from trimtab.admission.apiserver.admission_chain import run_admission_chain
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.decide import Decision, decide
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import PodPolicy, Policies

SHIPPED = Path(__file__).parents[2] / "policies"
HASH = "6c5f4d8b97"
"""What a ReplicaSet's pods carry as pod-template-hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pod on its way through the server."""

    made: Pod
    namespace: str
    outcome: PodAdmitted | PodRejected
    decisions: tuple[Decision, ...]
    """One per call of the webhook; none where the server refused before it."""
    seen: tuple[Pod, ...]
    """The pod as each call was shown it."""

    @property
    def because(self) -> set[str]:
        """Codes of the first call, and of what a second one changed; `no-policy` where none matched."""
        if not self.decisions:
            return set()
        first = self.decisions[0]
        codes = {c.reason.code.name for d in self.decisions for c in d.changes}
        codes |= {left.reason.code.name for left in first.fields_kept}
        codes |= {reason.code.name for reason in (first.skipped, first.denied) if reason is not None}
        return codes or (set() if first.matched else {"no-policy"})

    @property
    def would(self) -> set[str]:
        """Fields that policies in mode `warn` or `audit` would change."""
        return {change.field for d in self.decisions for change in d.would}


@cache
def shipped(folder: str = "*") -> tuple[PodPolicy, ...]:
    """The policies of one folder, or of all."""
    files = sorted(p for p in SHIPPED.glob(f"{folder}/*.yaml") if p.parent.name != "examples")
    loaded = load_policies((str(p.relative_to(SHIPPED)), p.read_bytes()) for p in files)
    assert loaded.mistakes == ()
    return loaded.policies.all


@lru_cache(maxsize=256)
def world(text: bytes = b"") -> ClusterFacts:
    """Facts of a few documents; no text: an empty cluster."""
    reading = build_snapshot(documents(text)) if text.strip() else build_snapshot(())
    assert reading.mistakes == ()
    facts = from_snapshot(reading.snapshot)
    assert facts.problems == ()
    return facts


def documents(text: bytes) -> tuple[Document, ...]:
    parse_result = read_documents("text", text)
    assert parse_result.mistakes == ()
    return parse_result.documents


def run(
    pod: Pod, namespace: str, policies: Iterable[PodPolicy], facts: ClusterFacts, *, second_call_comes: bool = True
) -> Run:
    """The pod through both passes of the server."""
    decisions: list[Decision] = []
    shown: list[Pod] = []
    checked = Policies.from_policies(*policies)

    def webhook(seen: Pod) -> Pod:
        shown.append(seen)
        decisions.append(decide(seen, checked, facts, namespace))
        return decisions[-1].pod

    outcome = run_admission_chain(pod, facts, namespace, webhook, second_call_comes=second_call_comes)
    denied = next((decision.denied for decision in decisions if decision.denied is not None), None)
    if denied is not None:
        outcome = PodRejected(403, "trimtab", f"trimtab: {denied}")
    return Run(made=pod, namespace=namespace, outcome=outcome, decisions=tuple(decisions), seen=tuple(shown))


def pods(text: bytes) -> Iterator[tuple[Pod, str]]:
    """The pod of each manifest that makes pods, with its namespace."""
    for document in documents(text):
        item = _made(document.value)
        if item is not None:
            pod = msgspec.convert(item, Pod)
            yield pod, pod.metadata.namespace or "default"


def _made(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    match manifest["kind"]:
        case "Pod":
            return dict(manifest)
        case "CronJob":
            job = manifest["spec"]["jobTemplate"]
            return _of(manifest, job["spec"]["template"], "Job", suffix="-29400000")
        case "Deployment":
            return _of(manifest, manifest["spec"]["template"], "ReplicaSet", suffix=f"-{HASH}")
        case "StatefulSet" | "DaemonSet" | "Job" as kind:
            return _of(manifest, manifest["spec"]["template"], kind, suffix="")
    return None


def _of(manifest: Mapping[str, Any], template: Mapping[str, Any], owner: str, *, suffix: str) -> dict[str, Any]:
    """As the controller of that kind makes it."""
    metadata = dict(template.get("metadata") or {})
    name = manifest["metadata"]["name"] + suffix
    metadata["generateName"] = f"{name}-"
    metadata["namespace"] = manifest["metadata"].get("namespace", "default")
    metadata["ownerReferences"] = [{"kind": owner, "name": name, "controller": True}]
    if owner == "ReplicaSet":
        metadata["labels"] = {**metadata.get("labels", {}), "pod-template-hash": HASH}
    spec = dict(template["spec"])
    if owner == "DaemonSet":
        spec["affinity"] = _on_its_node(spec.get("affinity") or {})
    return {"metadata": metadata, "spec": spec}


def _on_its_node(affinity: Mapping[str, Any]) -> dict[str, Any]:
    """The DaemonSet controller binds each pod to its node (util.ReplaceDaemonSetPodNodeNameNodeAffinity)."""
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node = {**affinity.get("nodeAffinity", {}), "requiredDuringSchedulingIgnoredDuringExecution": required}
    return {**affinity, "nodeAffinity": node}
