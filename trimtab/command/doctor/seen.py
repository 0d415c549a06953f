"""What was read of a cluster, before anybody judges it.

Whatever could not be looked at is `Unreadable` with the reason; None is what is not there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias, TypeVar

import certs
from trimtab.cluster.autoscaler import Autoscaler
from trimtab.cluster.pool_file import PoolReading
from trimtab.cluster.reason import Unreadable

T = TypeVar("T")
Read: TypeAlias = T | Unreadable
"""Read, or why not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How the API server answered to something that was not to be stored."""

    status: int
    message: str = ""
    """Why it was refused; empty where it was not."""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    """From asking to the answer."""

    @property
    def lacks_right(self) -> bool:
        """Was it refused to whoever asked, before any webhook was called?"""
        return self.status in (401, 403) and " cannot " in self.message and "denied the request" not in self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A Deployment of ours."""

    wanted: int
    ready: int
    settings: Mapping[str, str] = field(default_factory=dict)
    """The environment of its container, as far as it stands there as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One webhook of a configuration."""

    name: str
    place: str
    """The path it is called at."""
    service: tuple[str, str] | None = None
    """(namespace, name); None where it is called by a URL."""
    bundle: bytes = b""
    fails: bool = True
    """failurePolicy: Fail."""
    timeout: int = 10
    again: bool = False
    """reinvocationPolicy: IfNeeded."""
    creates_pods: bool = False
    """Is it called for pods that are created?"""
    spares: frozenset[str] = frozenset()
    """Namespaces that its selector leaves out by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A webhook configuration."""

    name: str
    hooks: tuple[Hook, ...] = ()
    injected: bool = False
    """cert-manager keeps its caBundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    holder: str
    renewed: datetime | None
    lasts: int
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A PodPolicy, by its status."""

    name: str
    mode: str
    generation: int
    observed: int
    """The generation its status is about; 0 while it has none."""
    broken: str = ""
    """Why the document makes no sense."""
    braked: str = ""
    """Why it was put to warn."""
    last_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """What is known of the cluster autoscaler."""

    told: Read[Autoscaler] | None
    """By its status; None where it writes none."""
    flags: Mapping[str, str] | None = None
    """Of its Deployment; None where no such Deployment can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpa:
    installed: bool
    acts: bool
    """Can its own webhook change pods?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where usage comes from."""

    name: str
    status: int
    """HTTP."""
    said: str = ""
    empty: bool = False
    """It answers, and knows of no pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Our namespace."""

    paused: str
    """How the switch is set, in words; empty where nothing is paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crd:
    established: bool
    served: frozenset[str]
    """Versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look at a cluster."""

    namespace: str
    """Ours."""
    asked_in: str
    """Where pods were asked for that are not stored."""
    opted_out: Read[bool]
    """Does that namespace keep its pods from us?"""
    here: datetime
    """The time where we are, when the API server was asked for its own."""
    there: Read[datetime]
    version: Read[tuple[int, int]]
    home: Read[Home | None]
    crd: Read[Crd | None]
    processes: Mapping[str, Read[Process | None]]
    secret: Read[certs.Folder | None]
    """The pair; None where the Secret is not there or holds none."""
    mutating: Read[tuple[Configuration, ...]]
    """All of the cluster, in the order in which the API server calls them."""
    validating: Read[Configuration | None]
    """Ours."""
    pod: Read[Trial]
    """A pod that asks whether we are there."""
    document: Read[Trial]
    """A PodPolicy that we refuse."""
    runtime_class: Read[Trial]
    """A pod of a RuntimeClass that there is not, kept from us."""
    rights: Mapping[str, Read[tuple[str, ...]]]
    """Process → what its account lacks, in words."""
    scaler: Read[Scaler]
    source: Read[Source]
    vpa: Read[Vpa]
    leases: Mapping[str, Read[Lease | None]]
    """Process → its Lease."""
    policies: Read[tuple[Standing, ...]]
    pools: Read[PoolReading]
