"""Spreads the replicas of a workload over the domains of a topology, if its author has set no constraint for that
topology."""

from typing import Annotated, Literal

from pydantic import Field

from trimtab.cluster.api.meta import UNSET, LabelSelector, change, value_or
from trimtab.cluster.api.pod import TopologySpreadConstraint
from trimtab.cluster.owner import TEMPLATE_HASH
from trimtab.policy import reasons
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


def propose_changes(settings: TopologySpread, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes a constraint for each topology for which the pod has none."""
    key = next((label for label in settings.by if label in draft.subject.labels), None)
    # Constraints cannot move a pod whose node is decided already.
    has_node = draft.spec.node_name or draft.subject.is_daemon
    if has_node and not settings.required:
        return
    # A constraint without a selector counts no pods at all (PodTopologySpread).
    if key is None:
        reason = reasons.NO_SELECTOR_LABEL(f"the pod has none of the labels {', '.join(settings.by)}")
        for spread in settings.constraints:
            draft.leave_unchanged(f"topologySpreadConstraints[{spread.topology_key}]", reason)
        return
    for spread in settings.constraints:
        _add_constraint(spread, key, draft)


def find_unmet_field(settings: TopologySpread, result: PodBeforeAndAfter) -> str | None:
    """Returns the first topology for which the pod has no constraint, or None if it has one for each."""
    present = {constraint.topology_key for constraint in value_or(result.spec.topology_spread_constraints, ())}
    missing = (spread.topology_key for spread in settings.constraints if spread.topology_key not in present)
    return next((f"topologySpreadConstraints[{key}]" for key in missing), None)


def _add_constraint(spread: SpreadConstraint, key: str, draft: PodChanges) -> None:
    name = f"topologySpreadConstraints[{spread.topology_key}]"
    present = value_or(draft.spec.topology_spread_constraints, ())
    author_constraints = draft.subject.pod.spec.topology_spread_constraints
    # Compared with the author's pod: an earlier policy may have added a constraint for the same topology.
    if author_constraints is not UNSET and any(c.topology_key == spread.topology_key for c in author_constraints):
        draft.leave_unchanged(
            name, reasons.ALREADY_SET(f"the pod itself has a spread constraint over {spread.topology_key}")
        )
        return
    text = f"maxSkew {spread.max_skew}, {spread.when_unsatisfiable}, by {key}"
    if draft.claim_field(name, None, text, reasons.POLICY_SAYS("the policy spreads the replicas over nodes or zones")):
        constraint = TopologySpreadConstraint(
            max_skew=spread.max_skew,
            topology_key=spread.topology_key,
            when_unsatisfiable=spread.when_unsatisfiable,
            label_selector=LabelSelector(match_labels={key: draft.subject.labels[key]}),
            min_domains=UNSET if spread.min_domains is None else spread.min_domains,
            # Replicas of an old revision must not keep those of the new one from spreading (KEP-3243).
            match_label_keys=(TEMPLATE_HASH,) if TEMPLATE_HASH in draft.subject.labels else (),
        )
        draft.spec = change(draft.spec, topology_spread_constraints=(*present, constraint))
