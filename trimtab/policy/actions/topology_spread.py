"""How should replicas be spread where nobody said so?"""

from typing import Annotated, Literal

from pydantic import Field

from trimtab.cluster.api.meta import UNSET, LabelSelector, change, get
from trimtab.cluster.api.pod import TopologySpreadConstraint
from trimtab.policy import reasons
from trimtab.policy.draft import Draft
from trimtab.policy.subject import Place
from trimtab.policy.vocabulary import LabelKey, words

_HASH = "pod-template-hash"


@words
class Spread:
    """One constraint, added where the pod has none for this topology."""

    topology_key: LabelKey
    """The node label whose values are the domains, such as topology.kubernetes.io/zone."""
    max_skew: Annotated[int, Field(strict=True, ge=1)] = 1
    """How many more replicas one domain may have than the least."""
    when_unsatisfiable: Literal["ScheduleAnyway", "DoNotSchedule"] = "ScheduleAnyway"
    """`DoNotSchedule` can keep a pod from starting; the default only prefers."""
    min_domains: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Only with DoNotSchedule."""

    def __post_init__(self) -> None:
        if self.min_domains is not None and self.when_unsatisfiable != "DoNotSchedule":
            raise ValueError("whenUnsatisfiable DoNotSchedule where minDomains is given")


@words
class TopologySpread:
    """Default spread constraints for pods that have none for the topology."""

    constraints: Annotated[tuple[Spread, ...], Field(min_length=1)]
    by: Annotated[tuple[LabelKey, ...], Field(min_length=1)] = (
        "app.kubernetes.io/instance",
        "app.kubernetes.io/name",
        "app",
        "k8s-app",
    )
    """Labels that tell replicas of one workload; the first that the pod carries is used."""

    def __post_init__(self) -> None:
        keys = [constraint.topology_key for constraint in self.constraints]
        if len(set(keys)) < len(keys):
            raise ValueError("each topologyKey once")


def propose(settings: TopologySpread, draft: Draft, places: tuple[Place, ...]) -> None:
    """Add what is missing, topology by topology."""
    key = next((label for label in settings.by if label in draft.subject.labels), None)
    if draft.spec.node_name or any(owner.kind == "DaemonSet" for owner in draft.subject.owners):
        return
    if key is None:
        reason = reasons.NO_SELECTOR_LABEL(f"the pod carries none of the labels {', '.join(settings.by)}")
        draft.leave("topologySpreadConstraints", reason)
        return
    for spread in settings.constraints:
        _add(spread, key, draft)


def _add(spread: Spread, key: str, draft: Draft) -> None:
    name = f"topologySpreadConstraints[{spread.topology_key}]"
    present = get(draft.spec.topology_spread_constraints, ())
    if any(c.topology_key == spread.topology_key for c in get(draft.subject.pod.spec.topology_spread_constraints, ())):
        draft.leave(name, reasons.ALREADY_SET(f"the pod spreads over {spread.topology_key} itself"))
        return
    text = f"maxSkew {spread.max_skew}, {spread.when_unsatisfiable}, by {key}"
    if draft.claim(name, None, text, reasons.POLICY_SAYS("the policy spreads replicas")):
        constraint = TopologySpreadConstraint(
            max_skew=spread.max_skew,
            topology_key=spread.topology_key,
            when_unsatisfiable=spread.when_unsatisfiable,
            label_selector=LabelSelector(match_labels={key: draft.subject.labels[key]}),
            min_domains=UNSET if spread.min_domains is None else spread.min_domains,
            # Replicas of an old revision must not keep those of the new one from spreading (KEP-3243).
            match_label_keys=(_HASH,) if _HASH in draft.subject.labels else (),
        )
        draft.spec = change(draft.spec, topology_spread_constraints=(*present, constraint))
