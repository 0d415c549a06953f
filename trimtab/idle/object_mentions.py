"""Finds which object refers to which, in a cluster's objects as plain values.

A pod refers to ConfigMaps, Secrets and claims by the fields of its spec. In addition, a name counts as mentioned if it
is a whole word in a command line, an environment variable, an annotation, or any field of a kind that is not built in,
because operators read what their own objects name. So a mention may be a coincidence, but an object without any mention
really has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.kinds import POD, GroupKind, group_kind, kind_of_object
from trimtab.cluster.selectors import labels_match

Manifest = Mapping[str, Any]
"""One API object as plain values. Of a Secret, only kind and metadata are read."""
Name = tuple[GroupKind | str, str, str]
"""(kind, namespace or "" for cluster-scoped objects, name)."""

_WORD = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_QUALIFIED = re.compile(r"([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)/([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)")
"""Matches NAMESPACE/NAME, as command lines name objects in other namespaces."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
POD_KINDS = (
    "Pod",
    "PodTemplate",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "ReplicationController",
)
"""Kinds with a pod spec. Their fields outside the pod spec mention no object of the kinds that are checked here."""
SILENT_KINDS = frozenset(
    (
        "Event",
        "Lease",
        "Endpoints",
        "EndpointSlice",
        "Node",
        "Namespace",
        "Service",
        "Secret",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "VerticalPodAutoscaler",
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
        "RoleBinding",
        "ClusterRoleBinding",
        "PriorityClass",
        "CSINode",
        "CSIDriver",
        "VolumeAttachment",
        "RuntimeClass",
        "ControllerRevision",
        "PodMetrics",
        "NodeMetrics",
        "ComponentStatus",
        "CSIStorageCapacity",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "APIService",
        "ValidatingAdmissionPolicy",
        "MutatingAdmissionPolicy",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "CertificateSigningRequest",
        "ResourceSlice",
        "ServiceCIDR",
        "IPAddress",
        "ForbiddenKind",
    )
)
"""Built-in kinds of which only the annotations can mention an object of the kinds that are checked here."""

_NO_LABELS: Mapping[str, Any] = {}


@dataclass(slots=True)
class MentionIndex:
    """Every mention in all objects. At most two mentioning objects are kept for each name, because one of them may be
    the named object itself."""

    _words: dict[tuple[str, str], tuple[Name, ...]] = field(default_factory=dict)
    """(namespace, word) → the objects that contain the word. Under the empty namespace are the words of cluster-scoped
    objects."""
    _references: dict[Name, tuple[Name, ...]] = field(default_factory=dict)
    """Object → the objects with a field that refers to it by kind and name."""
    _selections: list[tuple[GroupKind | str, str, LabelSelector, Name]] = field(default_factory=list)
    """(kind, namespace or "" for all, selector, the object that selects)."""
    _custom_words: dict[str, tuple[Name, ...]] = field(default_factory=dict)
    """Word in a value → the objects of kinds that are not built in, in any namespace, that contain it."""
    _hints: dict[tuple[str, str], tuple[Name, ...]] = field(default_factory=dict)
    """(kind, whole value) → the objects of kinds that are not built in with a field for the name of such an object."""
    param_kinds: Mapping[tuple[str, str], GroupKind] = field(default_factory=dict)
    """(kind, name) of an admission policy → the kind of its parameters."""

    def find_mention(self, name: Name, labels: Mapping[str, Any] = _NO_LABELS) -> Name | None:
        """Returns the first other object that mentions this one, or selects it by its labels, or None if none does."""
        kind, namespace, own = name
        places = (
            self._references.get(name, ()),
            self._references.get((kind, "", own), ()),
            self._words.get((namespace, own), ()),
            self._words.get(("", own), ()),
        )
        mention = next((who for place in places for who in place if who != name), None)
        return mention or next(
            (
                who
                for which, where, selector, who in self._selections
                if which == kind and where in ("", namespace) and labels_match(selector, labels)
            ),
            None,
        )

    def find_mention_elsewhere(self, name: Name, *, is_unique: bool) -> Name | None:
        """Returns an object of a kind that is not built in, in any namespace, that may mean this one, or None.

        Operators also read objects in the namespace of their own pods. A field counts if it is meant for names of the
        kind. Any word counts if `is_unique` is true: then no other object of the kind has the name.
        """
        who = self._hints.get((name[0], name[2]), ()) or (self._custom_words.get(name[2], ()) if is_unique else ())
        return next(iter(who), None)

    def add_object(self, manifest: Manifest) -> None:
        """Adds everything that one object mentions."""
        who = name_of(manifest)
        self._add_annotations(who, manifest)
        kind = who[0]
        if kind in SILENT_KINDS:
            return
        for spec in iterate_pod_specs(manifest):
            for named_kind, named in iterate_pod_references(spec):
                self._add_reference((named_kind, who[1], named), who)
            for text in _iterate_pod_texts(spec):
                self._add_text(who, text)
        if kind in POD_KINDS:
            self._add_claims_of_pod(who, manifest)
        elif kind in _READERS:
            for reference in _READERS[kind](manifest):
                self._add_reference(reference, who)
        elif kind in _POLICIES_BY_BINDING:
            self._add_parameters(manifest, who)
        else:
            # Kinds that are not built in: an operator may read whatever its object names, also by the object's own
            # name (the Secret of an ExternalSecret has the same name unless its spec names another one).
            if kind != "ConfigMap":
                self._add_word(who[1], who[2], who)
                self._add_custom_values(manifest, who)
            self._walk_values({key: value for key, value in manifest.items() if key not in _NOT_FIELDS}, who)

    def _add_annotations(self, who: Name, manifest: Manifest) -> None:
        annotations = _mapping(_mapping(manifest.get("metadata")).get("annotations"))
        for key, value in annotations.items():
            if key != LAST_APPLIED and isinstance(value, str):
                self._add_text(who, value)

    def _add_claims_of_pod(self, who: Name, manifest: Manifest) -> None:
        """Adds the claims that the ephemeral volumes of a pod create; their names are POD-VOLUME."""
        if who[0] != POD:
            return
        for volume in _list(_mapping(manifest.get("spec")).get("volumes")):
            if isinstance(volume, Mapping) and "ephemeral" in volume:
                self._add_reference(("PersistentVolumeClaim", who[1], f"{who[2]}-{volume.get('name')}"), who)

    def _add_parameters(self, binding: Manifest, who: Name) -> None:
        """Adds the objects that a binding of an admission policy uses as parameters. Without a namespace, they are in
        the namespaces of the requests. If the policy is not known, they may be of any kind."""
        spec = _mapping(binding.get("spec"))
        reference = _mapping(spec.get("paramRef"))
        policy = _POLICIES_BY_BINDING[who[0]], _text(spec.get("policyName"))
        kinds = (self.param_kinds[policy],) if policy in self.param_kinds else ("ConfigMap", "Secret")
        for kind in kinds:
            if named := _text(reference.get("name")):
                self._add_reference((kind, _text(reference.get("namespace")), named), who)
            if (selector := _read_selector(reference.get("selector"))) is not None:
                self._selections.append((kind, _text(reference.get("namespace")), selector, who))

    def _add_custom_values(self, manifest: Manifest, who: Name) -> None:
        for key, text in _iterate_values({key: item for key, item in manifest.items() if key not in _NOT_FIELDS}, ""):
            for word in _WORD.findall(text.lower()):
                _remember(self._custom_words, word, who)
            for kind, hint in _FIELD_HINTS.items():
                if hint.search(key):
                    _remember(self._hints, (kind, text), who)

    def _walk_values(self, value: Any, who: Name) -> None:
        if isinstance(value, str):
            self._add_text(who, value)
        elif isinstance(value, Mapping):
            named, kind = value.get("name"), value.get("kind")
            namespace = value.get("namespace")
            if isinstance(named, str) and isinstance(namespace, str):
                self._add_word(namespace, named, who)
            if isinstance(named, str) and isinstance(kind, str) and kind:
                reference = (_referenced_kind(value, kind), namespace if isinstance(namespace, str) else who[1], named)
                self._add_reference(reference, who)
                value = {key: item for key, item in value.items() if key != "name"}
            for key, item in value.items():
                self._add_text(who, key)
                self._walk_values(item, who)
        elif isinstance(value, list):
            for item in value:
                self._walk_values(item, who)

    def _add_text(self, who: Name, text: str) -> None:
        lower = text.lower()
        for word in _WORD.findall(lower):
            self._add_word(who[1], word, who)
        if "/" in lower:
            for namespace, named in _QUALIFIED.findall(lower):
                self._add_word(namespace, named, who)

    def _add_word(self, namespace: str, word: str, who: Name) -> None:
        _remember(self._words, (namespace, word), who)

    def _add_reference(self, name: Name, who: Name) -> None:
        _remember(self._references, name, who)


_NOT_FIELDS = ("apiVersion", "kind", "metadata")
_FIELD_HINTS = {
    "Secret": re.compile("secret|credential|certificate|password|token|tls|auth", re.IGNORECASE),
    "ConfigMap": re.compile("config_?map", re.IGNORECASE),
}
"""Kind → what the names of fields contain that hold the name of such an object."""


def _iterate_values(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """Yields (key, text) of all texts. A text in `name` has the key of the mapping around it: in `secretRef: {name:
    x}`, the key of `x` is `secretRef`."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for inner_key, inner in value.items():
            yield from _iterate_values(inner, key if inner_key == "name" else str(inner_key))
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_values(inner, key)


def _read_selector(value: Any) -> LabelSelector | None:
    """Returns a label selector, or None if there is none that can be read."""
    try:
        return msgspec.convert(value, LabelSelector) if isinstance(value, Mapping) else None
    except msgspec.ValidationError:
        return None


def _referenced_kind(reference: Mapping[str, Any], kind: str) -> GroupKind:
    """Returns the kind of a reference, whose group may be in `apiVersion`, `apiGroup` or `group`."""
    version, group = _text(reference.get("apiVersion")), _text(reference.get("apiGroup") or reference.get("group"))
    return group_kind(version or (f"{group}/v1" if group else ""), kind)


def _remember(places: dict[Any, tuple[Name, ...]], key: Any, who: Name) -> None:
    before = places.get(key, ())
    if len(before) < 2 and who not in before:
        places[key] = (*before, who)


def index_mentions(manifests: Iterable[Manifest]) -> MentionIndex:
    """Returns an index of the mentions in all objects."""
    objects = tuple(manifests)
    index = MentionIndex(param_kinds=dict(_iterate_param_kinds(objects)))
    for manifest in objects:
        index.add_object(manifest)
    return index


def _iterate_param_kinds(manifests: Iterable[Manifest]) -> Iterator[tuple[tuple[str, str], GroupKind]]:
    for manifest in manifests:
        kind, _, own = name_of(manifest)
        if kind in _POLICIES_BY_BINDING.values():
            param = _mapping(_mapping(manifest.get("spec")).get("paramKind"))
            yield (kind, own), group_kind(_text(param.get("apiVersion")), _text(param.get("kind")))


def name_of(manifest: Manifest) -> Name:
    """Returns the kind, namespace and name of an object; a part that it lacks is empty."""
    metadata = _mapping(manifest.get("metadata"))
    return (kind_of_object(manifest) or GroupKind(""), _text(metadata.get("namespace")), _text(metadata.get("name")))


def iterate_pod_specs(manifest: Manifest) -> Iterator[Manifest]:
    """Yields the spec of a pod, and of every pod template in the usual fields: spec.template, spec.jobTemplate,
    template."""
    spec = _mapping(manifest.get("spec"))
    if kind_of_object(manifest) == POD:
        yield spec
    job = _mapping(_mapping(spec.get("jobTemplate")).get("spec"))
    for template in (spec.get("template"), job.get("template"), manifest.get("template")):
        inner = _mapping(_mapping(template).get("spec"))
        if isinstance(inner.get("containers"), list):
            yield inner


_REFERENCE_FIELDS = {
    "configMap": "ConfigMap",
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "secret": "Secret",
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
    "nodePublishSecretRef": "Secret",
}
"""Fields of a pod spec that hold a reference with a `name` → the kind of the object (core/v1)."""
_NAME_FIELDS = {"secretName": "Secret", "claimName": "PersistentVolumeClaim"}
"""Fields of a pod spec that are themselves the name of an object."""


def iterate_pod_references(spec: Manifest) -> Iterator[tuple[str, str]]:
    """Yields (kind, name) of every ConfigMap, Secret and claim to which a pod spec refers: in volumes (including
    projected ones), in environment variables and as image pull secrets."""
    for secret in _list(spec.get("imagePullSecrets")):
        if named := _text(_mapping(secret).get("name")):
            yield "Secret", named
    for part in ("volumes", "containers", "initContainers", "ephemeralContainers"):
        yield from _references_in(spec.get(part))


def _references_in(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in _REFERENCE_FIELDS and isinstance(item, Mapping) and (named := _text(item.get("name"))):
                yield _REFERENCE_FIELDS[key], named
            if key in _NAME_FIELDS and isinstance(item, str):
                yield _NAME_FIELDS[key], item
            yield from _references_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references_in(item)


def _iterate_pod_texts(spec: Manifest) -> Iterator[str]:
    """Yields the command lines and environment variables of a pod. They contain the names of objects that its programs
    read through the API."""
    for part in ("containers", "initContainers", "ephemeralContainers"):
        for container in _list(spec.get(part)):
            fields = _mapping(container)
            for text in (*_list(fields.get("command")), *_list(fields.get("args"))):
                if isinstance(text, str):
                    yield text
            for variable in _list(fields.get("env")):
                if value := _text(_mapping(variable).get("value")):
                    yield value


def _service_account_references(manifest: Manifest) -> Iterator[Name]:
    _, namespace, _ = name_of(manifest)
    for part in ("secrets", "imagePullSecrets"):
        for secret in _list(manifest.get(part)):
            yield "Secret", namespace, _text(_mapping(secret).get("name"))


def _ingress_references(manifest: Manifest) -> Iterator[Name]:
    _, namespace, _ = name_of(manifest)
    for entry in _list(_mapping(manifest.get("spec")).get("tls")):
        yield "Secret", namespace, _text(_mapping(entry).get("secretName"))


def _volume_references(manifest: Manifest) -> Iterator[Name]:
    """Yields the Secrets that a volume's driver uses. The volume's claimRef is not yielded, because every bound claim
    has one."""
    for source in _mapping(manifest.get("spec")).values():
        for key, reference in _mapping(source).items():
            if key.endswith(("SecretRef", "secretRef")):
                fields = _mapping(reference)
                yield "Secret", _text(fields.get("namespace")), _text(fields.get("name"))


def _claim_references(manifest: Manifest) -> Iterator[Name]:
    _, namespace, _ = name_of(manifest)
    spec = _mapping(manifest.get("spec"))
    for part in ("dataSource", "dataSourceRef"):
        source = _mapping(spec.get(part))
        yield _text(source.get("kind")), _text(source.get("namespace")) or namespace, _text(source.get("name"))


def _ingress_class_references(manifest: Manifest) -> Iterator[Name]:
    parameters = _mapping(_mapping(manifest.get("spec")).get("parameters"))
    kind = _referenced_kind(parameters, _text(parameters.get("kind")))
    yield kind, _text(parameters.get("namespace")), _text(parameters.get("name"))


def _storage_class_references(manifest: Manifest) -> Iterator[Name]:
    parameters = _mapping(manifest.get("parameters"))
    for key, value in parameters.items():
        if key.endswith("secret-name"):
            yield "Secret", _text(parameters.get(f"{key}space")), _text(value)


def _role_references(manifest: Manifest) -> Iterator[Name]:
    """Yields the objects that a role names one by one, because something reads them through the API."""
    _, namespace, _ = name_of(manifest)
    for rule in _list(manifest.get("rules")):
        fields = _mapping(rule)
        for plural, kind in (("configmaps", "ConfigMap"), ("secrets", "Secret"), ("persistentvolumeclaims", _CLAIM)):
            if plural in _list(fields.get("resources")):
                for named in _list(fields.get("resourceNames")):
                    yield kind, namespace, _text(named)


_CLAIM = "PersistentVolumeClaim"
_READERS = {
    "ServiceAccount": _service_account_references,
    "Ingress": _ingress_references,
    _CLAIM: _claim_references,
    "PersistentVolume": _volume_references,
    "StorageClass": _storage_class_references,
    "Role": _role_references,
    "ClusterRole": _role_references,
    "IngressClass": _ingress_class_references,
}
"""Built-in kind → a function that yields the objects to which its fields refer by kind and name."""
_POLICIES_BY_BINDING = {
    "ValidatingAdmissionPolicyBinding": "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding": "MutatingAdmissionPolicy",
}
"""Kind of a binding → kind of its policy, which names the kind of the parameters."""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
