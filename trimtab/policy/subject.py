"""Who is this pod, and what surrounds it?

Everything the policies ask about one pod, found once: its owners, its containers with their roles, its quality of
service, who else sizes it. A `Subject` never changes while policies are asked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import msgspec

from trimtab.cluster.api.meta import Labels, get
from trimtab.cluster.api.pod import Container, Pod
from trimtab.cluster.owner import Owner
from trimtab.cluster.resources import QoS, Role, qos, role
from trimtab.policy.facts import OWN_NAMESPACE, Facts

T = TypeVar("T")

OverheadBy = Literal["server", "webhook"]

OPT_OUT = "trimtab.dev/opt-out"
MIRROR = "kubernetes.io/config.mirror"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` compares with at the next time."""


class _WrittenSpec(msgspec.Struct):
    tolerations: list[msgspec.Raw] | None = None


class _Written(msgspec.Struct):
    """The annotation `APPLIED`: a pod as its author wrote it, as far as it is asked here."""

    spec: _WrittenSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the installation says, whatever the policies say."""

    overhead: OverheadBy = "server"
    """Who writes `spec.overhead`: the API server's RuntimeClass admission, or (where that is off) we."""
    own_namespace: str = OWN_NAMESPACE
    system_namespaces: frozenset[str] = frozenset({"kube-system", "kube-node-lease", "kube-public"})
    """Their pods are never changed: the cluster needs them to come up, and they may be needed to start us."""
    paused: bool = False
    """One switch that stops all changes."""


DEFAULT_TERMS = Terms()


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A container and where it stands in the pod. Two are the same only if they are one object."""

    part: Literal["containers", "initContainers"]
    index: int
    container: Container
    role: Role
    name: str = field(init=False)
    """As fields are named: `containers[app]`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.part}[{self.container.name}]")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One pod to decide about."""

    pod: Pod
    namespace: str
    """From the request; the pod's own field may be empty."""
    facts: Facts = field(default_factory=Facts)
    terms: Terms = DEFAULT_TERMS

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """Nearest first; empty for a bare pod."""
        return self.facts.chain(self.pod, self.namespace)

    @cached_property
    def owner_names(self) -> tuple[str, ...]:
        """As policies write them, `Deployment/web`; a bare pod stands for itself."""
        return tuple(map(str, self.owners)) or (f"Pod/{self.pod.metadata.name}",)

    def once(self, find: "Callable[[Subject], T]") -> T:
        """What `find` finds out of the pod and its surroundings, looked for when it is first asked for."""
        known: dict[Any, Any] = self._known
        if find not in known:
            known[find] = find(self)
        found: T = known[find]
        return found

    @cached_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def as_now(self, pod: Pod) -> "Subject":
        """The same of another state of the pod: its owners, too, where nothing says other ones."""
        now = Subject(pod=pod, namespace=self.namespace, facts=self.facts, terms=self.terms)
        was, will = self.pod.metadata, pod.metadata
        if was.owner_references == will.owner_references and was.labels == will.labels:
            now.__dict__["owners"] = self.owners  # where cached_property looks
        return now

    @property
    def top(self) -> Owner | None:
        """The controller people know by name; None for a bare pod."""
        return self.owners[-1] if self.owners else None

    @cached_property
    def places(self) -> tuple[Place, ...]:
        spec = self.pod.spec
        init = (Place("initContainers", i, c, role(c, init=True)) for i, c in enumerate(spec.init_containers))
        main = (Place("containers", i, c, Role.MAIN) for i, c in enumerate(spec.containers))
        return (*main, *init)

    @cached_property
    def qos(self) -> QoS:
        return qos(self.pod.spec)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        return get(self.pod.metadata.labels, {})

    @cached_property
    def annotations(self) -> Mapping[str, str]:
        return get(self.pod.metadata.annotations, {})

    @property
    def applied(self) -> bool:
        """Is the pod itself, not its owner, kept by `kubectl apply`? Server-side apply leaves no such sign."""
        return APPLIED in self.annotations and not self.owners

    @cached_property
    def tolerations_applied(self) -> bool:
        """Does `kubectl apply` keep the pod's tolerations? It compares them as one list: with another one in the pod,
        it would take that away, and the API server refuses that. What nobody wrote, it does not look at."""
        if not self.applied:
            return False
        try:
            return bool(msgspec.json.decode(self.annotations[APPLIED], type=_Written).spec.tolerations)
        except (msgspec.DecodeError, RecursionError):
            return True

    @property
    def namespace_labels(self) -> Labels | None:
        """None where the namespace is not known; its name label always is."""
        known = self.facts.namespaces.get(self.namespace)
        return None if known is None else {"kubernetes.io/metadata.name": self.namespace, **known}

    @property
    def windows(self) -> bool:
        os = get(self.pod.spec.os, None)
        return os is not None and os.name == "windows"

    @property
    def identity(self) -> str:
        """Stable for all pods of one owner: what a rollout draws by."""
        metadata = self.pod.metadata
        name = str(self.top) if self.top else f"Pod/{metadata.name or metadata.generate_name}"
        return f"{self.namespace}/{name}"
