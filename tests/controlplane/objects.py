"""The manifests the sentences of `Cluster` stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

Object = dict[str, Any]
PROBE = "testbed.trimtab.dev/probe"


def documents(given: str | Object | Sequence[Object]) -> list[Object]:
    """YAML (several documents, Lists) or dicts, as one flat list."""
    if isinstance(given, str):
        parts = [part for part in yaml.safe_load_all(given) if part]
    else:
        parts = [given] if isinstance(given, dict) else list(given)
    return [item for part in parts for item in (part["items"] if part.get("kind") == "List" else [part])]


def node(name: str, *, cpu: str, memory: str, pods: int, labels: Mapping[str, str], taints: Sequence[Object]) -> Object:
    """Capacity and allocatable are equal, and stay as given: kwok plays the kubelet."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "100Gi"}
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, **labels}},
        "spec": {"taints": list(taints), "providerID": f"testbed://{name}"},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def taint(given: str | Object) -> Object:
    """`"pool=batch:NoSchedule"`, as kubectl writes it."""
    if not isinstance(given, str):
        return given
    pair, _, effect = given.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def container(name: str, image: str, cpu: str | None, memory: str | None) -> Object:
    """Requests only; without both there are no resources at all."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    return {"name": name, "image": image, **({"resources": {"requests": requests}} if requests else {})}


def deployment(
    name: str,
    *,
    replicas: int,
    image: str,
    cpu: str | None,
    memory: str | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    spec: Object,
) -> Object:
    """`spec` is laid over the pod's spec."""
    own = {"app": name}
    template = {
        "metadata": {"labels": {**own, **labels}, "annotations": dict(annotations)},
        "spec": {"containers": [container("main", image, cpu, memory)], **spec},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {**own, **labels}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": own}, "template": template},
    }


def mutating_webhook(
    name: str,
    *,
    client_config: Object,
    namespace: str,
    failure_policy: str,
    reinvocation_policy: str,
    timeout_seconds: int,
    rules: Sequence[Object] | None,
    more: Object,
) -> Object:
    """One webhook for the pods of one namespace, so that tests don't meet. `more` is laid over it.

    Beside it stands a sentinel that nobody answers: it refuses the ConfigMaps that `probe()` makes, from the
    moment on that the API server goes by this configuration.
    """
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*"}
    webhook = {
        "name": f"{name}.testbed.trimtab.dev",
        "clientConfig": client_config,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": list(rules) if rules else [pods],
        "failurePolicy": failure_policy,
        "reinvocationPolicy": reinvocation_policy,
        "timeoutSeconds": timeout_seconds,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"{namespace}-{name}"},
        "webhooks": [webhook, _sentinel(name, namespace)],
    }


def probe(name: str) -> Object:
    """Refused as soon as the webhook configuration of that name is in force."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "labels": {PROBE: name}}}


def _sentinel(name: str, namespace: str) -> Object:
    everything = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "name": f"sentinel.{name}.testbed.trimtab.dev",
        "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "objectSelector": {"matchLabels": {PROBE: name}},
        "rules": [everything],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
