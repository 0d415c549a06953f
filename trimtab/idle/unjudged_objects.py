"""Finds ConfigMaps and Secrets that something may read although no object refers to them.

Controllers read objects by label or by a fixed name, or read all objects of a namespace. The signs of that are in the
objects' metadata, in RBAC objects, and in webhook configurations. The rules are cautious: an object that one of them
covers is left out of the report with the reason, and is never reported as unneeded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.cluster.reason import Code, Reason
from trimtab.idle.object_mentions import Manifest, Name, iterate_pod_specs, name_of

OWNER_DECIDES = Code(
    "orphan-owner-decides",
    "The garbage collector deletes the object together with its owner.",
    "Delete the owner if it is not needed.",
)
CONTROLLER_WRITES = Code(
    "orphan-controller-writes-it",
    "A controller writes the object, and probably reads it too. Its field managers show the controller.",
    "Delete the object yourself if the controller no longer exists.",
)
OPERATOR_LABEL = Code(
    "orphan-operator-label",
    "A label or annotation of the object belongs to an operator, which may find it by that.",
    "Pass a domain of your own with --own-domain, if no component selects by it. The domain is that of the label.",
)
API_READER = Code(
    "orphan-read-through-the-api",
    "A pod may read every such object in the namespace through the API. Its service account has the permission.",
    "Find out which objects it reads, or restrict its role with resourceNames.",
)
PLATFORM_OBJECT = Code(
    "orphan-of-the-platform",
    "The object belongs to Kubernetes or to the platform. It is for example a root CA, a bootstrap token or an "
    "object in kube-system.",
    "Nothing.",
)
WEBHOOK_CERTIFICATE = Code(
    "orphan-webhook-certificate",
    "By its name, the Secret is the certificate of a webhook or an aggregated API. Its namespace serves one.",
    "Keep it as long as that is served.",
)
HELM_RELEASE = Code(
    "orphan-helm-release",
    "The object stores a release of Helm.",
    "Uninstall the release with helm if it is not needed.",
)
ACCOUNT_TOKEN = Code(
    "orphan-service-account-token",
    "The Secret is a service account's token, which clients outside of the cluster may use.",
    "Delete it only if none logs in with it.",
)

NAMED_ELSEWHERE = Code(
    "orphan-named-in-another-namespace",
    "An object in another namespace names it, and an operator may read it there. The other object is of a kind that "
    "is not built in. Istio, for example, reads the certificates of a Gateway in the namespace of the gateway's pods.",
    "Find out whether the operator reads the object. If it does not, ask the object's author, then delete it.",
)
READ_BY_NAME = Code(
    "orphan-read-by-name",
    "A program reads the object by this fixed name.",
    "Delete it if the program is no longer installed.",
)
LEADER_LOCK = Code(
    "orphan-leader-lock",
    "By its name, replicas of a controller elect their leader with the object.",
    "Delete it if the controller is gone or uses a Lease.",
)

SYSTEM_NAMESPACES = frozenset(("kube-system", "kube-public", "kube-node-lease", "gke-managed-system", "gmp-system"))
ROOT_CA_MAPS = frozenset(
    (
        "kube-root-ca.crt",
        "openshift-service-ca.crt",
        "istio-ca-root-cert",
        "istio-ca-crl",
        "linkerd-identity-trust-roots",
        "trust-bundle",
    )
)
"""Names of ConfigMaps that a controller creates in every namespace."""
_PLAIN_DOMAINS = frozenset(
    (
        "app.kubernetes.io",
        "kubernetes.io",
        "helm.sh",
        "meta.helm.sh",
        "kubectl.kubernetes.io",
        "kustomize.toolkit.fluxcd.io",
        "helm.toolkit.fluxcd.io",
        "config.kubernetes.io",
        "internal.config.kubernetes.io",
        "config.k8s.io",
        "objectset.rio.cattle.io",
        "fleet.cattle.io",
        "app.gitlab.com",
        "backstage.io",
        "trimtab.dev",
        "addonmanager.kubernetes.io",
        "kapp.k14s.io",
        "janitor",
        "policies.kyverno.io",
        "deployment.kubernetes.io",
    )
)
"""Domains of labels and annotations that tools put on all kinds of objects: they say what created an object, not what
reads it."""
_PLAIN_KEYS = frozenset(
    (
        "argocd.argoproj.io/instance",
        "argocd.argoproj.io/tracking-id",
        "argocd.argoproj.io/sync-wave",
        "argocd.argoproj.io/sync-options",
        "argocd.argoproj.io/compare-options",
        "argocd.argoproj.io/hook",
    )
)
_READING_VALUES = frozenset((("app.kubernetes.io/part-of", "argocd"),))
"""(label, value) by which a program finds its own objects, although the label itself says nothing (Argo CD, declarative
setup)."""
_FIXED_NAMES = {
    **dict.fromkeys(
        (
            "argocd-cm",
            "argocd-cmd-params-cm",
            "argocd-gpg-keys-cm",
            "argocd-initial-admin-secret",
            "argocd-notifications-cm",
            "argocd-notifications-secret",
            "argocd-rbac-cm",
            "argocd-redis",
            "argocd-secret",
            "argocd-ssh-known-hosts-cm",
            "argocd-tls-certs-cm",
        ),
        "Argo CD",
    )
}
"""Name of a ConfigMap or Secret → the program that reads it by this name."""
_LEADER = re.compile(r"[-.]leader([-.]|$)|leader-?election")
_PEOPLE = re.compile(
    r"kubectl|helm|argocd|kustomize-controller|flux|terraform|pulumi|before-first-apply|ansible|mozilla|k9s|lens|"
    r"openapi-generator|python|node-fetch|okhttp|dashboard|headlamp|rancher|curl|kapp|skaffold|tilt|unknown|trimtab",
    re.IGNORECASE,
)
"""Field managers of people and of delivery tools. That one of them applied an object does not mean that it reads the
object."""
_CERTIFICATE = re.compile(r"(^|[-.])(certs?|certificates?|tls|ca|webhook|serving)([-.]|$)")
_EVERYWHERE = 3
"""A ConfigMap that exists in all namespaces counts as the platform's if there are at least this many namespaces."""
_CONFIG_KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}


@dataclass(frozen=True, slots=True)
class ReaderFacts:
    """What the cluster's objects show about which programs read ConfigMaps and Secrets."""

    readable: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(kind, namespace) → a pod's service account (NAMESPACE/NAME) that may read all objects of this kind there."""
    webhook_namespaces: frozenset[str] = frozenset()
    common_names: frozenset[str] = frozenset()
    """Names of ConfigMaps that exist in every namespace."""
    own_domains: frozenset[str] = frozenset()
    """Label domains of the user's own organization."""


def gather_reader_facts(manifests: Iterable[Manifest], own_domains: Iterable[str] = ()) -> ReaderFacts:
    """Returns what all objects show about readers. Without RBAC objects, it is not known which service accounts may
    read which objects."""
    by_kind: dict[str, list[Manifest]] = defaultdict(list)
    accounts: set[tuple[str, str]] = set()
    for manifest in manifests:
        kind, namespace, _ = name_of(manifest)
        by_kind[kind].append(manifest)
        for spec in iterate_pod_specs(manifest):
            accounts.add((namespace, str(spec.get("serviceAccountName") or "default")))
    return ReaderFacts(
        readable=_find_readers(by_kind, accounts),
        webhook_namespaces=frozenset(_iterate_webhook_namespaces(by_kind)),
        common_names=_find_common_names(by_kind["ConfigMap"]),
        own_domains=frozenset(own_domains),
    )


def reason_to_leave_out(manifest: Manifest, facts: ReaderFacts) -> Reason | None:
    """Returns why Trimtab cannot decide about a ConfigMap or Secret to which no object refers, or None if it can be
    reported.

    These are checked, in this order: an owner, Helm, a service account, the platform, a controller that writes the
    object, an operator's label, a webhook's certificate, a pod that may read all objects of the kind, and names that
    programs read.
    """
    name = name_of(manifest)
    metadata = _mapping(manifest.get("metadata"))
    owners = metadata.get("ownerReferences")
    if isinstance(owners, list) and owners:
        owner = _mapping(owners[0])
        return OWNER_DECIDES(f"the object belongs to {owner.get('kind')} {owner.get('name')}")
    if metadata.get("deletionTimestamp"):
        return OWNER_DECIDES("the object is being deleted")
    return (
        _reason_by_name(name, metadata, facts)
        or _reason_by_writer(metadata)
        or _reason_by_label(manifest, facts)
        or _reason_by_namespace(name, facts)
        or _reason_by_fixed_name(manifest)
    )


def _reason_by_name(name: Name, metadata: Manifest, facts: ReaderFacts) -> Reason | None:
    kind, namespace, own = name
    labels = _mapping(metadata.get("labels"))
    if own.startswith("sh.helm.release.v1.") or (labels.get("owner") == "helm" and "version" in labels):
        return HELM_RELEASE("the object stores a release of Helm")
    account = _mapping(metadata.get("annotations")).get("kubernetes.io/service-account.name")
    if account:
        return ACCOUNT_TOKEN(f"the Secret is a token of the service account {account}")
    if namespace in SYSTEM_NAMESPACES or namespace.startswith("openshift-"):
        return PLATFORM_OBJECT(f"namespace {namespace} belongs to the platform")
    if kind == "ConfigMap" and (own in ROOT_CA_MAPS or own in facts.common_names):
        return PLATFORM_OBJECT("every namespace has a ConfigMap with this name")
    return None


def _reason_by_writer(metadata: Manifest) -> Reason | None:
    managers = metadata.get("managedFields")
    for entry in managers if isinstance(managers, list) else ():
        manager = str(_mapping(entry).get("manager") or "")
        if manager and not _PEOPLE.search(manager):
            return CONTROLLER_WRITES(f"{manager} writes the object")
    return None


def _reason_by_label(manifest: Manifest, facts: ReaderFacts) -> Reason | None:
    for key in _labels_of(manifest):
        domain, slash, _ = key.partition("/")
        if slash and key not in _PLAIN_KEYS and domain not in _PLAIN_DOMAINS and domain not in facts.own_domains:
            return OPERATOR_LABEL(f"the object has the label or annotation {key}")
    # Sidecars of dashboards and alert rules select by labels without a domain.
    for key in _labels_of(manifest):
        if key.endswith(("_dashboard", "_datasource", "_alert", "_rule", "_notifier")):
            return OPERATOR_LABEL(f"the object has the label or annotation {key}")
    return None


def _reason_by_namespace(name: Name, facts: ReaderFacts) -> Reason | None:
    kind, namespace, own = name
    if kind == "Secret" and namespace in facts.webhook_namespaces and _CERTIFICATE.search(own):
        return WEBHOOK_CERTIFICATE(f"namespace {namespace} serves a webhook or an aggregated API")
    reader = facts.readable.get((kind, namespace))
    return API_READER(f"the service account {reader} may read every {kind} in {namespace}") if reader else None


def _reason_by_fixed_name(manifest: Manifest) -> Reason | None:
    kind, _, own = name_of(manifest)
    labels = _mapping(_mapping(manifest.get("metadata")).get("labels"))
    for key, value in _READING_VALUES:
        if labels.get(key) == value:
            return OPERATOR_LABEL(f"the object has the label {key}: {value}")
    if own in _FIXED_NAMES:
        return READ_BY_NAME(f"{_FIXED_NAMES[own]} reads a {kind} of this name")
    return LEADER_LOCK("the name is that of a lock for leaders") if _LEADER.search(own) else None


def _labels_of(manifest: Manifest) -> Iterator[str]:
    metadata = _mapping(manifest.get("metadata"))
    yield from _mapping(metadata.get("labels"))
    yield from _mapping(metadata.get("annotations"))


def _find_common_names(config_maps: Iterable[Manifest]) -> frozenset[str]:
    """Returns the names that exist in every namespace with ConfigMaps."""
    namespaces: set[str] = set()
    by_name: dict[str, set[str]] = defaultdict(set)
    for manifest in config_maps:
        _, namespace, own = name_of(manifest)
        namespaces.add(namespace)
        by_name[own].add(namespace)
    if len(namespaces) < _EVERYWHERE:
        return frozenset()
    return frozenset(own for own, where in by_name.items() if where == namespaces)


def _iterate_webhook_namespaces(by_kind: Mapping[str, list[Manifest]]) -> Iterator[str]:
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for manifest in by_kind.get(kind, ()):
            for webhook in manifest.get("webhooks") or ():
                yield str(_mapping(_mapping(_mapping(webhook).get("clientConfig")).get("service")).get("namespace"))
    for manifest in by_kind.get("APIService", ()):
        yield str(_mapping(_mapping(manifest.get("spec")).get("service")).get("namespace"))
    for manifest in by_kind.get("CustomResourceDefinition", ()):
        conversion = _mapping(_mapping(manifest.get("spec")).get("conversion"))
        client = _mapping(_mapping(conversion.get("webhook")).get("clientConfig"))
        yield str(_mapping(client.get("service")).get("namespace"))


def _find_readers(by_kind: Mapping[str, list[Manifest]], accounts: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Returns (kind, namespace) → a pod's service account that may read all objects of that kind because of the
    bindings in that namespace. Permissions for the whole cluster count only in the account's own namespace, because in
    other namespaces most such readers look for labels."""
    rights = {
        name_of(role): _readable_kinds(role) for kind in ("Role", "ClusterRole") for role in by_kind.get(kind, ())
    }
    readers: dict[tuple[str, str], str] = {}
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for binding in by_kind.get(kind, ()):
            _, namespace, _ = name_of(binding)
            role = _mapping(binding.get("roleRef"))
            role_kind = str(role.get("kind"))
            role_name = (role_kind, namespace if role_kind == "Role" else "", str(role.get("name")))
            for subject in binding.get("subjects") or ():
                account = (str(_mapping(subject).get("namespace") or namespace), str(_mapping(subject).get("name")))
                if _mapping(subject).get("kind") == "ServiceAccount" and account in accounts:
                    for readable in rights.get(role_name, ()):
                        readers.setdefault((readable, namespace or account[0]), "/".join(account))
    return readers


def _readable_kinds(role: Manifest) -> tuple[str, ...]:
    """Returns the kinds of which a role may list, or get, every object."""
    kinds: list[str] = []
    for rule in role.get("rules") or ():
        fields: Mapping[str, Any] = _mapping(rule)
        verbs, resources = set(fields.get("verbs") or ()), set(fields.get("resources") or ())
        if fields.get("resourceNames") or not verbs & {"get", "list", "watch", "*"}:
            continue
        if not {"", "*"} & set(fields.get("apiGroups") or ()):
            continue
        kinds += [kind for plural, kind in _CONFIG_KINDS.items() if plural in resources or "*" in resources]
    return tuple(dict.fromkeys(kinds))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
