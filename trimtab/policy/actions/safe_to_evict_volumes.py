"""Names the local volumes of pods that may be lost, so that they do not keep the cluster autoscaler from removing a
node.

The cluster autoscaler does not remove a node whose pods have local storage, unless the pod names the volumes that may
be lost: `cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes` (cluster-autoscaler/utils/drain,
`HasBlockingLocalStorage`).
"""

from collections.abc import Iterator

from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.api.pod import Volume
from trimtab.cluster.selectors import name_matcher
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
    no_odd_values,
    not_always,
    not_in_cel,
)
from trimtab.policy.cel import cel_regex, cel_string, has_entry, join_all
from trimtab.policy.cel_patches import PatchPart, operation, pointer
from trimtab.policy.cel_pod import ANNOTATIONS, IS_APPLIED
from trimtab.policy.field_types import Flag, Pattern, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@policy_type
class SafeToEvictVolumes:
    """Volumes for scratch data, which must not keep the cluster autoscaler from removing a node."""

    volumes: tuple[Pattern, ...] = ("*",)
    """Names of emptyDir volumes that may be lost with the pod."""
    host_paths: Flag = False
    """Also include hostPath volumes whose names match."""
    required: Required = False


def propose_changes(settings: SafeToEvictVolumes, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the autoscaler's annotation with the selected volumes added to those that it already names."""
    annotations = changes.pod_context.annotations_of(changes.metadata)
    name = f"annotations[{LOCAL_VOLUMES}]"
    # This annotation wins in the cluster autoscaler, whatever the volumes are.
    if annotations.get(SAFE_TO_EVICT) == "false":
        changes.leave_unchanged(
            name,
            reasons.NEVER_EVICT(
                "the pod has the annotation safe-to-evict: false, so Trimtab does not mark its volumes"
            ),
        )
        return
    before = annotations.get(LOCAL_VOLUMES)
    listed = [part for part in (before or "").split(",") if part]
    listed_names = set(listed)
    scratch_volumes = _scratch_volumes(settings, changes.spec.volumes)
    added = [volume for volume in scratch_volumes if volume not in listed_names]
    if scratch_volumes and not added:
        # At the second call the annotation already has this policy's volumes; the field must stay this policy's.
        changes.decide_first(name, before)
        return
    text = ",".join([*listed, *added])
    reason = reasons.POLICY_SAYS("the policy says that these volumes contain no data that must be kept")
    if added and changes.claim_field(name, before, text, reason):
        present = value_or(changes.metadata.annotations, {})
        changes.metadata = change(changes.metadata, annotations={**present, LOCAL_VOLUMES: text})


def find_unmet_field(settings: SafeToEvictVolumes, result: PodBeforeAndAfter) -> str | None:
    """Returns the annotation if it lacks a selected volume, which would keep the autoscaler from removing the node;
    otherwise None."""
    annotations = result.after.annotations
    listed = set(annotations.get(LOCAL_VOLUMES, "").split(","))
    is_never_evicted = annotations.get(SAFE_TO_EVICT) == "false"
    scratch_volumes = _scratch_volumes(settings, result.spec.volumes)
    return (
        f"annotations[{LOCAL_VOLUMES}]"
        if is_never_evicted or any(volume not in listed for volume in scratch_volumes)
        else None
    )


def _scratch_volumes(settings: SafeToEvictVolumes, volumes: tuple[Volume, ...]) -> list[str]:
    """Returns the names of the selected local volumes, in the pod's order. An emptyDir in memory is left out, because
    the autoscaler does not count it as local storage."""
    is_selected = name_matcher(settings.volumes)
    names = []
    for volume in volumes:
        empty_dir = value_or(volume.empty_dir, None)
        is_scratch = empty_dir is not None and empty_dir.medium != "Memory"
        is_local = is_scratch or (settings.host_paths and volume.host_path is not UNSET)
        if is_local and is_selected(volume.name):
            names.append(volume.name)
    return sorted(names)


def _describe(settings: SafeToEvictVolumes) -> Iterator[str]:
    yield f"marks the volumes {', '.join(settings.volumes)}, so that they do not prevent an eviction"


def _list_values(settings: SafeToEvictVolumes) -> FieldValues:
    kinds = "emptyDir and hostPath" if settings.host_paths else "emptyDir"
    yield f"annotations[{LOCAL_VOLUMES}]", f"{', '.join(settings.volumes)} ({kinds})"


def _compile(settings: SafeToEvictVolumes, terms: PolicyTerms) -> Iterator[PatchPart]:
    key = cel_string(LOCAL_VOLUMES)
    never = f"{has_entry(ANNOTATIONS, SAFE_TO_EVICT)} && {ANNOTATIONS}[{cel_string(SAFE_TO_EVICT)}] == 'false'"
    has_list = has_entry(ANNOTATIONS, LOCAL_VOLUMES)
    listed = f"({has_list} ? {ANNOTATIONS}[{key}].split(',').filter(p, p != '') : [])"
    is_scratch = "(has(v.emptyDir) && (!has(v.emptyDir.medium) || v.emptyDir.medium != 'Memory'))"
    if settings.host_paths:
        is_scratch = f"({is_scratch} || has(v.hostPath))"
    is_meant = f"{is_scratch} && v.name.matches({cel_regex(settings.volumes)})"
    added = f"object.spec.volumes.filter(v, {is_meant} && !(v.name in {listed})).map(v, string(v.name)).sort()"
    text = f"({listed} + {added}).join(',')"
    yield PatchPart(
        name=f"annotations[{LOCAL_VOLUMES}]",
        test=join_all(
            [
                f"!({never})",
                "has(object.spec.volumes)",
                f"object.spec.volumes.exists(v, {is_meant} && !(v.name in {listed}))",
                f"!({has_list}) || !{IS_APPLIED}",
            ]
        ),
        operations=f"[{operation('add', pointer('metadata', 'annotations', LOCAL_VOLUMES), text)}]",
        note=f"{cel_string(f'annotations[{LOCAL_VOLUMES}]=')} + {text}",
    )


ACTION = Action(
    name="safe_to_evict_volumes",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=no_match_fields,
    find_odd=no_odd_values,
    find_missing=no_missing_objects,
    compile=_compile,
    require=not_in_cel("safe_to_evict_volumes"),
    order_matters=False,
    affects=NOTHING,
    list_differences=no_differences,
)
