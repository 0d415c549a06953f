"""Describes one pod with its surroundings as the policies see it: owners, containers and their roles, quality of
service, and recorded usage.

Every value is computed once, when a policy first reads it; a `PodContext` never changes while policies act.
`PodBeforeAndAfter` is what required actions are checked against.

The signer of the `trimtab.dev/changed` annotation is part of the settings. A later call of the same request trusts the
annotation, because the API server calls the webhook again within seconds. Time is counted in slots, so that equal pods
get the same annotation, and the same response, for a while.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeVar

import msgspec

from trimtab.cluster.api.meta import Labels, Metadata, SelectorRequirement, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSpec
from trimtab.cluster.bounded_cache import cache_short_strings
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import ContainerUsage
from trimtab.cluster.replicas import Replicas
from trimtab.cluster.resources import QoS, Role, qos_class, role_of
from trimtab.cluster.selectors import name_matcher
from trimtab.cluster.signature import SigningKeys
from trimtab.policy.affinity_conflicts import required_terms
from trimtab.policy.cluster_facts import OWN_NAMESPACE, ClusterFacts
from trimtab.policy.lazy_property import computed_property
from trimtab.policy.metadata_reads import MetadataReads, OwnerTest, RecordedValues

SLOT_SECONDS = 10
"""-"""
# An annotation of this many slots ago is still trusted: a replica wrote it 20 to 30 seconds ago.
_MAX_SLOTS = 2
# The clock of the replica that wrote the annotation may be ahead of this one's.
_MAX_SLOTS_AHEAD = 1
_PURPOSE = "trimtab.dev/changed"


@dataclass(frozen=True, slots=True)
class MarkerSigner:
    """The webhook's signing keys and the time, as one value. Without keys nothing is signed and nothing is trusted."""

    keys: SigningKeys | None = None
    slot: int = 0
    """Seconds since 1970, divided by `SLOT_SECONDS`."""

    @property
    def timestamp_seconds(self) -> int:
        """The time that an annotation records: seconds since 1970, at the beginning of the slot."""
        return self.slot * SLOT_SECONDS

    def sign_parts(self, at: int, *parts: str) -> str:
        """Returns the signature, or an empty string without keys."""
        return self.keys.sign(_PURPOSE, str(at), *parts) if self.keys is not None else ""

    def is_recent(self, at: int) -> bool:
        """Returns whether the time is so recent that it may be an earlier call of the same request."""
        return -_MAX_SLOTS_AHEAD <= self.slot - at // SLOT_SECONDS <= _MAX_SLOTS

    def verify_signature(self, signature: str, at: int, *parts: str) -> bool:
        """Returns whether a replica of Trimtab signed these parts within the last seconds."""
        return self.keys is not None and self.is_recent(at) and self.keys.verify(signature, _PURPOSE, str(at), *parts)


UNSIGNED = MarkerSigner()


T = TypeVar("T")

OverheadBy = Literal["server", "webhook"]

OPT_OUT = "trimtab.dev/opt-out"
MIRROR = "kubernetes.io/config.mirror"
OS_LABEL = "kubernetes.io/os"
CRITICAL = ("system-cluster-critical", "system-node-critical")
"""PriorityClasses of pods that the cluster, or a node, needs to work."""


def _requires_windows(requirement: SelectorRequirement) -> bool:
    return requirement.key == OS_LABEL and requirement.operator == "In" and requirement.values == ("windows",)


NAME_LABEL = "kubernetes.io/metadata.name"
"""The label with its own name that every namespace has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """The installation's own settings, which hold whatever the policies contain."""

    overhead: OverheadBy = "server"
    """Who writes `spec.overhead`: the API server's RuntimeClass admission plugin or, where that is off, the webhook."""
    own_namespace: str = OWN_NAMESPACE
    system_namespaces: frozenset[str] = frozenset({"kube-system", "kube-node-lease", "kube-public"})
    """Pods of these namespaces are never changed: the cluster needs them to start, and the webhook may need them to
    start."""
    paused: bool = False
    """Stops all changes."""
    signer: MarkerSigner = field(default=UNSIGNED, compare=False)
    """Whose annotations are trusted. It changes with the time, so it takes no part in comparisons of settings."""


DEFAULT_SETTINGS = AdmissionSettings()


def _is_enabled_value(value: str | None) -> bool:
    """Returns whether the value is anything but an explicit no: setting the key alone is a yes."""
    # The same words in any case, as YAML 1.1 reads them.
    return value is not None and value.lower() not in ("false", "no", "off", "0")


class ContainerRef(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A container and its position in the pod. Two references are equal only if they are one object."""

    part: Literal["containers", "initContainers"]
    index: int
    container: Container
    role: Role
    name: str
    """The name that fields have: `containers[app]`."""


Withheld = Mapping[tuple[str, str], Reason]
"""(policy, action) → why the action is withheld from this pod, although the policy matches it."""


# A struct, because building a frozen dataclass costs more, and a decision takes several contexts; `dict` holds the
# computed properties.
class PodContext(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One pod that the policies decide on."""

    pod: Pod
    namespace: str
    """From the request; the pod's own field may be empty."""
    facts: ClusterFacts = msgspec.field(default_factory=ClusterFacts)
    settings: AdmissionSettings = DEFAULT_SETTINGS
    withheld: Withheld = msgspec.field(default_factory=dict)
    """Actions that the check of the outcome took back."""
    body: bytes = b""
    """The pod as JSON in the request, where that is available: it holds which manager wrote which field
    (`field_owners`)."""
    reads: MetadataReads | None = None
    """Records what is read of the metadata; None: nothing is recorded."""

    @computed_property
    def owners(self) -> tuple[Owner, ...]:
        """Owners of the pod, the nearest first, or an empty tuple for a bare pod."""
        return self.facts.owner_chain(self.pod, self.namespace)

    @computed_property
    def is_daemon(self) -> bool:
        """True if a DaemonSet creates the pod."""
        return any(owner.kind == "DaemonSet" for owner in self.owners)

    @computed_property
    def owner_names(self) -> tuple[str, ...]:
        """Owners as policies name them, such as `Deployment/web`; a pod without an owner is its own owner."""
        return tuple(map(str, self.owners)) or (f"Pod/{self.pod.metadata.name}",)

    def compute_once(self, find: "Callable[[PodContext], T]") -> T:
        """Returns `find(self)`, computed when it is first needed."""
        cache: dict[Any, Any] = self._computed
        if find not in cache:
            cache[find] = find(self)
        value: T = cache[find]
        return value

    @computed_property
    def _computed(self) -> dict[Any, Any]:
        return {}

    def with_pod(self, pod: Pod) -> "PodContext":
        """Returns the context of another state of the pod. Owners and usage are kept where labels and owner references
        are the same."""
        # A decision, and the check that deciding again changes nothing, ask for the same state.
        if self._last_successor is not None and self._last_successor.pod is pod:
            return self._last_successor
        context = PodContext(
            pod=pod, namespace=self.namespace, facts=self.facts, settings=self.settings, withheld=self.withheld,
            body=self.body, reads=self.reads,
        )  # fmt: skip
        before, after = self.pod.metadata, pod.metadata
        if before.owner_references == after.owner_references and before.labels == after.labels:
            context.__dict__["owners"] = self.owners  # where `computed_property` stores its value
            context.__dict__["_usage"] = self._usage
        self.__dict__["_last_successor"] = context
        return context

    @computed_property
    def _last_successor(self) -> "PodContext | None":
        return None

    def with_withheld(self, withheld: Withheld) -> "PodContext":
        """Returns the context of the same pod with these actions withheld. All that has been computed about the pod is
        kept."""
        context = PodContext(
            pod=self.pod, namespace=self.namespace, facts=self.facts, settings=self.settings, withheld=withheld,
            body=self.body, reads=self.reads,
        )  # fmt: skip
        self._computed, self._usage  # noqa: B018 - computed now, so that both contexts share the same dicts
        context.__dict__.update(self.__dict__)
        # The next state has other actions withheld.
        context.__dict__["_last_successor"] = None
        return context

    def usage_of(self, container: str) -> tuple[tuple[Owner, ContainerUsage | NotYet], ...]:
        """Returns the recorded usage of this container for each owner, the topmost first, or why there is none. It ends
        with the first owner that has usage of cpu and memory: no later one is ever needed."""
        if container not in self._usage:
            self._usage[container] = tuple(self._find_usage(container))
        return self._usage[container]

    @computed_property
    def _usage(self) -> dict[str, tuple[tuple[Owner, ContainerUsage | NotYet], ...]]:
        return {}

    def _find_usage(self, container: str) -> Iterator[tuple[Owner, ContainerUsage | NotYet]]:
        # The topmost owner lives longest, so it has the longest history.
        for owner in reversed(self.owners):
            usage = self.facts.recommendations.find_usage(self.namespace, owner.kind, owner.name, container)
            yield owner, usage
            if isinstance(usage, ContainerUsage) and usage.cpu is not None and usage.memory is not None:
                return

    @property
    def replicas(self) -> Replicas | None:
        """The number of pods that the nearest owner with a number wants; one for a bare pod, or None if it is not
        known."""
        if not self.owners:
            return Replicas(wanted=1)
        by_owner = (self.facts.replicas.get((self.namespace, owner.kind, owner.name)) for owner in self.owners)
        return next((replicas for replicas in by_owner if replicas is not None), None)

    @property
    def top_owner(self) -> Owner | None:
        """The topmost controller, which users know by name, or None for a bare pod."""
        return self.owners[-1] if self.owners else None

    @computed_property
    def container_refs(self) -> tuple[ContainerRef, ...]:
        """The containers with their roles: main containers first, then init containers and sidecars."""
        spec = self.pod.spec
        references = [
            ContainerRef("containers", index, container, Role.MAIN, f"containers[{container.name}]")
            for index, container in enumerate(spec.containers)
        ]
        for index, container in enumerate(spec.init_containers):
            role, name = role_of(container, init=True), f"initContainers[{container.name}]"
            references.append(ContainerRef("initContainers", index, container, role, name))
        return tuple(references)

    @computed_property
    def qos(self) -> QoS:
        """The pod's quality of service class, computed as the API server computes `status.qosClass`."""
        return qos_class(self.pod.spec)

    @computed_property
    def labels(self) -> Mapping[str, str]:
        return self.labels_of(self.pod.metadata)

    @computed_property
    def annotations(self) -> Mapping[str, str]:
        return self.annotations_of(self.pod.metadata)

    def labels_of(self, metadata: Metadata) -> Mapping[str, str]:
        """Returns the labels in another state of the pod's metadata."""
        labels = value_or(metadata.labels, {})
        return labels if self.reads is None else RecordedValues(labels, self.reads.labels)

    def annotations_of(self, metadata: Metadata) -> Mapping[str, str]:
        """Returns the annotations in another state of the pod's metadata."""
        annotations = value_or(metadata.annotations, {})
        return annotations if self.reads is None else RecordedValues(annotations, self.reads.annotations)

    def has_owner(self, is_wanted: OwnerTest) -> bool:
        """Returns whether the test holds for any owner."""
        names = self.owner_names
        if self.reads is not None:
            self.reads.owner_tests[is_wanted] = is_wanted(names[0])
        return any(map(is_wanted, names))

    @computed_property
    def opt_out(self) -> Literal["pod", "namespace"] | None:
        """The object that sets `trimtab.dev/opt-out`: the pod (label or annotation), or else its namespace (label);
        None: neither."""
        if _is_enabled_value(self.annotations.get(OPT_OUT)) or _is_enabled_value(self.labels.get(OPT_OUT)):
            return "pod"
        return "namespace" if _is_enabled_value(self.facts.namespaces.get(self.namespace, {}).get(OPT_OUT)) else None

    @computed_property
    def namespace_labels(self) -> Labels | None:
        """The labels of the namespace with its name label, or None if the namespace is not known."""
        labels = self.facts.namespaces.get(self.namespace)
        return None if labels is None else {NAME_LABEL: self.namespace, **labels}

    @computed_property
    def critical_class(self) -> str:
        """The system's PriorityClass that the pod names, or an empty string if it names none of them."""
        name = value_or(self.pod.spec.priority_class_name, "")
        return name if name in CRITICAL else ""

    @property
    def is_windows(self) -> bool:
        """True if the pod runs on Windows: by `spec.os`, or because it requires nodes of that system."""
        spec = self.pod.spec
        os = value_or(spec.os, None)
        # `spec.os` is authoritative where it is set (KEP-2802); the selector is how older manifests choose the system.
        if os is not None:
            return os.name == "windows"
        if value_or(spec.node_selector, {}).get(OS_LABEL) == "windows":
            return True
        # Terms are ORed, so all of them must require Windows; the expressions of one term are ANDed.
        terms = required_terms(spec)
        return bool(terms) and all(any(map(_requires_windows, value_or(t.match_expressions, ()))) for t in terms)

    @property
    def rollout_identity(self) -> str:
        """The key that a rollout selects by; the same for all pods of one owner."""
        metadata = self.pod.metadata
        name = str(self.top_owner) if self.top_owner else f"Pod/{metadata.name or metadata.generate_name}"
        return f"{self.namespace}/{name}"


def matches_container(
    names: tuple[str, ...], roles: tuple[str, ...], images: tuple[str, ...], place: ContainerRef
) -> bool:
    """Returns whether these patterns select this container. An empty list selects all."""
    return (
        (not names or name_matcher(names)(place.container.name))
        and (not roles or place.role in roles)
        and (not images or image_test(images)(place.container.image))
    )


@lru_cache(maxsize=1024)
def image_test(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Compiles a test for images as written or by their full name: `docker.io/*` matches `nginx:1.27`, too."""
    test = name_matcher(patterns)
    return lambda image: test(image) or test(full_image_name(image))


# Registries take no longer names.
@cache_short_strings(max_length=512, max_entries=4096)
def full_image_name(image: str) -> str:
    """Returns the image with the registry that a short name leaves out (distribution/reference `splitDockerDomain`)."""
    first, slash, _ = image.partition("/")
    # The same test as in distribution/reference: a first part with a dot, a port or upper case is a registry.
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBeforeAndAfter:
    """One pod before and after the decision, as one policy sees it."""

    before: PodContext
    after: PodContext
    places: tuple[ContainerRef, ...]
    """The containers of the pod as it will be that the policy selects."""
    kept_reasons: Mapping[str, Reason]
    """Field → why the policy left it as it is."""

    @property
    def spec(self) -> PodSpec:
        """The spec of the pod as it will be."""
        return self.after.pod.spec
