"""How much may a pod write into its emptyDir volumes?"""

from typing import Literal

from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.api.pod import EmptyDir, Volume
from trimtab.policy import reasons
from trimtab.policy.field_types import Quantity, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter


@policy_type
class EmptyDirs:
    """A size limit for emptyDir volumes that have none. The kubelet evicts a pod that writes more."""

    size_limit: Quantity
    """An author's own limit stays."""
    medium: tuple[Literal["Memory", "disk"], ...] = ()
    """`Memory`, or `disk` for the node's own; empty means both."""
    required: Required = False


def propose_changes(settings: EmptyDirs, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Give the limit to every volume that has none."""
    volumes = list(draft.spec.volumes)
    says = reasons.POLICY_SAYS(f"the policy says {settings.size_limit}")
    for index, volume in enumerate(volumes):
        found = _unlimited(settings, volume)
        if found is not None and draft.claim_field(_name(volume), None, settings.size_limit, says):
            volumes[index] = change(volume, empty_dir=change(found, size_limit=settings.size_limit))
    if any(a is not b for a, b in zip(volumes, draft.spec.volumes, strict=True)):
        draft.spec = change(draft.spec, volumes=tuple(volumes))


def find_unmet_field(settings: EmptyDirs, result: PodBeforeAndAfter) -> str | None:
    """The first volume without a limit."""
    return next((_name(volume) for volume in result.spec.volumes if _unlimited(settings, volume) is not None), None)


def _name(volume: Volume) -> str:
    return f"volumes[{volume.name}].emptyDir.sizeLimit"


def _unlimited(settings: EmptyDirs, volume: Volume) -> EmptyDir | None:
    """The emptyDir of a volume that the policy means and that has no limit."""
    found = get(volume.empty_dir, None)
    if found is None or (found.size_limit is not UNSET and found.size_limit is not None):
        return None
    is_meant = not settings.medium or (found.medium or "disk") in settings.medium
    return found if is_meant else None
