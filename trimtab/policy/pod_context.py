"""Describes one pod and its surroundings as the policies see them: owners, containers and their roles, quality of
service, and recorded usage.

Every value is computed once, when a policy first reads it; a `PodContext` does not change while policies act.
`PodBeforeAndAfter` is what required actions, and objections to the outcome, are checked against.

The settings contain the signer of the `trimtab.dev/changed` annotation. A later call of the webhook for the same
request trusts an annotation with its signature if it is less than 30 seconds old. Time is counted in slots of several
seconds, so that equal pods get the same annotation, and so the same response, for a while.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import msgspec

from trimtab.cluster.api.meta import Labels, Metadata, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSpec
from trimtab.cluster.kinds import DAEMON_SET, kind_name
from trimtab.cluster.operating_system import mentions_windows_options, read_security_contexts, runs_on_windows
from trimtab.cluster.overhead_writer import BY_SERVER, OverheadWriter
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import ContainerUsage
from trimtab.cluster.replicas import Replicas
from trimtab.cluster.resources import QoS, Role, qos_class, role_of
from trimtab.cluster.selectors import name_matcher
from trimtab.cluster.signature import SigningKeys
from trimtab.policy.cluster_facts import OWN_NAMESPACE, ClusterFacts
from trimtab.policy.decision_reads import MetadataReads, OwnerTest, RecordedValues
from trimtab.policy.image_names import image_test

SLOT_SECONDS = 10
"""The length of a time slot in seconds (see the module's docstring)."""
# An annotation of this many slots ago is still trusted: a replica wrote it 20 to 30 seconds ago.
_MAX_SLOTS = 2
# The clock of the replica that wrote the annotation may be ahead of this one's.
_MAX_SLOTS_AHEAD = 1
_PURPOSE = "trimtab.dev/changed"


@dataclass(frozen=True, slots=True)
class MarkerSigner:
    """The webhook's signing keys and the current time. Without keys, nothing is signed and no annotation is trusted."""

    keys: SigningKeys | None = None
    slot: int = 0
    """The current time slot: seconds since 1970, divided by `SLOT_SECONDS`."""

    @property
    def timestamp_seconds(self) -> int:
        """The time that is written into an annotation, in seconds since 1970: the beginning of the slot."""
        return self.slot * SLOT_SECONDS

    def sign_parts(self, at: int, *parts: str) -> str:
        """Returns the signature of these parts, or an empty string if there are no keys."""
        return self.keys.sign(_PURPOSE, str(at), *parts) if self.keys is not None else ""

    def is_recent(self, at: int) -> bool:
        """Returns whether the time is so recent (at most 30 seconds ago) that an earlier call for the same admission
        request may have written it."""
        return -_MAX_SLOTS_AHEAD <= self.slot - at // SLOT_SECONDS <= _MAX_SLOTS

    def verify_signature(self, signature: str, at: int, *parts: str) -> bool:
        """Returns whether a replica of Trimtab signed these parts so recently (at most 30 seconds ago) that the
        signature may be trusted."""
        return self.keys is not None and self.is_recent(at) and self.keys.verify(signature, _PURPOSE, str(at), *parts)


UNSIGNED = MarkerSigner()


T = TypeVar("T")

OPT_OUT = "trimtab.dev/opt-out"
MIRROR = "kubernetes.io/config.mirror"
CRITICAL = ("system-cluster-critical", "system-node-critical")
"""The PriorityClasses of pods that the cluster, or a node, cannot work without."""


NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that every namespace has, with its own name as the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """Settings of the installation, which hold whatever the policies contain."""

    overhead: OverheadWriter = BY_SERVER
    """What sets `spec.overhead`: the API server's RuntimeClass admission plugin or, if that is off, the webhook."""
    own_namespace: str = OWN_NAMESPACE
    system_namespaces: frozenset[str] = frozenset({"kube-system", "kube-node-lease", "kube-public"})
    """The namespaces whose pods are never changed: the cluster, and perhaps the webhook itself, needs these pods in
    order to start."""
    paused: bool = False
    """Whether all changes are stopped."""
    signer: MarkerSigner = field(default=UNSIGNED, compare=False)
    """Signs and verifies annotations. It contains the time, so it is left out when settings are compared."""


DEFAULT_SETTINGS = AdmissionSettings()


def _is_enabled_value(value: str | None) -> bool:
    """Returns whether the value is anything but an explicit "no"; a label or annotation with an empty value means
    "yes"."""
    # The same words in any case, as YAML 1.1 reads them.
    return value is not None and value.lower() not in ("false", "no", "off", "0")


class ContainerRef(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A container and its position in the pod. Two references are equal only if they are the same object."""

    part: Literal["containers", "initContainers"]
    index: int
    container: Container
    role: Role
    name: str
    """The container as field names contain it: `containers[app]`."""


Withheld = Mapping[tuple[str, str], Reason]
"""(policy, action) → why the action is not applied to this pod, although the policy matches the pod."""


class computed_property(Generic[T]):
    """Computes an attribute of an object when it is first read, and stores it with the object. Only one thread may use
    the object.

    `functools.cached_property` does the same, but up to Python 3.11 it takes a lock, which costs more time than most of
    what is computed about a pod.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        # Python looks in the instance's `__dict__` before it calls a descriptor without `__set__`, so this runs once.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


# A struct, because building a frozen dataclass costs more, and a decision takes several contexts; `dict` holds the
# computed properties.
class PodContext(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One pod on which the policies decide, with its surroundings."""

    pod: Pod
    namespace: str
    """The namespace of the admission request; the field of the pod itself may be empty."""
    facts: ClusterFacts = msgspec.field(default_factory=ClusterFacts)
    settings: AdmissionSettings = DEFAULT_SETTINGS
    withheld: Withheld = msgspec.field(default_factory=dict)
    """Actions that are not applied, because the check of the result found a problem with them."""
    body: bytes = b""
    """The pod as JSON, as it is in the admission request, if that is available. `field_owners` reads from it which
    manager wrote which field."""
    reads: MetadataReads | None = None
    """The record of the values that are read from the pod's metadata; None if nothing is recorded."""

    @computed_property
    def owners(self) -> tuple[OwnerKey, ...]:
        """The owners of the pod, the direct one first; an empty tuple for a pod without an owner."""
        return self.facts.owner_chain(self.pod, self.namespace)

    @computed_property
    def is_daemon(self) -> bool:
        """Whether a DaemonSet has created the pod."""
        return any(owner.kind == DAEMON_SET for owner in self.owners)

    @computed_property
    def owner_names(self) -> tuple[str, ...]:
        """The owners in the form that policies use (see `name_owners`)."""
        return name_owners(self.owners, self.pod.metadata)

    def compute_once(self, find: "Callable[[PodContext], T]") -> T:
        """Returns `find(self)`. The result is computed at the first call and kept for each function `find`."""
        cache: dict[Any, Any] = self._computed
        if find not in cache:
            cache[find] = find(self)
        value: T = cache[find]
        return value

    @computed_property
    def _computed(self) -> dict[Any, Any]:
        return {}

    @computed_property
    def computed_of_owners(self) -> dict[Any, Any]:
        """What was computed from nothing but the owners, the facts and its own key. All states of the pod with the same
        owners share it."""
        return {}

    def with_pod(self, pod: Pod) -> "PodContext":
        """Returns the context of the same pod after a change. Owners are not computed again if labels and owner
        references are the same, and what depends on owners is not if these are the same."""
        # A decision, and the check that deciding again changes nothing, ask for the same state.
        if self._last_successor is not None and self._last_successor.pod is pod:
            return self._last_successor
        context = PodContext(
            pod=pod,
            namespace=self.namespace,
            facts=self.facts,
            settings=self.settings,
            withheld=self.withheld,
            body=self.body,
            reads=self.reads,
        )
        before, after = self.pod.metadata, pod.metadata
        if before.owner_references == after.owner_references and before.labels == after.labels:
            context.__dict__["owners"] = self.owners  # where `computed_property` stores its value
        if context.owners == self.owners:
            context.__dict__["_usage"] = self._usage
            context.__dict__["computed_of_owners"] = self.computed_of_owners
        self.__dict__["_last_successor"] = context
        return context

    @computed_property
    def _last_successor(self) -> "PodContext | None":
        return None

    def with_withheld(self, withheld: Withheld) -> "PodContext":
        """Returns the context of the same pod with these actions withheld. Everything that was computed about the pod
        is kept."""
        context = PodContext(
            pod=self.pod,
            namespace=self.namespace,
            facts=self.facts,
            settings=self.settings,
            withheld=withheld,
            body=self.body,
            reads=self.reads,
        )
        # Computed now, so that both contexts share the same dicts.
        self._computed, self._usage, self.computed_of_owners  # noqa: B018
        context.__dict__.update(self.__dict__)
        # The next state has other actions withheld.
        context.__dict__["_last_successor"] = None
        return context

    def usage_of(self, container: str) -> tuple[tuple[OwnerKey, ContainerUsage | NotYet], ...]:
        """Returns, for each owner from the topmost on, the recorded usage of this container or why there is none. The
        list ends with the first owner that has usage of both cpu and memory, because later ones are never needed."""
        if container not in self._usage:
            self._usage[container] = tuple(self._find_usage(container))
        return self._usage[container]

    @computed_property
    def _usage(self) -> dict[str, tuple[tuple[OwnerKey, ContainerUsage | NotYet], ...]]:
        return {}

    def _find_usage(self, container: str) -> Iterator[tuple[OwnerKey, ContainerUsage | NotYet]]:
        # The topmost owner lives longest, so it has the longest history.
        for owner in reversed(self.owners):
            usage = self.facts.recommendations.find_usage(owner, container)
            yield owner, usage
            if isinstance(usage, ContainerUsage) and usage.cpu is not None and usage.memory is not None:
                return

    @property
    def replicas(self) -> Replicas | None:
        """The number of pods that the pod's nearest owner with such a number wants. One for a pod without an owner;
        None if it is not known."""
        if not self.owners:
            return Replicas(wanted=1)
        by_owner = (self.facts.replicas.get(owner) for owner in self.owners)
        return next((replicas for replicas in by_owner if replicas is not None), None)

    @property
    def top_owner(self) -> OwnerKey | None:
        """The topmost controller, which users know by name, or None for a pod without an owner."""
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
        """Returns the labels in `metadata`, which may be those of the changed pod."""
        labels = value_or(metadata.labels, {})
        return labels if self.reads is None else RecordedValues(labels, self.reads.labels)

    def annotations_of(self, metadata: Metadata) -> Mapping[str, str]:
        """Returns the annotations in `metadata`, which may be those of the changed pod."""
        annotations = value_or(metadata.annotations, {})
        return annotations if self.reads is None else RecordedValues(annotations, self.reads.annotations)

    def has_owner(self, is_wanted: OwnerTest) -> bool:
        """Returns whether the test is true for any owner of the pod."""
        names = self.owner_names
        if self.reads is not None:
            self.reads.owner_tests[is_wanted] = is_wanted(names[0])
        return any(map(is_wanted, names))

    @computed_property
    def opt_out(self) -> Literal["pod", "namespace"] | None:
        """Where `trimtab.dev/opt-out` is set: on the pod (label or annotation), or else on its namespace (label). None:
        on neither."""
        if _is_enabled_value(self.annotations.get(OPT_OUT)) or _is_enabled_value(self.labels.get(OPT_OUT)):
            return "pod"
        return "namespace" if _is_enabled_value(self.facts.namespaces.get(self.namespace, {}).get(OPT_OUT)) else None

    @computed_property
    def namespace_labels(self) -> Labels | None:
        """The labels of the namespace, including the label with its name, or None if the namespace is not known."""
        labels = self.facts.namespaces.get(self.namespace)
        return None if labels is None else {NAME_LABEL: self.namespace, **labels}

    @computed_property
    def critical_class(self) -> str:
        """The system's PriorityClass that the pod names, or an empty string if it names none of them."""
        name = value_or(self.pod.spec.priority_class_name, "")
        return name if name in CRITICAL else ""

    @computed_property
    def is_windows(self) -> bool:
        """Whether the pod runs on Windows."""
        spec = self.pod.spec
        # Where the API server's RuntimeClass plugin is off, the pod does not contain what its class selects.
        name = value_or(spec.runtime_class_name, "")
        runtime_class = self.facts.runtime_classes.get(name) if name else None
        selector = runtime_class.scheduling.node_selector if runtime_class is not None else {}
        # The pod of a review is decoded without the security contexts of its containers.
        more = read_security_contexts(self.body) if mentions_windows_options(self.body) else ()
        return runs_on_windows(spec, selector, more)

    @property
    def rollout_identity(self) -> str:
        """The text that is hashed for a rollout; it is the same for all pods of one owner."""
        return identify_for_rollout(self.namespace, self.owners, self.pod.metadata)


def identify_for_rollout(namespace: str, owners: tuple[OwnerKey, ...], metadata: Metadata) -> str:
    """Returns the text that is hashed for a rollout: the topmost of a pod's owners, or the pod if it has none."""
    if not owners:
        return f"{namespace}/Pod/{metadata.name or metadata.generate_name}"
    # Without the group, as before owners had one: the same owners must stay in the rollout.
    return f"{namespace}/{kind_name(owners[-1].kind)}/{owners[-1].name}"


def name_owners(owners: tuple[OwnerKey, ...], metadata: Metadata) -> tuple[str, ...]:
    """Returns a pod's owners in the form that policies use, such as `Deployment/web`. A pod without an owner counts as
    its own owner."""
    return tuple(map(str, owners)) or (f"Pod/{metadata.name}",)


def matches_container(
    names: tuple[str, ...], roles: tuple[str, ...], images: tuple[str, ...], container: ContainerRef
) -> bool:
    """Returns whether these patterns select this container. An empty list selects all."""
    return (
        (not names or name_matcher(names)(container.container.name))
        and (not roles or container.role in roles)
        and (not images or image_test(images)(container.container.image))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBeforeAndAfter:
    """One pod before and after the decision. For a required action, also the containers and reasons of its policy."""

    before: PodContext
    after: PodContext
    places: tuple[ContainerRef, ...] = ()
    """The containers that the policy selects in the pod after the decision."""
    kept_reasons: Mapping[str, Reason] = field(default_factory=dict)
    """Field → why the policy did not change it."""

    @property
    def spec(self) -> PodSpec:
        """The spec of the pod after the decision."""
        return self.after.pod.spec
