"""Adds labels and annotations to pods."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from pydantic import Field

from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    MISSING,
    NOTHING,
    WRITTEN,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_missing_objects,
    no_odd_values,
    override_suffix,
)
from trimtab.policy.actions.placement_fields import pod_label_unlisted
from trimtab.policy.cel import NotExpressible, cel_list, cel_string, has_entry, join_all
from trimtab.policy.cel_patches import PatchPart, operation, pointer
from trimtab.policy.cel_pod import ANNOTATIONS, HAS_OWNER, IS_APPLIED, LABELS, NAMESPACE_LABELS
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.field_types import Flag, LabelKey, LabelValue, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext

# Labels by which controllers find their pods (pkg/apis/apps, pkg/apis/batch).
_CONTROLLER_LABELS = frozenset(
    {"pod-template-hash", "controller-revision-hash", "job-name", "controller-uid", "pod-template-generation"}
)
_CONTROLLER_LABEL_PREFIXES = ("batch.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/")


@policy_type
class ListedValue:
    """A value that the pod's author may choose with a label of the pod, from a list."""

    label: LabelKey
    """The label of the pod whose value is read."""
    among: Annotated[tuple[LabelValue, ...], Field(min_length=1)]
    """The values that the pod's author may choose."""


@policy_type
class Labels:
    """Labels to add. A label by which the pod's owner selects its pods is never replaced, even with `override`."""

    add: dict[LabelKey, LabelValue] | None = None
    """Label to add → its value."""
    from_namespace: dict[LabelKey, LabelKey] | None = None
    """Label of the pod → label of its namespace from which the value is taken. If the namespace does not have that
    label, nothing is added."""
    from_pod: dict[LabelKey, ListedValue] | None = None
    """Label of the pod → another label of the pod from which the value is taken, if it is one of the listed values."""
    override: Flag = False
    """Replace the value of a label that the pod already has."""
    required: Required = False

    def __post_init__(self) -> None:
        keys = [*(self.add or {}), *(self.from_namespace or {}), *(self.from_pod or {})]
        if self.add is None and not keys:
            raise ValueError("at least one of add, fromNamespace and fromPod")
        twice = next((key for key, times in Counter(keys).items() if times > 1), None)
        if twice is not None:
            raise ValueError(
                f"each label only once in add, fromNamespace and fromPod, but these labels occur twice: {twice}"
            )


@policy_type
class Annotations:
    """The annotations that a policy adds."""

    add: dict[LabelKey, str]
    """Annotation to add → its value."""
    override: Flag = False
    """Replace the value of an annotation that the pod already has."""
    required: Required = False


def propose_changes(settings: Labels, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the labels that the pod lacks. With `override`, also proposes new values for labels that differ."""
    # A copy: the settings belong to the policy.
    wanted = dict(settings.add or {})
    for key, label in (settings.from_namespace or {}).items():
        value = (changes.pod_context.namespace_labels or {}).get(label)
        # An empty label of the namespace gives no value that would tell pods apart.
        if value:
            wanted[key] = value
        else:
            changes.leave_unchanged(
                f"labels[{key}]", reasons.NAMESPACE_LABEL_MISSING(f"the pod's namespace has no label {label}")
            )
    for key, chosen in (settings.from_pod or {}).items():
        unlisted = pod_label_unlisted(chosen.label, chosen.among, changes.pod_context)
        if unlisted is None:
            wanted[key] = changes.pod_context.labels[chosen.label]
        else:
            changes.leave_unchanged(f"labels[{key}]", unlisted, loud=unlisted.code is reasons.POD_LABEL_NOT_LISTED)
    present = changes.pod_context.labels_of(changes.metadata)
    added = _new_entries("labels", wanted, settings.override, changes, present)
    if added:
        changes.metadata = change(changes.metadata, labels={**value_or(changes.metadata.labels, {}), **added})


def propose_annotation_changes(settings: Annotations, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the annotations that the pod lacks. With `override`, also proposes new values for annotations that
    differ."""
    present = changes.pod_context.annotations_of(changes.metadata)
    added = _new_entries("annotations", settings.add, settings.override, changes, present)
    if added:
        changes.metadata = change(changes.metadata, annotations={**value_or(changes.metadata.annotations, {}), **added})


def find_unmet_field(settings: Labels, result: PodBeforeAndAfter) -> str | None:
    """Returns the first of the labels that the pod lacks or has with another value, or None if there is none."""
    present = result.after.labels
    namespace_labels = result.after.namespace_labels or {}
    from_namespace = settings.from_namespace or {}
    # A namespace without the label gives no value that the pod could have: then the pod lacks its label. `get` returns
    # "" for the pod and None for the namespace, so that a label absent from both still counts as missing.
    missing = next(
        (key for key, label in from_namespace.items() if present.get(key, "") != namespace_labels.get(label, None)),
        None,
    )
    if missing is None:
        chosen = (settings.from_pod or {}).items()
        missing = next((key for key, value in chosen if not _has_listed_value(value, present, present.get(key))), None)
    return _first_missing("labels", settings.add or {}, present) or (f"labels[{missing}]" if missing else None)


def _has_listed_value(value: ListedValue, present: Mapping[str, str], current: str | None) -> bool:
    return current is not None and current in value.among and current == present.get(value.label)


def find_unmet_annotation(settings: Annotations, result: PodBeforeAndAfter) -> str | None:
    """Returns the first of the annotations that the pod lacks or has with another value, or None if there is none."""
    return _first_missing("annotations", settings.add, result.after.annotations)


def _first_missing(part: str, wanted: dict[str, str], present: Mapping[str, str]) -> str | None:
    return next((f"{part}[{key}]" for key, value in wanted.items() if present.get(key) != value), None)


def _new_entries(
    part: str, wanted: dict[str, str], override: bool, changes: PodChanges, present: Mapping[str, str]
) -> dict[str, str]:
    """Returns the wanted entries that are new, or that have another value than before."""
    added: dict[str, str] = {}
    for key, value in wanted.items():
        before = present.get(key)
        name = f"{part}[{key}]"
        if part == "labels" and changes.pod_context.owners and is_controller_label(key):
            reason = reasons.CONTROLLERS_LABEL(f"controllers find their pods by the label {key}")
            changes.leave_unchanged(name, reason, loud=True)
        # A label of the author may be what a selector uses, so a policy must say that it replaces it.
        elif before is not None and before != value and not override:
            changes.leave_unchanged(name, reasons.ALREADY_SET(f"the pod itself already sets {before}"))
        elif part == "labels" and before not in (None, value) and (used := _selector_use(key, changes.pod_context)):
            changes.leave_unchanged(name, reasons.CONTROLLERS_LABEL(used), loud=True)
        elif changes.claim_field(name, before, value, reasons.POLICY_SAYS(f"the policy says {value}")):
            added[key] = value
    return added


_SELECTING_KINDS = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})


def _selector_use(key: str, pod_context: PodContext) -> str:
    """Returns a sentence if an owner of the pod selects its pods by this label, or if that is not known; otherwise an
    empty string. If the value of such a label were changed, the owner would not recognise the pod and would create pods
    without end."""
    is_known = False
    for owner in pod_context.owners:
        replicas = pod_context.facts.replicas.get(owner)
        selected = None if replicas is None else replicas.selected
        if selected is not None and key in selected:
            return f"{owner} finds its pods by the label {key}"
        is_known = is_known or selected is not None
    if is_known or not pod_context.owners or pod_context.owners[0].kind not in _SELECTING_KINDS:
        return ""
    return f"Trimtab does not know whether {pod_context.owners[0]} finds its pods by the label {key}"


def is_controller_label(key: str) -> bool:
    """Returns whether a controller finds its pods by this label. If its value were changed, the controller would count
    the pod as lost."""
    return key in _CONTROLLER_LABELS or key.startswith(_CONTROLLER_LABEL_PREFIXES)


def _describe_entries(name: str, settings: Labels | Annotations) -> Iterator[str]:
    for key, value in (settings.add or {}).items():
        yield f"{name} {key}={value}{override_suffix(settings.override)}"


def _describe(settings: Labels) -> Iterator[str]:
    yield from _describe_entries("label", settings)
    suffix = override_suffix(settings.override)
    for key, label in (settings.from_namespace or {}).items():
        yield f"sets the label {key} to the value of the namespace's label {label}{suffix}"
    for key, pod_label in (settings.from_pod or {}).items():
        yield (
            f"sets the label {key} to the value of the pod's label {pod_label.label}, if the value is one of "
            f"{', '.join(pod_label.among)}{suffix}"
        )


def _describe_annotations(settings: Annotations) -> Iterator[str]:
    return _describe_entries("annotation", settings)


def _list_values(settings: Labels) -> FieldValues:
    for key, value in (settings.add or {}).items():
        yield f"labels[{key}]", value
    for key, label in (settings.from_namespace or {}).items():
        yield f"labels[{key}]", f"from the namespace's label {label}"
    for key, chosen in (settings.from_pod or {}).items():
        yield f"labels[{key}]", f"from the pod's label {chosen.label}"


def _list_annotation_values(settings: Annotations) -> FieldValues:
    return ((f"annotations[{key}]", value) for key, value in settings.add.items())


def _list_decided(settings: Labels) -> dict[str, int] | None:
    if settings.from_namespace or settings.from_pod:
        return None
    return {f"labels[{key}]": WRITTEN if settings.override else MISSING for key in settings.add or {}}


def _list_decided_annotations(settings: Annotations) -> dict[str, int]:
    return {f"annotations[{key}]": WRITTEN if settings.override else MISSING for key in settings.add}


def _list_match_fields(settings: Labels) -> Iterator[str]:
    return (field for field, _ in _list_values(settings))


def _list_annotation_match_fields(settings: Annotations) -> Iterator[str]:
    return (field for field, _ in _list_annotation_values(settings))


def find_missing_namespace_labels(labels: Iterable[str], facts: ClusterFacts) -> Iterator[Reason]:
    """Yields a finding for each label of namespaces that the policy reads and that no namespace has."""
    for label in labels if facts.namespaces else ():
        if not any(label in present for present in facts.namespaces.values()):
            yield reasons.NOT_IN_CLUSTER(f"no namespace of the cluster has a label {label}, which the policy reads")


def _find_missing(settings: Labels, terms: PolicyTerms, facts: ClusterFacts) -> Iterator[Reason]:
    return find_missing_namespace_labels((settings.from_namespace or {}).values(), facts)


def _entry_part(
    part: str, key: str, value: str, *, override: bool, source: str = "true", late: bool = False
) -> PatchPart:
    """Returns the change that adds one label or annotation.

    `value` is a CEL expression for the text to set; `source` is a CEL expression that is true if there is such a text.
    """
    path = LABELS if part == "labels" else ANNOTATIONS
    present = has_entry(path, key)
    replaceable = f"{path}[{cel_string(key)}] != {value} && !{IS_APPLIED}" if override else "false"
    tests = [source, f"!({present}) || ({present} && {replaceable})"]
    if part == "labels" and is_controller_label(key):
        tests.append(f"!({HAS_OWNER})")
    name = f"{part}[{key}]"
    return PatchPart(
        name=name,
        test=join_all(tests),
        operations=f"[{operation('add', pointer('metadata', part, key), value)}]",
        note=f"{cel_string(name + '=')} + {value}",
        reads_late=late,
    )


def _compile(settings: Labels, terms: PolicyTerms) -> Iterator[PatchPart]:
    for key, text in sorted((settings.add or {}).items()):
        yield _entry_part("labels", key, cel_string(text), override=settings.override)
    for key, label in sorted((settings.from_namespace or {}).items()):
        value = f"{NAMESPACE_LABELS}[{cel_string(label)}]"
        source = f"{has_entry(NAMESPACE_LABELS, label)} && {value} != ''"
        yield _entry_part("labels", key, value, override=settings.override, source=source, late=True)
    for key, chosen in sorted((settings.from_pod or {}).items()):
        value = f"{LABELS}[{cel_string(chosen.label)}]"
        source = f"{has_entry(LABELS, chosen.label)} && {value} in {cel_list(chosen.among)}"
        yield _entry_part("labels", key, value, override=settings.override, source=source)


def _compile_annotations(settings: Annotations, terms: PolicyTerms) -> Iterator[PatchPart]:
    for key, text in sorted(settings.add.items()):
        yield _entry_part("annotations", key, cel_string(text), override=settings.override)


def _require_entries(part: str, wanted: Mapping[str, str]) -> FieldValues:
    path = f"object.metadata.{part}"
    for key, value in sorted(wanted.items()):
        name = cel_string(key)
        yield f"{part}[{key}]", f"has({path}) && {name} in {path} && {path}[{name}] == {cel_string(value)}"


def _require(settings: Labels, terms: PolicyTerms) -> FieldValues:
    if settings.from_namespace:
        raise NotExpressible(
            "spec.actions.labels.fromNamespace: the value depends on the namespace, which CEL does not read"
        )
    if settings.from_pod:
        raise NotExpressible(
            "spec.actions.labels.fromPod: the value depends on the pod as it was submitted, but CEL reads only the "
            "stored pod"
        )
    return _require_entries("labels", settings.add or {})


def _require_annotations(settings: Annotations, terms: PolicyTerms) -> FieldValues:
    return _require_entries("annotations", settings.add)


LABELS_ACTION = Action(
    name="labels",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=_list_decided,
    list_match_fields=_list_match_fields,
    find_odd=no_odd_values,
    find_missing=_find_missing,
    compile=_compile,
    require=_require,
    order_matters=True,
    affects=NOTHING,
    list_differences=no_differences,
)
ANNOTATIONS_ACTION = Action(
    name="annotations",
    propose=propose_annotation_changes,
    unmet=find_unmet_annotation,
    describe=_describe_annotations,
    list_values=_list_annotation_values,
    compare=no_comparison,
    list_decided=_list_decided_annotations,
    list_match_fields=_list_annotation_match_fields,
    find_odd=no_odd_values,
    find_missing=no_missing_objects,
    compile=_compile_annotations,
    require=_require_annotations,
    order_matters=False,
    affects=NOTHING,
    list_differences=no_differences,
)
