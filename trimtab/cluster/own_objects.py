"""Which objects of a cluster are Trimtab's own: what it installs, what its processes write, and its configuration.

Deleting such an object loses a pool, the compactor's state, recommendations or keys, so no report names it as unneeded.
"""

from collections.abc import Iterable, Mapping
from typing import Any

NAME = "trimtab"
DOMAIN = "trimtab.dev"
"""The domain of all labels, annotations, API groups and finalizers of Trimtab."""
OWN_NAMESPACE = "trimtab-system"
"""The namespace into which Trimtab is installed by default. Nothing else belongs into it."""
_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/part-of", "app.kubernetes.io/managed-by")
_PROCESS_KINDS = ("Deployment", "ServiceAccount")
_WRITTEN_KINDS = ("ConfigMap", "Secret", "Lease")
"""Kinds whose objects are Trimtab's if they have a label of its domain. Objects of other kinds, such as pods and nodes,
get such marks although they are their users' own."""


def own_namespaces(manifests: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Returns the namespaces in which Trimtab is installed, as the objects show; the default one always."""
    return frozenset({OWN_NAMESPACE}) | {
        _metadata(manifest).get("namespace") or "default"
        for manifest in manifests
        if manifest.get("kind") in _PROCESS_KINDS and _has_own_label(_metadata(manifest))
    }


def is_own(manifest: Mapping[str, Any], namespaces: frozenset[str] = frozenset({OWN_NAMESPACE})) -> bool:
    """Returns whether an object is Trimtab's own. That is so if any of these holds:

    - its namespace is the default one of Trimtab;
    - its API group is Trimtab's;
    - one of the usual labels names Trimtab;
    - a label has Trimtab's domain, and its kind is one that Trimtab's processes and pools are stored in;
    - its namespace is one of `namespaces`, where Trimtab is installed, and its name begins with "trimtab".
    """
    metadata = _metadata(manifest)
    namespace, name = metadata.get("namespace") or "default", str(metadata.get("name") or "")
    group = str(manifest.get("apiVersion") or "").partition("/")[0]
    labels = _mapping(metadata.get("labels")) if manifest.get("kind") in _WRITTEN_KINDS else {}
    return (
        namespace == OWN_NAMESPACE
        or _has_domain(group)
        or _has_own_label(metadata)
        or any(_has_domain(key.partition("/")[0]) for key in labels)
        or (namespace in namespaces and name.startswith(NAME))
    )


def _has_domain(text: str) -> bool:
    return text == DOMAIN or text.endswith(f".{DOMAIN}")


def _has_own_label(metadata: Mapping[str, Any]) -> bool:
    labels = _mapping(metadata.get("labels"))
    return any(labels.get(label) == NAME for label in _LABELS)


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(manifest.get("metadata"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
