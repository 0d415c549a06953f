"""Spreads the replicas of a workload over the domains of a topology, if its author has set no constraint for that
topology."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from trimtab.cluster.api.meta import UNSET, LabelSelector, change, value_or
from trimtab.cluster.api.pod import TopologySpreadConstraint
from trimtab.cluster.owner import TEMPLATE_HASH
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_match_fields,
    no_missing_objects,
    no_odd_values,
    not_always,
)
from trimtab.policy.cel import cel_list, cel_string, has_entry, join_all
from trimtab.policy.cel_patches import PatchPart, map_literal, operation, pointer
from trimtab.policy.cel_pod import HAS_NO_NODE, IS_DAEMON, LABELS
from trimtab.policy.field_types import LabelKey, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter


@policy_type
class SpreadConstraint:
    """A topology spread constraint that is added to pods without one for this topology."""

    topology_key: LabelKey
    """The node label whose values are the domains, such as topology.kubernetes.io/zone."""
    max_skew: Annotated[int, Field(strict=True, ge=1)] = 1
    """How many more replicas a domain may have than the domain with the fewest."""
    when_unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = "ScheduleAnyway"
    """What happens if the constraint cannot be met. `ScheduleAnyway` is only a preference; `DoNotSchedule` can keep a
    pod from starting."""
    min_domains: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The smallest number of domains (`minDomains`). Only with `DoNotSchedule`."""

    def __post_init__(self) -> None:
        if self.min_domains is not None and self.when_unsatisfiable != "DoNotSchedule":
            raise ValueError("whenUnsatisfiable DoNotSchedule, because minDomains is set")


@policy_type
class TopologySpread:
    """Topology spread constraints for pods that have none for the same topology."""

    constraints: Annotated[tuple[SpreadConstraint, ...], Field(min_length=1)]
    """The constraints to add, one for each topology."""
    by: Annotated[tuple[LabelKey, ...], Field(min_length=1)] = (
        "app.kubernetes.io/instance",
        "app.kubernetes.io/name",
        "app",
        "k8s-app",
    )
    """Labels that select the replicas of one workload. The first of them that the pod has is used."""
    required: Required = False

    def __post_init__(self) -> None:
        keys = [constraint.topology_key for constraint in self.constraints]
        if len(set(keys)) < len(keys):
            # Two constraints of one topology with equal selectors differ only in how strict they are.
            raise ValueError("each topologyKey only once")


def propose_changes(settings: TopologySpread, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes a constraint for each topology for which the pod has none."""
    key = next((label for label in settings.by if label in changes.pod_context.labels), None)
    # Constraints cannot move a pod whose node is decided already.
    has_node = changes.spec.node_name or changes.pod_context.is_daemon
    if has_node and not settings.required:
        return
    # A constraint without a selector counts no pods at all (PodTopologySpread).
    if key is None:
        reason = reasons.NO_SELECTOR_LABEL(f"the pod has none of the labels {', '.join(settings.by)}")
        for spread in settings.constraints:
            changes.leave_unchanged(f"topologySpreadConstraints[{spread.topology_key}]", reason)
        return
    for spread in settings.constraints:
        _add_constraint(spread, key, changes)


def find_unmet_field(settings: TopologySpread, result: PodBeforeAndAfter) -> str | None:
    """Returns the first topology for which the pod has no constraint, or None if it has one for each."""
    present = {constraint.topology_key for constraint in value_or(result.spec.topology_spread_constraints, ())}
    missing = (spread.topology_key for spread in settings.constraints if spread.topology_key not in present)
    return next((f"topologySpreadConstraints[{key}]" for key in missing), None)


def _add_constraint(spread: SpreadConstraint, key: str, changes: PodChanges) -> None:
    name = f"topologySpreadConstraints[{spread.topology_key}]"
    present = value_or(changes.spec.topology_spread_constraints, ())
    author_constraints = changes.pod_context.pod.spec.topology_spread_constraints
    # Compared with the author's pod: an earlier policy may have added a constraint for the same topology.
    if author_constraints is not UNSET and any(c.topology_key == spread.topology_key for c in author_constraints):
        changes.leave_unchanged(
            name, reasons.ALREADY_SET(f"the pod itself has a spread constraint over {spread.topology_key}")
        )
        return
    text = f"maxSkew {spread.max_skew}, {spread.when_unsatisfiable}, by {key}"
    if changes.claim_field(
        name, None, text, reasons.POLICY_SAYS("the policy spreads the replicas over nodes or zones")
    ):
        constraint = TopologySpreadConstraint(
            max_skew=spread.max_skew,
            topology_key=spread.topology_key,
            when_unsatisfiable=spread.when_unsatisfiable,
            label_selector=LabelSelector(match_labels={key: changes.pod_context.labels[key]}),
            min_domains=UNSET if spread.min_domains is None else spread.min_domains,
            # Replicas of an old revision must not keep those of the new one from spreading (KEP-3243).
            match_label_keys=(TEMPLATE_HASH,) if TEMPLATE_HASH in changes.pod_context.labels else (),
        )
        changes.spec = change(changes.spec, topology_spread_constraints=(*present, constraint))


def _describe(settings: TopologySpread) -> Iterator[str]:
    for spread in settings.constraints:
        yield (
            f"spreads pods over the values of {spread.topology_key} (maxSkew {spread.max_skew}, "
            f"{spread.when_unsatisfiable})"
        )


def _list_values(settings: TopologySpread) -> FieldValues:
    for spread in settings.constraints:
        domains = f", minDomains {spread.min_domains}" if spread.min_domains else ""
        text = f"maxSkew {spread.max_skew}, {spread.when_unsatisfiable}{domains}"
        yield f"topologySpreadConstraints[{spread.topology_key}]", text


def _compile(settings: TopologySpread, terms: PolicyTerms) -> Iterator[PatchPart]:
    path = "object.spec.topologySpreadConstraints"
    placed = [] if settings.required else [f"({HAS_NO_NODE})", f"!({IS_DAEMON})"]
    keys = f"{cel_list(settings.by)}.filter(k, has({LABELS}) && k in {LABELS})"
    for spread in settings.constraints:
        present = f"has({path}) && {path}.exists(c, c.topologyKey == {cel_string(spread.topology_key)})"
        constraint: dict[str, Any] = {
            "maxSkew": spread.max_skew,
            "topologyKey": spread.topology_key,
            "whenUnsatisfiable": spread.when_unsatisfiable,
        }
        if spread.min_domains is not None:
            constraint["minDomains"] = spread.min_domains
        selector = f"'labelSelector': dyn({{'matchLabels': {{{keys}[0]: {LABELS}[{keys}[0]]}}}})"
        fixed = map_literal(constraint)[:-1] + f", {selector}"
        hashed = f"{fixed}, 'matchLabelKeys': dyn([{cel_string(TEMPLATE_HASH)}])}}"
        value = f"({has_entry(LABELS, TEMPLATE_HASH)} ? {hashed} : {fixed}}})"
        yield PatchPart(
            name=f"topologySpreadConstraints[{spread.topology_key}]",
            test=join_all([*placed, f"{keys}.size() > 0", f"!({present})"]),
            operations=f"[{operation('add', pointer('spec', 'topologySpreadConstraints', '-'), value)}]",
            note=cel_string(f"topologySpreadConstraints[{spread.topology_key}]"),
        )


def _require(settings: TopologySpread, terms: PolicyTerms) -> FieldValues:
    path = "object.spec.topologySpreadConstraints"
    for spread in settings.constraints:
        key = spread.topology_key
        yield f"topologySpread[{key}]", f"has({path}) && {path}.exists(c, c.topologyKey == {cel_string(key)})"


ACTION = Action(
    name="topology_spread",
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
    require=_require,
    order_matters=False,
    affects=frozenset({"nodes"}),
    list_differences=no_differences,
)
