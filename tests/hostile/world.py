"""Policies that use every action, and a namespace in which everything is there that decisions read."""

from functools import cache
from typing import Any

import yaml

from trimtab.cluster.snapshot import load_snapshot
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies

NAMESPACE = "tenant"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d9c6b5f48", "uid": "u", "controller": True}

POLICIES = """
- name: sandboxed
  spec:
    priority: 700
    match: {containers: {notImages: ["registry.example.com/*"]}}
    actions:
      runtimeClass: {name: gvisor, override: true}
      overhead: {stray: strip, contradicting: strip}
      priorityClass: {name: low, override: true}
- name: sized
  spec:
    priority: 600
    guaranteed: change
    match: {podLabels: {app: "*"}, exclude: [{hpa: utilization}, {owners: [DaemonSet]}]}
    actions:
      requests:
        containers:
          - {names: ["side-*"], cpu: {from: limit, percent: 50}}
          - {images: ["docker.io/library/big*"], memory: {from: policy, otherwise: 1Gi, when: always}}
        cpu: {from: usage, otherwise: 50m, min: 10m, when: always}
        memory: {from: usage, otherwise: 64Mi, min: 32Mi, when: always}
      limits: {cpu: remove, memory: request x 1.5}
- name: placed
  spec:
    priority: 500
    match: {namespaces: {include: ["ten*"]}, podSelector: {matchExpressions: [{key: app, operator: Exists}]}}
    actions:
      placement:
        require: [{label: pool, in: [batch, web]}, {label: slow, absent: true}]
        prefer: [{label: kind, in: [spot]}]
        nodeSelector: {arch: amd64}
        tolerate: [{key: pool, value: batch, effect: NoSchedule}, {key: spot}]
      topologySpread: {constraints: [{topologyKey: zone}, {topologyKey: host, maxSkew: 2}]}
      safeToEvictVolumes: {volumes: ["scratch*"], hostPaths: true}
      labels: {add: {cost: low}, override: true}
      annotations: {add: {note: cheap}, override: true}
- name: overruled
  spec:
    priority: 400
    actions:
      requests: {cpu: {from: policy, otherwise: 70m, when: always}}
      limits: {cpu: keep}
      labels: {add: {cost: high}}
      placement: {require: [{label: pool, in: [other]}]}
- name: watching
  spec:
    priority: 300
    mode: warn
    match: {containers: {roles: [main, sidecar]}}
    actions:
      requests: {memory: {from: policy, otherwise: 1Gi, when: always}}
      placement: {tolerate: [{key: watched}]}
      annotations: {add: {watched: "yes"}}
"""

SURROUNDINGS = """
- {apiVersion: v1, kind: Namespace, metadata: {name: tenant, labels: {team: a}}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: tenant}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata:
    name: web-7d9c6b5f48
    namespace: tenant
    ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]
- apiVersion: node.k8s.io/v1
  kind: RuntimeClass
  metadata: {name: gvisor}
  handler: runsc
  overhead: {podFixed: {cpu: 100m, memory: 64Mi}}
  scheduling:
    nodeSelector: {sandbox: "yes"}
    tolerations: [{key: sandbox, operator: Exists, effect: NoSchedule}, {key: gvisor, operator: Equal, value: "1"}]
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 5}
- apiVersion: v1
  kind: LimitRange
  metadata: {name: bounds, namespace: tenant}
  spec:
    limits:
      - {type: Container, min: {cpu: 1m}, defaultRequest: {cpu: 20m, memory: 16Mi}, max: {ephemeral-storage: 10Gi}}
      - {type: Pod, max: {memory: 4000Gi}}
- apiVersion: v1
  kind: ResourceQuota
  metadata: {name: counted, namespace: tenant}
  spec: {hard: {requests.cpu: "4000", requests.memory: 4000Gi, pods: "100"}, scopes: [NotBestEffort]}
  status: {hard: {requests.cpu: "4000", requests.memory: 4000Gi, pods: "100"},
           used: {requests.cpu: "1", requests.memory: 1Gi, pods: "3"}}
- apiVersion: autoscaling.k8s.io/v1
  kind: VerticalPodAutoscaler
  metadata: {name: web, namespace: tenant}
  spec:
    targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    updatePolicy: {updateMode: Auto}
    resourcePolicy: {containerPolicies: [{containerName: "*", controlledValues: RequestsOnly, maxAllowed: {cpu: 8}}]}
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "64", memory: 256Gi, pods: "110"}}}
"""


@cache
def policies() -> Policies:
    """Every action, in policies that apply, that are overruled and that only watch."""
    documents = [
        {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": one["name"]}, **one}
        for one in yaml.safe_load(POLICIES)
    ]
    for one in documents:
        del one["name"]
    loaded = load_policies([("hostile.yaml", yaml.safe_dump_all(documents).encode())])
    assert not loaded.mistakes, loaded.mistakes
    return loaded.policies


@cache
def facts() -> ClusterFacts:
    """Of the namespace `tenant` and what is around it."""
    return with_more([])


def with_more(manifests: list[Any]) -> ClusterFacts:
    """The same and these."""
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [*yaml.safe_load(SURROUNDINGS), *manifests]})
    loaded = load_snapshot([("surroundings.yaml", text.encode())])
    assert not loaded.mistakes, loaded.mistakes
    return from_snapshot(loaded.snapshot)
