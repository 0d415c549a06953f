"""Which local volumes hold nothing that is worth a node?

The cluster autoscaler keeps a node whose pods have local storage, unless the pod names the volumes that may be lost:
`cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes` (cluster-autoscaler/utils/drain,
`HasBlockingLocalStorage`).
"""

from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.api.pod import Volume
from trimtab.cluster.selectors import glob
from trimtab.policy import reasons
from trimtab.policy.field_types import Flag, Pattern, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@policy_type
class SafeToEvictVolumes:
    """Scratch volumes that must not keep a node alive."""

    volumes: tuple[Pattern, ...] = ("*",)
    """Names of emptyDir volumes that may be lost with the pod."""
    host_paths: Flag = False
    """hostPath volumes of these names, too."""
    required: Required = False


def propose_changes(settings: SafeToEvictVolumes, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Name them in the autoscaler's annotation, beside those that are named there already."""
    annotations = get(draft.metadata.annotations, {})
    name = f"annotations[{LOCAL_VOLUMES}]"
    if annotations.get(SAFE_TO_EVICT) == "false":
        draft.leave_unchanged(name, reasons.NEVER_EVICT("the pod says safe-to-evict: false"))
        return
    before = annotations.get(LOCAL_VOLUMES)
    named = [part for part in (before or "").split(",") if part]
    present = set(named)
    wanted = _scratch(settings, draft.spec.volumes)
    added = [volume for volume in wanted if volume not in present]
    if wanted and not added:
        draft.decide_first(name, before)  # so that what this policy wrote once is not another one's the next time
        return
    after = ",".join([*named, *added])
    if added and draft.claim_field(name, before, after, reasons.POLICY_SAYS("these volumes hold nothing worth a node")):
        draft.metadata = change(draft.metadata, annotations={**annotations, LOCAL_VOLUMES: after})


def find_unmet_field(settings: SafeToEvictVolumes, result: PodBeforeAndAfter) -> str | None:
    """The annotation, where one of these volumes would still keep a node alive."""
    annotations = get(result.after.pod.metadata.annotations, {})
    named = set(annotations.get(LOCAL_VOLUMES, "").split(","))
    kept = annotations.get(SAFE_TO_EVICT) == "false"
    wanted = _scratch(settings, result.spec.volumes)
    return f"annotations[{LOCAL_VOLUMES}]" if kept or any(volume not in named for volume in wanted) else None


def _scratch(settings: SafeToEvictVolumes, volumes: tuple[Volume, ...]) -> list[str]:
    """A memory-backed emptyDir is no local storage to the autoscaler, but naming it harms nobody: it is left out."""
    meant = glob(settings.volumes)
    found = []
    for volume in volumes:
        empty = get(volume.empty_dir, None)
        scratch = empty is not None and empty.medium != "Memory"
        local = scratch or (settings.host_paths and volume.host_path is not UNSET)
        if local and meant(volume.name):
            found.append(volume.name)
    return sorted(found)
