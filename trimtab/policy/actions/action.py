"""What an action of a policy is: one object with all that is asked of it.

Whoever needs something of all actions goes through `all_actions.ACTIONS`; nothing else lists them. A part that an
action lacks is an error of types: no part has a default.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic.alias_generators import to_camel

from trimtab.cluster.reason import Reason
from trimtab.policy.cel import NotExpressible
from trimtab.policy.cel_patches import AmountPatch, PatchPart
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.conditions import Match
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

S = TypeVar("S")

MISSING, WRITTEN = 1, 2
"""When a policy decides a field: only if the pod has no value (`MISSING`), or also if its author wrote one
(`WRITTEN`)."""

FieldValues = Iterable[tuple[str, str]]
"""(field, value as text) for each field."""


@dataclass(frozen=True, slots=True, order=True)
class ValueDifference:
    """One field with the value that each of two policies wants."""

    field: str
    own: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTerms:
    """What an action may read of the policy that it belongs to."""

    match: Match
    is_enabled: bool
    changes_guaranteed: bool
    """Whether the policy may change requests and limits of pods of the class Guaranteed."""
    names_daemons: bool
    """Whether the policy's match names DaemonSets."""
    settings_by_action: Mapping[str, Any]
    """The settings of all actions that the policy has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Generic[S]):
    """An action, by the settings `S` that a policy has for it."""

    name: str
    """The action's field in `podpolicy.Actions`."""
    propose: Callable[[S, PodChanges, tuple[ContainerRef, ...]], None]
    """Claims the fields of one pod that the action changes, or records why they stay as they are. The containers are
    those to which the policy applies."""
    unmet: Callable[[S, PodBeforeAndAfter], str | None]
    """Returns the first field that is not as the action requires, or None if all are."""
    describe: Callable[[S], Iterable[str]]
    """Yields what the action does, in words."""
    list_values: Callable[[S], FieldValues]
    """Yields the value that the action gives to each field that only one policy can decide."""
    compare: Callable[[S, S], Iterable[ValueDifference]]
    """Yields the differences between the settings of two policies that are not between values of `list_values`."""
    list_decided: Callable[[S], Mapping[str, int] | None]
    """Returns the fields that the action always decides, because nothing in a pod can prevent it, each with `MISSING`
    or `WRITTEN`. None if it may also decide others."""
    list_match_fields: Callable[[S], Iterable[str]]
    """Yields the changed fields that the match of a policy may read, by the names in `match.fields_selected_by`."""
    find_odd: Callable[[S, PolicyTerms], Iterable[Reason]]
    """Yields a finding for each value that is valid but hardly what the author meant."""
    find_missing: Callable[[S, PolicyTerms, ClusterFacts], Iterable[Reason]]
    """Yields a finding for each object or label that the action names and that the cluster does not have."""
    compile: Callable[[S, PolicyTerms], Iterable[PatchPart | AmountPatch]]
    """Yields the parts of a MutatingAdmissionPolicy that do the same. Raises NotExpressible with the name of the
    field."""
    require: Callable[[S, PolicyTerms], FieldValues]
    """Yields (field, CEL expression that must be true for the pod) for a ValidatingAdmissionPolicy that refuses pods
    without the action. Raises NotExpressible with the name of the field."""
    order_matters: bool
    """Whether two compiled policies with the action contradict each other, because the API server evaluates them in
    any order."""
    affects: frozenset[Literal["nodes", "quotas"]]
    """What may have no room for a pod because of the action."""
    list_differences: Callable[[S], Iterable[str]]
    """Yields the codes of `compiled.differences` that concern the action alone: where its compiled form changes a pod
    otherwise than the webhook."""

    @property
    def word(self) -> str:
        """The action's name in the YAML of a policy."""
        return to_camel(self.name)


NOTHING: frozenset[Literal["nodes", "quotas"]] = frozenset()


def no_comparison(_own: object, _other: object) -> tuple[ValueDifference, ...]:
    """Returns no difference: `list_values` has them all."""
    return ()


def no_differences(_settings: object) -> tuple[str, ...]:
    """Returns no code: compiled, the action does the same."""
    return ()


def no_match_fields(_settings: object) -> tuple[str, ...]:
    """Returns no field: no match reads what the action changes."""
    return ()


def no_odd_values(_settings: object, _terms: PolicyTerms) -> tuple[Reason, ...]:
    """Returns no finding: no value of the action is odd."""
    return ()


def no_missing_objects(_settings: object, _terms: PolicyTerms, _facts: ClusterFacts) -> tuple[Reason, ...]:
    """Returns no finding: the action names no object of the cluster."""
    return ()


def not_always(_settings: object) -> None:
    """Returns None: what the action decides depends on the pod."""


def not_in_cel(name: str) -> Callable[[object, PolicyTerms], FieldValues]:
    """Returns the `require` of an action whose result CEL cannot check."""

    def refuse(_settings: object, _terms: PolicyTerms) -> FieldValues:
        raise NotExpressible(
            f"spec.actions.{to_camel(name)}: the result depends on more than the pod, which is all that CEL reads"
        )

    return refuse


def override_suffix(override: bool) -> str:
    """Returns the end of a description that says whether another value is replaced."""
    return ", and replaces another value" if override else ""
