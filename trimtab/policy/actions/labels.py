"""Which labels and annotations should a pod carry?"""

from trimtab.cluster.api.meta import change, get
from trimtab.policy import reasons
from trimtab.policy.draft import Draft
from trimtab.policy.subject import Place
from trimtab.policy.vocabulary import Flag, LabelKey, LabelValue, words

_CONTROLLERS = frozenset(
    {"pod-template-hash", "controller-revision-hash", "job-name", "controller-uid", "pod-template-generation"}
)
_CONTROLLERS_PREFIXES = ("batch.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/")


@words
class Labels:
    """Labels to add. A label that a workload's selector uses must not be replaced: `override` is for the others."""

    add: dict[LabelKey, LabelValue]
    override: Flag = False
    """Replace another value that the pod carries."""


@words
class Annotations:
    """Annotations to add."""

    add: dict[LabelKey, str]
    override: Flag = False
    """Replace another value that the pod carries."""


def propose(settings: Labels, draft: Draft, places: tuple[Place, ...]) -> None:
    """Add the labels that are missing; replace others only with `override`."""
    labels = _added("labels", settings, draft, get(draft.metadata.labels, {}))
    if labels is not None:
        draft.metadata = change(draft.metadata, labels=labels)


def propose_annotations(settings: Annotations, draft: Draft, places: tuple[Place, ...]) -> None:
    """Add the annotations that are missing; replace others only with `override`."""
    annotations = _added("annotations", settings, draft, get(draft.metadata.annotations, {}))
    if annotations is not None:
        draft.metadata = change(draft.metadata, annotations=annotations)


def _added(part: str, settings: Labels | Annotations, draft: Draft, present: dict[str, str]) -> dict[str, str] | None:
    """What the mapping becomes; None where nothing changes."""
    added: dict[str, str] = {}
    for key, value in settings.add.items():
        before = present.get(key)
        name = f"{part}[{key}]"
        if part == "labels" and draft.subject.owners and _is_controllers(key):
            reason = reasons.CONTROLLERS_LABEL(f"controllers tell their pods by {key}")
            draft.leave(name, reason, loud=True)
        elif before is not None and before != value and not settings.override:
            draft.leave(name, reasons.ALREADY_SET(f"the pod carries {before} itself"))
        elif draft.claim(name, before, value, reasons.POLICY_SAYS(f"the policy says {value}")):
            added[key] = value
    return {**present, **added} if added else None


def _is_controllers(key: str) -> bool:
    """Labels by which a controller tells its pods: another value, and it would count the pod as lost."""
    return key in _CONTROLLERS or key.startswith(_CONTROLLERS_PREFIXES)
