"""Realistic AdmissionReviews of new pods, as compact as an API server sends them.

python -m tests.bench.payloads FOLDER       writes small.json, typical.json and big.json
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodSize:
    """How much there is in a pod."""

    containers: int
    init_containers: int = 0
    variables: int = 0
    """Environment variables of each container."""
    labels: int = 0
    """Labels, and as many annotations, beside the usual ones."""
    has_affinity: bool = False


SIZES = {
    "small": PodSize(1),
    "typical": PodSize(2, 1, 8, 5, has_affinity=True),
    "big": PodSize(10, 1, 32, 10, has_affinity=True),
}
"""Name of the payload → its size. `typical` has about 8 KB."""

TOKEN_VOLUME = "kube-api-access-7xk2p"
REPLICA_SET = "payments-api-7d9c6b5f48"
REPLICA_SET_UID = "8d1b3f3e-3f1b-4c0e-9a53-0f0b7f3a9b10"


def make_review(size: PodSize) -> bytes:
    """Returns the AdmissionReview of a new pod, with a line end."""
    pods = {"group": "", "version": "v1"}
    kind, resource = {**pods, "kind": "Pod"}, {**pods, "resource": "pods"}
    user = {
        "username": "system:serviceaccount:kube-system:replicaset-controller",
        "uid": "0b0c3f63-8d2c-4a1b-9b1f-1f0b0a7f3a55",
        "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=5d2f3c0a-1111-4222-8333-944455556666"]},
    }
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": "payments",
        "operation": "CREATE",
        "userInfo": user,
        "object": make_pod(size),
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    return json.dumps(review, separators=(",", ":")).encode() + b"\n"


def make_pod(size: PodSize) -> Item:
    """Returns a pod of a ReplicaSet, with what API servers have filled in before they call webhooks."""
    metadata = _metadata(size)
    spec: Item = {"volumes": _volumes()}
    if size.init_containers:
        spec["initContainers"] = [_container(n, size, is_init=True) for n in range(size.init_containers)]
    spec["containers"] = [_container(n, size) for n in range(size.containers)]
    not_ready, unreachable = (
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    )
    spec |= {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "payments-api",
        "serviceAccount": "payments-api",
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
        "imagePullSecrets": [{"name": "registry-pull"}],
        "schedulerName": "default-scheduler",
        "tolerations": [not_ready, unreachable],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    if size.has_affinity:
        spec["affinity"] = _affinity()
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {}}


def _metadata(size: PodSize) -> Item:
    labels = {
        "app.kubernetes.io/name": "payments-api",
        "app.kubernetes.io/instance": "payments-prod",
        "pod-template-hash": "7d9c6b5f48",
        **{f"team.example.com/label-{n}": f"value-{n}" for n in range(size.labels)},
    }
    annotations = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9090",
        **{f"team.example.com/annotation-{n}": f"sha256:{n * 7919:064x}" for n in range(size.labels)},
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": REPLICA_SET,
        "uid": REPLICA_SET_UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "generateName": f"{REPLICA_SET}-",
        "namespace": "payments",
        "creationTimestamp": None,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }


def _container(number: int, size: PodSize, *, is_init: bool = False) -> Item:
    dice = random.Random((200 if is_init else 100) + number)
    first = "init-migrate" if is_init else "app"
    tag = f"v2.31.{dice.randint(0, 99)}-{dice.getrandbits(32):08x}"
    image = f"registry.example.com:5000/platform/payments-api-{number}:{tag}"
    container: Item = {
        "name": f"{'init' if is_init else 'app'}-{number}" if number else first,
        "image": image,
        "args": ["--listen=0.0.0.0:8080", "--config=/etc/app/config.yaml", "--log-level=info"],
    }
    if not is_init:
        container["ports"] = [
            {"name": "http", "containerPort": 8080 + number, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9090 + number, "protocol": "TCP"},
        ]
    if size.variables:
        container["env"] = [_variable(number, n, dice) for n in range(size.variables)]
    container["resources"] = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "512Mi"}}
    container["volumeMounts"] = [
        {"name": "config", "mountPath": "/etc/app", "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": TOKEN_VOLUME, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
    ]
    if size.variables > 2 and not is_init:
        for probe in ("livenessProbe", "readinessProbe"):
            container[probe] = {
                "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
                "initialDelaySeconds": 10,
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            }
    return container | {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
        },
    }


def _variable(container: int, number: int, dice: random.Random) -> Item:
    if number % 5 == 4:
        key = {"name": "payments-api-secrets", "key": f"secret-{number}"}
        return {"name": f"SECRET_{container}_{number}", "valueFrom": {"secretKeyRef": key}}
    if number % 7 == 6:
        field = {"apiVersion": "v1", "fieldPath": "metadata.name"}
        return {"name": f"POD_FIELD_{number}", "valueFrom": {"fieldRef": field}}
    value = f"value-{dice.getrandbits(40):x}-{dice.getrandbits(24):x}"
    return {"name": f"APP_SETTING_{container}_{number}", "value": value}


def _volumes() -> list[Item]:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    certificate = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    token = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": certificate},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return [
        {"name": "config", "configMap": {"name": "payments-api-config", "defaultMode": 420}},
        {"name": "tmp", "emptyDir": {}},
        {"name": TOKEN_VOLUME, "projected": {"sources": token, "defaultMode": 420}},
    ]


def _affinity() -> Item:
    selector = {"matchLabels": {"app.kubernetes.io/name": "payments-api"}}
    apart = {"labelSelector": selector, "topologyKey": "topology.kubernetes.io/zone"}
    expression = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        },
    }


def write_payloads(folder: Path) -> dict[str, Path]:
    """Writes a file for each of `SIZES` into the folder; returns name → file."""
    files = {name: folder / f"{name}.json" for name in SIZES}
    for name, file in files.items():
        file.write_bytes(make_review(SIZES[name]))
    return files


if __name__ == "__main__":
    for payload in write_payloads(Path(sys.argv[1])).values():
        print(payload, payload.stat().st_size)
