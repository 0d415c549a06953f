"""What an installation gives one process: its permissions and what they are for, what it may change, and how its
Deployment differs from the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trimtab.installation.access_rule import Rule
from trimtab.installation.names import InstallValues, Manifest
from trimtab.installation.write_policy import UnrestrictedWrite, WritePolicy


def _no_environment(_: InstallValues) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDeployment:
    """How the Deployment of a process with a Lease differs from those of the other processes with a Lease."""

    grace_seconds: int
    """The terminationGracePeriodSeconds."""
    volumes: tuple[Manifest, ...] = ()
    volume_mounts: tuple[Manifest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledProcess:
    """What an installation gives the account of one process, or of the uninstall Job."""

    name: str

    cluster_rules: tuple[Rule, ...]
    """The rules that are granted in the whole cluster."""

    namespace_rules: tuple[Rule, ...]
    """The rules that are granted in Trimtab's own namespace."""

    conditions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """(verb, resource) → the condition under which the process uses the permission. All other permissions are used from
    the first minute."""

    cluster_purposes: Mapping[str, str]
    """Resource → what its permissions in the whole cluster are for."""

    namespace_purposes: Mapping[str, str]
    """Resource → what its permissions in Trimtab's own namespace are for."""

    object_purposes: Mapping[str, str] = field(default_factory=dict)
    """Name of an object → what the permissions on this object are for."""

    write_policies: tuple[WritePolicy, ...]
    """What the account may change."""

    unrestricted_writes: tuple[UnrestrictedWrite, ...] = ()
    """The permissions to write that need no policy."""

    may_scale: bool = False
    """Whether the account may scale the Deployments of `InstallValues.scale_namespaces`."""

    may_resize: bool = False
    """Whether the account may resize running pods if the installation does."""

    reads_request_headers: bool = False
    """Whether Kubernetes' own role lets the account read in which headers API servers name the user of a request."""

    environment: Callable[[InstallValues], dict[str, str]] = _no_environment
    """Returns the settings that differ from their defaults, as environment variables."""

    worker: WorkerDeployment | None = None
    """The Deployment; None for accounts whose Deployment or Job is rendered elsewhere."""
