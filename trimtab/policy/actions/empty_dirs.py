"""Sets size limits for emptyDir volumes."""

from typing import Literal

from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.api.pod import EmptyDir, Volume
from trimtab.policy import reasons
from trimtab.policy.field_types import Quantity, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter


@policy_type
class EmptyDirs:
    """A size limit for emptyDir volumes that have none. The kubelet evicts a pod whose volume grows beyond its
    limit."""

    size_limit: Quantity
    """The limit for volumes without one. A limit that the author set is not changed."""
    medium: tuple[Literal["Memory", "disk"], ...] = ()
    """Which emptyDir volumes get the limit: those in `Memory`, those on the node's `disk`; empty means both."""
    required: Required = False


def propose_changes(settings: EmptyDirs, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the size limit for every selected emptyDir volume that has none."""
    volumes = list(draft.spec.volumes)
    reason = reasons.POLICY_SAYS(f"the policy says {settings.size_limit}")
    for index, volume in enumerate(volumes):
        empty_dir = _find_unlimited(settings, volume)
        if empty_dir is not None and draft.claim_field(_field_name(volume), None, settings.size_limit, reason):
            volumes[index] = change(volume, empty_dir=change(empty_dir, size_limit=settings.size_limit))
    if any(a is not b for a, b in zip(volumes, draft.spec.volumes, strict=True)):
        draft.spec = change(draft.spec, volumes=tuple(volumes))


def find_unmet_field(settings: EmptyDirs, result: PodBeforeAndAfter) -> str | None:
    """Returns the size limit of the first selected volume that has none, or None if every one has a limit."""
    return next(
        (_field_name(volume) for volume in result.spec.volumes if _find_unlimited(settings, volume) is not None), None
    )


def _field_name(volume: Volume) -> str:
    return f"volumes[{volume.name}].emptyDir.sizeLimit"


def _find_unlimited(settings: EmptyDirs, volume: Volume) -> EmptyDir | None:
    """Returns the emptyDir of a volume that the policy selects and that has no limit, or None otherwise."""
    empty_dir = value_or(volume.empty_dir, None)
    if empty_dir is None or (empty_dir.size_limit is not UNSET and empty_dir.size_limit is not None):
        return None
    is_selected = not settings.medium or (empty_dir.medium or "disk") in settings.medium
    return empty_dir if is_selected else None
