"""Which labels and annotations should a pod carry?"""

from collections import Counter
from typing import Annotated

from pydantic import Field

from trimtab.cluster.api.meta import change, get
from trimtab.policy import reasons
from trimtab.policy.actions.placement_fields import pod_label_unlisted
from trimtab.policy.field_types import Flag, LabelKey, LabelValue, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

_CONTROLLERS = frozenset(
    {"pod-template-hash", "controller-revision-hash", "job-name", "controller-uid", "pod-template-generation"}
)
_CONTROLLERS_PREFIXES = ("batch.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/")


@policy_type
class ListedValue:
    """A value that a pod chooses by one of its labels."""

    label: LabelKey
    among: Annotated[tuple[LabelValue, ...], Field(min_length=1)]
    """The values that the pod may choose."""


@policy_type
class Labels:
    """Labels to add. A label that a workload's selector uses must not be replaced: `override` is for the others."""

    add: dict[LabelKey, LabelValue] | None = None
    from_namespace: dict[LabelKey, LabelKey] | None = None
    """Label of the pod → label of its namespace that has the value; left out where the namespace has none."""
    from_pod: dict[LabelKey, ListedValue] | None = None
    """Label of the pod → another label of the pod that has the value, if it is among those listed."""
    override: Flag = False
    """Replace another value that the pod carries."""
    required: Required = False

    def __post_init__(self) -> None:
        given = [*(self.add or {}), *(self.from_namespace or {}), *(self.from_pod or {})]
        if self.add is None and not given:
            raise ValueError("add, fromNamespace or fromPod")
        twice = next((key for key, times in Counter(given).items() if times > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} once, in add, fromNamespace or fromPod")


@policy_type
class Annotations:
    """Annotations to add."""

    add: dict[LabelKey, str]
    override: Flag = False
    """Replace another value that the pod carries."""
    required: Required = False


def propose_changes(settings: Labels, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Add the labels that are missing; replace others only with `override`."""
    wanted = dict(settings.add or {})
    for key, label in (settings.from_namespace or {}).items():
        value = (draft.subject.namespace_labels or {}).get(label)
        if value:
            wanted[key] = value
        else:
            draft.leave_unchanged(
                f"labels[{key}]", reasons.NAMESPACE_LABEL_MISSING(f"the namespace has no label {label}")
            )
    for key, chosen in (settings.from_pod or {}).items():
        unlisted = pod_label_unlisted(chosen.label, chosen.among, draft.subject)
        if unlisted is None:
            wanted[key] = draft.subject.labels[chosen.label]
        else:
            draft.leave_unchanged(f"labels[{key}]", unlisted, loud=unlisted.code is reasons.POD_LABEL_NOT_LISTED)
    labels = _added("labels", wanted, settings.override, draft, get(draft.metadata.labels, {}))
    if labels is not None:
        draft.metadata = change(draft.metadata, labels=labels)


def propose_annotation_changes(settings: Annotations, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Add the annotations that are missing; replace others only with `override`."""
    before = get(draft.metadata.annotations, {})
    annotations = _added("annotations", settings.add, settings.override, draft, before)
    if annotations is not None:
        draft.metadata = change(draft.metadata, annotations=annotations)


def find_unmet_field(settings: Labels, result: PodBeforeAndAfter) -> str | None:
    """The first label that the pod lacks, or carries with another value."""
    present = get(result.after.pod.metadata.labels, {})
    known = result.after.namespace_labels or {}
    brought = settings.from_namespace or {}
    # A namespace without the label gives no value that the pod could carry: then the pod lacks it.
    missing = next((key for key, label in brought.items() if present.get(key, "") != known.get(label, None)), None)
    if missing is None:
        chosen = (settings.from_pod or {}).items()
        missing = next((key for key, value in chosen if not _is_chosen(value, present, present.get(key))), None)
    return _lacking("labels", settings.add or {}, present) or (f"labels[{missing}]" if missing else None)


def _is_chosen(value: ListedValue, present: dict[str, str], found: str | None) -> bool:
    return found is not None and found in value.among and found == present.get(value.label)


def find_unmet_annotation(settings: Annotations, result: PodBeforeAndAfter) -> str | None:
    """The first annotation that the pod lacks, or carries with another value."""
    return _lacking("annotations", settings.add, get(result.after.pod.metadata.annotations, {}))


def _lacking(part: str, wanted: dict[str, str], present: dict[str, str]) -> str | None:
    return next((f"{part}[{key}]" for key, value in wanted.items() if present.get(key) != value), None)


def _added(
    part: str, wanted: dict[str, str], override: bool, draft: PodChanges, present: dict[str, str]
) -> dict[str, str] | None:
    """What the mapping becomes; None where nothing changes."""
    added: dict[str, str] = {}
    for key, value in wanted.items():
        before = present.get(key)
        name = f"{part}[{key}]"
        if part == "labels" and draft.subject.owners and _is_controllers(key):
            reason = reasons.CONTROLLERS_LABEL(f"controllers tell their pods by {key}")
            draft.leave_unchanged(name, reason, loud=True)
        elif before is not None and before != value and not override:
            draft.leave_unchanged(name, reasons.ALREADY_SET(f"the pod carries {before} itself"))
        elif draft.claim_field(name, before, value, reasons.POLICY_SAYS(f"the policy says {value}")):
            added[key] = value
    return {**present, **added} if added else None


def _is_controllers(key: str) -> bool:
    """Labels by which a controller tells its pods: another value, and it would count the pod as lost."""
    return key in _CONTROLLERS or key.startswith(_CONTROLLERS_PREFIXES)
