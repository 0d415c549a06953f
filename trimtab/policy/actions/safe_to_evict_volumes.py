"""Which local volumes hold nothing that is worth a node?

The cluster autoscaler keeps a node whose pods have local storage, unless the pod names the volumes that may be lost:
`cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes` (cluster-autoscaler/utils/drain,
`HasBlockingLocalStorage`).
"""

from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.selectors import glob
from trimtab.policy import reasons
from trimtab.policy.draft import Draft
from trimtab.policy.subject import Place
from trimtab.policy.vocabulary import Flag, Pattern, words

LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


@words
class SafeToEvictVolumes:
    """Scratch volumes that must not keep a node alive."""

    volumes: tuple[Pattern, ...] = ("*",)
    """Names of emptyDir volumes that may be lost with the pod."""
    host_paths: Flag = False
    """hostPath volumes of these names, too."""


def propose(settings: SafeToEvictVolumes, draft: Draft, places: tuple[Place, ...]) -> None:
    """Name them in the autoscaler's annotation, beside those that are named there already."""
    annotations = get(draft.metadata.annotations, {})
    name = f"annotations[{LOCAL_VOLUMES}]"
    if annotations.get(SAFE_TO_EVICT) == "false":
        draft.leave(name, reasons.NEVER_EVICT("the pod says safe-to-evict: false"))
        return
    before = annotations.get(LOCAL_VOLUMES)
    named = [part for part in (before or "").split(",") if part]
    added = [volume for volume in _scratch(settings, draft) if volume not in named]
    after = ",".join([*named, *added])
    if added and draft.claim(name, before, after, reasons.POLICY_SAYS("these volumes hold nothing worth a node")):
        draft.metadata = change(draft.metadata, annotations={**annotations, LOCAL_VOLUMES: after})


def _scratch(settings: SafeToEvictVolumes, draft: Draft) -> list[str]:
    """A memory-backed emptyDir is no local storage to the autoscaler, but naming it harms nobody: it is left out."""
    meant = glob(settings.volumes)
    found = []
    for volume in draft.spec.volumes:
        empty = get(volume.empty_dir, None)
        scratch = empty is not None and empty.medium != "Memory"
        local = scratch or (settings.host_paths and volume.host_path is not UNSET)
        if local and meant(volume.name):
            found.append(volume.name)
    return sorted(found)
