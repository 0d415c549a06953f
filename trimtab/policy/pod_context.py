"""Which markers are our own, and of this very moment?

A marker is believed by a later call of the same request only: the API server calls us again within seconds. Time is
counted in slots, so that pods that are alike get the same marker, and the same answer, for a while.

Who is this pod, and what surrounds it?

Everything the policies ask about one pod, found once: its owners, its containers with their roles, its quality of
service, who else sizes it. A `PodContext` never changes while policies are asked.

Which of a pod's containers does a rule mean?

A pod before and after a decision: what a required action is held against.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeVar

from trimtab.cluster.api.meta import Labels, SelectorRequirement, get
from trimtab.cluster.api.pod import Container, Pod, PodSpec
from trimtab.cluster.owner import Owner
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import ContainerUsage
from trimtab.cluster.replicas import Replicas
from trimtab.cluster.resources import QoS, Role, qos, role
from trimtab.cluster.selectors import glob
from trimtab.cluster.signature import SigningKeys
from trimtab.policy.affinity_conflicts import required_terms
from trimtab.policy.cluster_facts import OWN_NAMESPACE, ClusterFacts
from trimtab.policy.lazy_property import computed_property

SLOT_SECONDS = 10
_MAX_SLOTS = 2
"""A marker of this many slots ago is believed: written 20 to 30 seconds ago."""
_MAX_SLOTS_AHEAD = 1
"""The clock of the replica that wrote it may be ahead of ours."""
_PURPOSE = "trimtab.dev/changed"


@dataclass(frozen=True, slots=True)
class MarkerSigner:
    """The webhook's keys and the time, as one value. Without keys nothing is signed and nothing is believed."""

    keys: SigningKeys | None = None
    slot: int = 0
    """Seconds since 1970, divided by `SLOT_SECONDS`."""

    @property
    def at(self) -> int:
        """What a marker says of when it was written: seconds since 1970."""
        return self.slot * SLOT_SECONDS

    def sign(self, at: int, *parts: str) -> str:
        """The signature; empty without keys."""
        return self.keys.sign(_PURPOSE, str(at), *parts) if self.keys is not None else ""

    def is_recent(self, at: int) -> bool:
        """Was it so short a while ago that it may be an earlier call of the same request?"""
        return -_MAX_SLOTS_AHEAD <= self.slot - at // SLOT_SECONDS <= _MAX_SLOTS

    def verifies(self, signature: str, at: int, *parts: str) -> bool:
        """Did a replica of ours sign these parts, just now?"""
        return self.keys is not None and self.is_recent(at) and self.keys.verify(signature, _PURPOSE, str(at), *parts)


UNSIGNED = MarkerSigner()


T = TypeVar("T")

OverheadBy = Literal["server", "webhook"]

OPT_OUT = "trimtab.dev/opt-out"
MIRROR = "kubernetes.io/config.mirror"
OS_LABEL = "kubernetes.io/os"
CRITICAL = ("system-cluster-critical", "system-node-critical")
"""PriorityClasses of pods without which the cluster, or a node, does not work."""


def _asks_for_windows(requirement: SelectorRequirement) -> bool:
    return requirement.key == OS_LABEL and requirement.operator == "In" and requirement.values == ("windows",)


NAME_LABEL = "kubernetes.io/metadata.name"
"""Every namespace has it, with its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionSettings:
    """What the installation says, whatever the policies say."""

    overhead: OverheadBy = "server"
    """Who writes `spec.overhead`: the API server's RuntimeClass admission, or (where that is off) we."""
    own_namespace: str = OWN_NAMESPACE
    system_namespaces: frozenset[str] = frozenset({"kube-system", "kube-node-lease", "kube-public"})
    """Their pods are never changed: the cluster needs them to come up, and they may be needed to start us."""
    paused: bool = False
    """One switch that stops all changes."""
    signer: MarkerSigner = field(default=UNSIGNED, compare=False)
    """Whose markers are believed. It changes with the time, which makes no other terms of these."""


DEFAULT_TERMS = AdmissionSettings()


def _says(value: str | None) -> bool:
    """Anything but an explicit no: whoever writes the key means it."""
    return value is not None and value.lower() not in ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True, eq=False)
class ContainerRef:
    """A container and where it stands in the pod. Two are the same only if they are one object."""

    part: Literal["containers", "initContainers"]
    index: int
    container: Container
    role: Role
    name: str = field(init=False)
    """As fields are named: `containers[app]`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.part}[{self.container.name}]")


Withheld = Mapping[tuple[str, str], Reason]
"""(policy, action) → why the action is not taken with this pod, although the policy means it."""


@dataclass(frozen=True, kw_only=True)
class PodContext:
    """One pod to decide about."""

    pod: Pod
    namespace: str
    """From the request; the pod's own field may be empty."""
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    terms: AdmissionSettings = DEFAULT_TERMS
    withheld: Withheld = field(default_factory=dict)
    """What the look at the outcome took back."""
    body: bytes = b""
    """The pod as it came, where that is known: it holds who wrote which field (`applied`)."""

    @computed_property
    def owners(self) -> tuple[Owner, ...]:
        """Nearest first; empty for a bare pod."""
        return self.facts.chain(self.pod, self.namespace)

    @computed_property
    def is_daemon(self) -> bool:
        """Does a DaemonSet make the pod?"""
        return any(owner.kind == "DaemonSet" for owner in self.owners)

    @computed_property
    def owner_names(self) -> tuple[str, ...]:
        """As policies write them, `Deployment/web`; a bare pod stands for itself."""
        return tuple(map(str, self.owners)) or (f"Pod/{self.pod.metadata.name}",)

    def once(self, find: "Callable[[PodContext], T]") -> T:
        """What `find` finds out of the pod and its surroundings, looked for when it is first asked for."""
        known: dict[Any, Any] = self._known
        if find not in known:
            known[find] = find(self)
        found: T = known[find]
        return found

    @computed_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def as_now(self, pod: Pod) -> "PodContext":
        """The same of another state of the pod: its owners, too, where nothing says other ones."""
        now = PodContext(
            pod=pod, namespace=self.namespace, facts=self.facts, terms=self.terms, withheld=self.withheld,
            body=self.body,
        )  # fmt: skip
        was, will = self.pod.metadata, pod.metadata
        if was.owner_references == will.owner_references and was.labels == will.labels:
            now.__dict__["owners"] = self.owners  # where `computed_property` keeps it
            now.__dict__["_usage"] = self._usage
        return now

    def without(self, withheld: Withheld) -> "PodContext":
        """The same pod where these actions are not taken: all that is known of it stays known."""
        now = PodContext(
            pod=self.pod, namespace=self.namespace, facts=self.facts, terms=self.terms, withheld=withheld,
            body=self.body,
        )  # fmt: skip
        self._known, self._usage  # noqa: B018 - computed now, so that both go on with the same
        for name, found in self.__dict__.items():
            now.__dict__.setdefault(name, found)
        return now

    def usage_of(self, container: str) -> tuple[tuple[Owner, ContainerUsage | NotYet], ...]:
        """What this container of each owner was seen to use, or why that is not known; the topmost owner first. None
        after one that tells of cpu and memory: nobody asks further."""
        if container not in self._usage:
            self._usage[container] = tuple(self._usage_found(container))
        return self._usage[container]

    @computed_property
    def _usage(self) -> dict[str, tuple[tuple[Owner, ContainerUsage | NotYet], ...]]:
        return {}

    def _usage_found(self, container: str) -> Iterator[tuple[Owner, ContainerUsage | NotYet]]:
        for owner in reversed(self.owners):
            usage = self.facts.recommendations.find(self.namespace, owner.kind, owner.name, container)
            yield owner, usage
            if isinstance(usage, ContainerUsage) and usage.cpu is not None and usage.memory is not None:
                return

    @property
    def replicas(self) -> Replicas | None:
        """How many pods the nearest owner that tells it wants; one for a bare pod; None where it is not known."""
        if not self.owners:
            return Replicas(wanted=1)
        found = (self.facts.replicas.get((self.namespace, owner.kind, owner.name)) for owner in self.owners)
        return next((replicas for replicas in found if replicas is not None), None)

    @property
    def top(self) -> Owner | None:
        """The controller people know by name; None for a bare pod."""
        return self.owners[-1] if self.owners else None

    @computed_property
    def places(self) -> tuple[ContainerRef, ...]:
        spec = self.pod.spec
        init = (ContainerRef("initContainers", i, c, role(c, init=True)) for i, c in enumerate(spec.init_containers))
        main = (ContainerRef("containers", i, c, Role.MAIN) for i, c in enumerate(spec.containers))
        return (*main, *init)

    @computed_property
    def qos(self) -> QoS:
        return qos(self.pod.spec)

    @computed_property
    def labels(self) -> Mapping[str, str]:
        return get(self.pod.metadata.labels, {})

    @computed_property
    def annotations(self) -> Mapping[str, str]:
        return get(self.pod.metadata.annotations, {})

    @computed_property
    def opt_out(self) -> Literal["pod", "namespace"] | None:
        """Who says `trimtab.dev/opt-out`: the pod by a label or an annotation, or else its namespace by a label."""
        if _says(self.annotations.get(OPT_OUT)) or _says(self.labels.get(OPT_OUT)):
            return "pod"
        return "namespace" if _says(self.facts.namespaces.get(self.namespace, {}).get(OPT_OUT)) else None

    @computed_property
    def namespace_labels(self) -> Labels | None:
        """None where the namespace is not known; its name label always is."""
        known = self.facts.namespaces.get(self.namespace)
        return None if known is None else {NAME_LABEL: self.namespace, **known}

    @computed_property
    def critical_class(self) -> str:
        """The system's PriorityClass that the pod names; empty where it names none of them."""
        name = get(self.pod.spec.priority_class_name, "")
        return name if name in CRITICAL else ""

    @property
    def windows(self) -> bool:
        """Does the pod run on Windows? By `spec.os`, or because it asks for nodes of that system."""
        spec = self.pod.spec
        os = get(spec.os, None)
        if os is not None:
            return os.name == "windows"
        if get(spec.node_selector, {}).get(OS_LABEL) == "windows":
            return True
        terms = required_terms(spec)
        return bool(terms) and all(any(map(_asks_for_windows, get(t.match_expressions, ()))) for t in terms)

    @property
    def identity(self) -> str:
        """Stable for all pods of one owner: what a rollout draws by."""
        metadata = self.pod.metadata
        name = str(self.top) if self.top else f"Pod/{metadata.name or metadata.generate_name}"
        return f"{self.namespace}/{name}"


def means(names: tuple[str, ...], roles: tuple[str, ...], images: tuple[str, ...], place: ContainerRef) -> bool:
    """Do these patterns mean this container? A list that is empty means all."""
    return (
        (not names or glob(names)(place.container.name))
        and (not roles or place.role in roles)
        and (not images or image_test(images)(place.container.image))
    )


@lru_cache(maxsize=1024)
def image_test(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test for images, as written or by their full name: `docker.io/*` matches `nginx:1.27` as well."""
    test = glob(patterns)
    return lambda image: test(image) or test(full_name(image))


def full_name(image: str) -> str:
    """With the registry that a short name leaves out (distribution/reference `splitDockerDomain`)."""
    return _remembered(image) if len(image) <= _MOST_REMEMBERED else _full_name(image)


_MOST_REMEMBERED = 512
"""Characters. Registries take no longer names, and thousands of longer ones must not stay in memory."""


def _full_name(image: str) -> str:
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


_remembered = lru_cache(maxsize=4096)(_full_name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBeforeAndAfter:
    """One pod as it came and as it will be, to one policy."""

    before: PodContext
    after: PodContext
    places: tuple[ContainerRef, ...]
    """The containers of the pod as it will be that the policy means."""
    left: Mapping[str, Reason]
    """Field → why the policy left it as it is."""

    @property
    def spec(self) -> PodSpec:
        """The spec as it will be."""
        return self.after.pod.spec
