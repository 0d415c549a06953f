"""A cluster of more than 500 live objects, as kubectl prints them, with 20 planted orphans.

The live objects are those that naive searches get wrong: projected volumes, envFrom, TLS and pull secrets, Helm
releases, root CA maps, webhook certificates, retained claims of StatefulSets, and objects that only operators read.
"""

from collections.abc import Iterator
from typing import Any

from trimtab.cluster.kinds import GROUPS_BY_KIND

Item = dict[str, Any]
TEAMS = tuple(f"team-{n:02d}" for n in range(12))

PLANTED: frozenset[tuple[str, str, str]] = frozenset(
    (
        ("PersistentVolume", "", "pv-released-1"),
        ("PersistentVolume", "", "pv-released-2"),
        ("PersistentVolume", "", "pv-failed"),
        ("PersistentVolumeClaim", "team-00", "old-uploads"),
        ("PersistentVolumeClaim", "team-03", "data-former-0"),
        ("PersistentVolumeClaim", "team-05", "pg-restore"),
        ("PersistentVolumeClaim", "team-07", "scratch"),
        ("Service", "team-01", "former-edge"),
        ("Service", "team-04", "scaled-edge"),
        ("Service", "team-06", "manual-edge"),
        ("ConfigMap", "team-00", "web-config-4k2m9"),
        ("ConfigMap", "team-02", "feature-flags-old"),
        ("ConfigMap", "team-08", "settings"),
        ("ConfigMap", "team-09", "nginx-before-migration"),
        ("Secret", "team-01", "registry-of-former-vendor"),
        ("Secret", "team-02", "shop-tls-2023"),
        ("Secret", "team-10", "db-password-old"),
        ("Secret", "team-11", "api-token"),
        ("Node", "", "hand-made-1"),
        ("Node", "", "hand-made-2"),
    )
)


def cluster_objects() -> list[Item]:
    """Every object, the orphans among the others."""
    return [
        *_nodes(),
        *_storage(),
        *_platform(),
        *_operators(),
        *(item for team in TEAMS for item in _team(team)),
        *_planted(),
    ]


def item(kind: str, namespace: str, name: str, **more: Any) -> Item:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
    group = GROUPS_BY_KIND.get(kind, "")
    version = more.pop("version", f"{group}/v1" if group else "v1")
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def workload(kind: str, namespace: str, name: str, spec: Item, **more: Any) -> Item:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app"}], **spec}}
    fields = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template, **more}
    return item(kind, namespace, name, version="apps/v1", spec=fields)


def _team(team: str) -> Iterator[Item]:
    """One team's namespace: about 40 objects, each named in another way."""
    yield item("Namespace", "", team)
    yield item("ConfigMap", team, "kube-root-ca.crt", data={"ca.crt": "…"})
    yield item("ConfigMap", team, "istio-ca-root-cert", data={})
    container = {
        "name": "app",
        "args": ["--flags=flags-by-argument", "--state", f"{team}/state-by-argument"],
        "envFrom": [{"configMapRef": {"name": "env-map"}}, {"secretRef": {"name": "env-secret"}}],
        "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "key-map", "key": "a"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "key-secret", "key": "b"}}},
            {"name": "C", "value": "map-by-environment"},
        ],
    }
    spec = {
        "containers": [container],
        "imagePullSecrets": [{"name": "pull"}],
        "serviceAccountName": "web",
        "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "init-map"}}]}],
        "volumes": [
            {"name": "a", "configMap": {"name": "volume-map"}},
            {"name": "b", "secret": {"secretName": "volume-secret"}},
            {
                "name": "c",
                "projected": {
                    "sources": [
                        {"configMap": {"name": "projected-map"}},
                        {"secret": {"name": "projected-secret"}},
                        {"serviceAccountToken": {"path": "t"}},
                    ]
                },
            },
            {"name": "d", "persistentVolumeClaim": {"claimName": "uploads"}},
            {"name": "e", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi-secret"}}},
        ],
    }
    yield workload("Deployment", team, "web", spec)
    pod_spec = {**spec, "volumes": [*spec["volumes"], {"name": "tmp", "ephemeral": {}}]}
    labels = {"labels": {"app": "web"}}
    yield item("Pod", team, "web-1", metadata=labels, spec=pod_spec, status={"phase": "Running"})
    maps = (
        "flags-by-argument",
        "state-by-argument",
        "env-map",
        "key-map",
        "map-by-environment",
        "init-map",
        "volume-map",
        "projected-map",
        "night-map",
        "map-of-rollout",
    )
    yield from (item("ConfigMap", team, name, data={"k": "v"}) for name in maps)
    secrets = (
        "env-secret",
        "key-secret",
        "pull",
        "volume-secret",
        "projected-secret",
        "csi-secret",
        "account-pull",
        "edge-tls",
        "basic-auth",
        "gateway-tls",
        "issued-tls",
        "from-vault",
    )
    yield from (item("Secret", team, name, type="Opaque") for name in secrets)
    yield from (
        item("PersistentVolumeClaim", team, name, spec={})
        for name in ("uploads", "web-1-tmp", "data-db-0", "data-db-4", "disk-of-vm", "source")
    )
    yield workload("StatefulSet", team, "db", {}, replicas=1, volumeClaimTemplates=[{"metadata": {"name": "data"}}])
    nightly = {"containers": [{"name": "n", "envFrom": [{"configMapRef": {"name": "night-map"}}]}]}
    yield item("CronJob", team, "night", spec={"jobTemplate": {"spec": {"template": {"spec": nightly}}}})
    yield item("ServiceAccount", team, "web", imagePullSecrets=[{"name": "account-pull"}])
    auth = {"annotations": {"nginx.ingress.kubernetes.io/auth-secret": f"{team}/basic-auth"}}
    yield item("Ingress", team, "edge", metadata=auth, spec={"tls": [{"secretName": "edge-tls"}]})
    yield item("Certificate", team, "issued", spec={"secretName": "issued-tls"})
    yield item("ExternalSecret", team, "from-vault", spec={"secretStoreRef": {"name": "vault", "kind": "SecretStore"}})
    yield item("Rollout", team, "canary", spec={"strategy": {"config": "map-of-rollout"}})
    yield item("VirtualMachine", team, "vm", spec={"volumes": [{"dataVolume": {"name": "disk-of-vm"}}]})
    yield item("VolumeSnapshot", team, "s", spec={"source": {"persistentVolumeClaimName": "source"}})
    release = {"labels": {"owner": "helm", "status": "deployed", "version": "3"}}
    yield item("Secret", team, "sh.helm.release.v1.web.v3", metadata=release)
    yield item("Service", team, "edge", spec={"type": "LoadBalancer", "selector": {"app": "web"}})
    owned = {"ownerReferences": [{"kind": "Kafka", "name": "k"}]}
    yield item("Secret", team, "kafka-user", metadata=owned)


def _planted() -> Iterator[Item]:
    yield item(
        "Gateway",
        "edge",
        "public",
        spec={
            "listeners": [{"tls": {"certificateRefs": [{"name": "gateway-tls", "namespace": team} for team in TEAMS]}}]
        },
    )
    volume = {"capacity": {"storage": "100Gi"}, "storageClassName": "fast", "claimRef": {"namespace": "x", "name": "y"}}
    yield item("PersistentVolume", "", "pv-released-1", spec=volume, status={"phase": "Released"})
    yield item("PersistentVolume", "", "pv-released-2", spec=volume, status={"phase": "Released"})
    yield item("PersistentVolume", "", "pv-failed", spec=volume, status={"phase": "Failed"})
    size = {"resources": {"requests": {"storage": "20Gi"}}, "storageClassName": "standard"}
    edge = {"type": "LoadBalancer", "selector": {"app": "former"}}
    for kind, namespace, name in sorted(PLANTED):
        if kind == "PersistentVolumeClaim":
            yield item(kind, namespace, name, spec=size, status={"capacity": {"storage": "20Gi"}})
        if kind == "Service":
            yield item(kind, namespace, name, spec={"type": "LoadBalancer"} if name == "manual-edge" else edge)
        if kind in ("ConfigMap", "Secret"):
            yield item(kind, namespace, name)
        if kind == "Node":
            yield item(kind, namespace, name)
    yield workload("Deployment", "team-04", "former", {}, replicas=0)


def _nodes() -> Iterator[Item]:
    yield item("Node", "", "cp", metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}})
    yield item("Node", "", "fargate", metadata={"labels": {"eks.amazonaws.com/compute-type": "fargate"}})
    yield from (item("Node", "", f"n{n}", metadata={"labels": {"eks.amazonaws.com/nodegroup": "a"}}) for n in range(10))


def _storage() -> Iterator[Item]:
    prefix = "csi.storage.k8s.io/provisioner-secret"
    parameters = {f"{prefix}-name": "ceph", f"{prefix}-namespace": "rook"}
    yield item("StorageClass", "", "ceph", parameters=parameters)
    yield item("Secret", "rook", "ceph")
    yield item("Secret", "rook", "ceph-node")
    csi = {"driver": "ceph", "nodeStageSecretRef": {"name": "ceph-node", "namespace": "rook"}}
    bound = {"claimRef": {"namespace": "team-00", "name": "old-uploads"}, "csi": csi}
    yield item("PersistentVolume", "", "pv-bound", spec=bound, status={"phase": "Bound"})


def _platform() -> Iterator[Item]:
    for name in ("coredns", "kubeadm-config", "extension-apiserver-authentication"):
        yield item("ConfigMap", "kube-system", name)
    yield item("ConfigMap", "kube-public", "cluster-info")
    yield item("Secret", "kube-system", "bootstrap-token-abcdef")
    token = {"annotations": {"kubernetes.io/service-account.name": "ci"}}
    yield item("Secret", "ci", "ci-token", metadata=token)
    service = {"clientConfig": {"service": {"namespace": "policy", "name": "policy-webhook"}}}
    yield item("ValidatingWebhookConfiguration", "", "policy", webhooks=[service])
    yield item("Secret", "policy", "policy-webhook-ca")
    yield item("Secret", "policy", "policy-serving-certs")
    certs = {"containers": [{"name": "c", "args": ["--secret=mounted-webhook-tls"]}]}
    yield workload("Deployment", "policy", "policy", certs)
    yield item("Secret", "policy", "mounted-webhook-tls")


def _operators() -> Iterator[Item]:
    """Objects that only operators read: by label, by a name of their own, by all objects of a namespace."""
    yield item("Secret", "argocd", "repo-1", metadata={"labels": {"argocd.argoproj.io/secret-type": "repository"}})
    yield item("ConfigMap", "monitoring", "board", metadata={"labels": {"grafana_dashboard": "1"}})
    leader = {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}
    yield item("ConfigMap", "ingress", "leader-id", metadata=leader)
    writers = {"managedFields": [{"manager": "prometheus-operator", "operation": "Update"}]}
    yield item("Secret", "monitoring", "prometheus-generated", metadata=writers)
    yield workload("Deployment", "argocd", "server", {"serviceAccountName": "argocd"})
    for name in ("argocd-cm", "argocd-rbac-cm"):
        yield item("ConfigMap", "argocd", name)
    yield item("Secret", "argocd", "argocd-secret")
    rules = [{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "list", "watch"]}]
    yield item("Role", "argocd", "reader", rules=rules)
    account = {"kind": "ServiceAccount", "name": "argocd", "namespace": "argocd"}
    role = {"kind": "Role", "name": "reader"}
    yield item("RoleBinding", "argocd", "reader", roleRef=role, subjects=[account])
    named = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["unseal-keys"], "verbs": ["get"]}]
    yield item("Role", "vault", "keys", rules=named)
    yield item("Secret", "vault", "unseal-keys")
    yield item("ClusterIssuer", "", "acme", spec={"acme": {"privateKeySecretRef": {"name": "acme-account"}}})
    yield item("Secret", "cert-manager", "acme-account")
