"""Writes the terms of a team for the evictions of its pods, as the annotations that the compactor reads."""

from collections.abc import Iterator

from trimtab.cluster import disruption_terms as t
from trimtab.cluster.format_count import format_count
from trimtab.policy.actions.action import (
    NOTHING,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_missing_objects,
    no_odd_values,
    override_suffix,
)
from trimtab.policy.actions.labels import ANNOTATIONS_ACTION, Annotations
from trimtab.policy.cel_patches import AmountPatch, PatchPart
from trimtab.policy.field_types import Flag, Required, Whole, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter


@policy_type
class DisruptionTermsAction:
    """When the compactor may evict the pods, how dear an eviction is, and how many there may be in a day. The pool of
    the node bounds all three."""

    cost: Whole | None = None
    """As how many further evictions the eviction counts in the order of drains, from 0 to 1000."""
    windows: str | None = None
    """The weekly windows in which the pods may be evicted: up to eight, such as
    `mon-fri 22:00-06:00 Europe/Berlin; sat,sun 00:00-24:00`."""
    per_day: Whole | None = None
    """How many pods of a workload may be evicted in 24 hours, at least 1."""
    override: Flag = False
    """Replace terms that the pod already has."""
    required: Required = False

    def __post_init__(self) -> None:
        annotations = _annotations_of(self)
        if not annotations:
            raise ValueError("at least one of cost, windows and perDay")
        if mistakes := t.read_terms(annotations).mistakes:
            raise ValueError(f"{_FIELDS[mistakes[0].annotation]} as {mistakes[0].expected}")


_FIELDS = {t.COST_ANNOTATION: "cost", t.WINDOWS_ANNOTATION: "windows", t.PER_DAY_ANNOTATION: "perDay"}


def _annotations_of(settings: DisruptionTermsAction) -> dict[str, str]:
    values = (settings.cost, settings.windows, settings.per_day)
    return {key: str(value) for key, value in zip(_FIELDS, values, strict=True) if value is not None}


def _as_annotations(settings: DisruptionTermsAction) -> Annotations:
    return Annotations(add=_annotations_of(settings), override=settings.override)


def propose_changes(settings: DisruptionTermsAction, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the terms that the pod does not state. With `override`, also replaces those that differ."""
    ANNOTATIONS_ACTION.propose(_as_annotations(settings), changes, places)


def find_unmet_field(settings: DisruptionTermsAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the first annotation that the pod lacks or has with another value, or None if there is none."""
    return ANNOTATIONS_ACTION.unmet(_as_annotations(settings), result)


def _describe(settings: DisruptionTermsAction) -> Iterator[str]:
    suffix = override_suffix(settings.override)
    if settings.cost is not None:
        yield f"counts an eviction like {settings.cost} more{suffix}"
    if settings.windows is not None:
        yield f"permits evictions only in the windows {settings.windows}{suffix}"
    if settings.per_day is not None:
        yield f"permits {format_count(settings.per_day, 'eviction')} of a workload in 24 hours{suffix}"


def _list_values(settings: DisruptionTermsAction) -> FieldValues:
    return ANNOTATIONS_ACTION.list_values(_as_annotations(settings))


def _list_decided(settings: DisruptionTermsAction) -> dict[str, int]:
    return dict(ANNOTATIONS_ACTION.list_decided(_as_annotations(settings)) or {})


def _list_match_fields(settings: DisruptionTermsAction) -> Iterator[str]:
    yield from ANNOTATIONS_ACTION.list_match_fields(_as_annotations(settings))


def _compile(settings: DisruptionTermsAction, terms: PolicyTerms) -> Iterator[PatchPart | AmountPatch]:
    yield from ANNOTATIONS_ACTION.compile(_as_annotations(settings), terms)


def _require(settings: DisruptionTermsAction, terms: PolicyTerms) -> FieldValues:
    return ANNOTATIONS_ACTION.require(_as_annotations(settings), terms)


ACTION = Action(
    name="disruption_terms",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=_list_decided,
    list_match_fields=_list_match_fields,
    find_odd=no_odd_values,
    find_missing=no_missing_objects,
    compile=_compile,
    require=_require,
    order_matters=False,
    affects=NOTHING,
    list_differences=no_differences,
)
