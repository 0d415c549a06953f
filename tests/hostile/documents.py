"""Policies, pools and node annotations that grow in one direction each, as whoever may write them could send them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """One direction in which a document may grow."""

    name: str
    make: Callable[[int], bytes]
    """The review of it."""
    most: int
    """The largest n that is looked into, or close to it."""


def asked(group: str, resource: str, made: Json) -> bytes:
    """The review of an object that is about to be created."""
    request = {
        "uid": "u-1",
        "resource": {"group": group, "version": "v1", "resource": resource},
        "namespace": "trimtab-system",
        "operation": "CREATE",
        "object": made,
    }
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(whole, separators=(",", ":")).encode()


def pool_review(text: str) -> bytes:
    """The review of a pool with these settings."""
    metadata = {"name": "p", "namespace": "trimtab-system", "labels": {"trimtab.dev/pool": "p"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"pool.yaml": text}}
    return asked("", "configmaps", config_map)


def policy_review(spec: Json) -> bytes:
    """The review of a policy."""
    pod_policy = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": "p"}, "spec": spec}
    return asked("trimtab.dev", "podpolicies", pod_policy)


LABELS: Json = {"labels": {"add": {"a": "b"}}}


def _matching(**match: Any) -> bytes:
    return policy_review({"match": match, "actions": LABELS})


DOCUMENTS: tuple[Document, ...] = (
    Document("pool-unknown-keys", lambda n: pool_review("".join(f"moed{at}: 1\n" for at in range(n))), 1400),
    Document("pool-one-key-again", lambda n: pool_review("mode: act\n" * n), 1400),
    Document("pool-list", lambda n: pool_review(f"optOut: {{nodes: [{', '.join('a' for _ in range(n))}]}}\n"), 2900),
    Document("pool-prices", lambda n: pool_review("prices:\n" + "".join(f"  t{at}: 0.1\n" for at in range(n))), 1400),
    Document(
        "pool-prices-of-nothing", lambda n: pool_review("prices:\n" + "".join(f"  t{at}: x\n" for at in range(n))), 1400
    ),
    Document("pool-windows", lambda n: pool_review("windows:\n" + '- {from: "1:00", to: "2:00"}\n' * n), 420),
    Document(
        "pool-labels", lambda n: pool_review("nodes: {labels: {" + ", ".join(f"l{a}: v" for a in range(n)) + "}}"), 1400
    ),
    Document("pool-long-word", lambda n: pool_review("m" * n + ": 1\n"), 65_000),
    Document(
        "pool-aliases", lambda n: pool_review("quiet: &a 1m\nprices: [" + ", ".join("*a" for _ in range(n)) + "]"), 2900
    ),
    Document(
        "policy-unknown-keys", lambda n: policy_review({"actions": LABELS, **{f"moed{a}": 1 for a in range(n)}}), 3900
    ),
    Document("policy-unknown-actions", lambda n: policy_review({"actions": {f"label{a}": {} for a in range(n)}}), 3900),
    Document("policy-namespaces", lambda n: _matching(namespaces={"include": [f"t{a}*" for a in range(n)]}), 3900),
    Document("policy-wrong-names", lambda n: _matching(namespaces={"include": list(range(n))}), 3900),
    Document("policy-exclusions", lambda n: _matching(exclude=[{"owners": ["Job"]}] * n), 1300),
    Document(
        "policy-labels",
        lambda n: policy_review({"actions": {"labels": {"add": {f"l{a}": "v" for a in range(n)}}}}),
        3900,
    ),
    Document(
        "policy-wrong-labels",
        lambda n: policy_review({"actions": {"labels": {"add": {f"l{a}!": "v" for a in range(n)}}}}),
        3900,
    ),
    Document(
        "policy-tolerations",
        lambda n: policy_review({"actions": {"placement": {"tolerate": [{"key": "a"}] * n}}}),
        1900,
    ),
)
