"""Sets size limits for emptyDir volumes."""

from collections.abc import Iterator
from typing import Literal

from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.api.pod import EmptyDir, Volume
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    NOTHING,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_match_fields,
    no_missing_objects,
    not_always,
    not_in_cel,
)
from trimtab.policy.cel import cel_list, cel_string
from trimtab.policy.cel_patches import PatchPart, operation
from trimtab.policy.field_types import Quantity, Required, policy_type
from trimtab.policy.odd_amounts import find_odd_amounts
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


def propose_changes(settings: EmptyDirs, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the size limit for every selected emptyDir volume that has none."""
    volumes = list(changes.spec.volumes)
    reason = reasons.POLICY_SAYS(f"the policy says {settings.size_limit}")
    for index, volume in enumerate(volumes):
        empty_dir = _find_unlimited(settings, volume)
        if empty_dir is not None and changes.claim_field(_field_name(volume), None, settings.size_limit, reason):
            volumes[index] = change(volume, empty_dir=change(empty_dir, size_limit=settings.size_limit))
    if any(a is not b for a, b in zip(volumes, changes.spec.volumes, strict=True)):
        changes.spec = change(changes.spec, volumes=tuple(volumes))


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


def _describe(settings: EmptyDirs) -> Iterator[str]:
    yield f"sets the size limit {settings.size_limit} on emptyDir volumes without a size limit"


def _list_values(settings: EmptyDirs) -> FieldValues:
    for medium in settings.medium or ("Memory", "disk"):
        yield f"emptyDir.sizeLimit ({medium})", settings.size_limit


def _find_odd(settings: EmptyDirs, terms: PolicyTerms) -> Iterator[Reason]:
    yield from find_odd_amounts("emptyDirs", "ephemeral-storage", [("sizeLimit", settings.size_limit)])


def _compile(settings: EmptyDirs, terms: PolicyTerms) -> Iterator[PatchPart]:
    media = [medium if medium == "Memory" else "" for medium in settings.medium]
    medium = "(has(v.emptyDir.medium) ? v.emptyDir.medium : '')"
    # Another medium, such as huge pages, is neither memory nor the node's disk.
    is_meant = f"{medium} in {cel_list(media)}" if media else "true"
    is_unlimited = f"has(v.emptyDir) && !has(v.emptyDir.sizeLimit) && {is_meant}"
    add = operation("add", "'/spec/volumes/' + string(i) + '/emptyDir/sizeLimit'", cel_string(settings.size_limit))
    yield PatchPart(
        name="emptyDirs",
        test=f"has(object.spec.volumes) && object.spec.volumes.exists(v, {is_unlimited})",
        operations=f"object.spec.volumes.transformList(i, v, {is_unlimited}, {add})",
        note=cel_string(f"emptyDir.sizeLimit={settings.size_limit}"),
    )


def gives_memory_sizes(settings: EmptyDirs | None) -> bool:
    """Returns whether every volume in memory gets a size limit."""
    return settings is not None and (not settings.medium or "Memory" in settings.medium)


ACTION = Action(
    name="empty_dirs",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=no_match_fields,
    find_odd=_find_odd,
    find_missing=no_missing_objects,
    compile=_compile,
    require=not_in_cel("empty_dirs"),
    order_matters=False,
    affects=NOTHING,
    list_differences=no_differences,
)
