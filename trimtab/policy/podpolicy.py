"""Defines PodPolicy as Python types.

The JSON Schema and the CustomResourceDefinition are generated from these types, and no code after the loader handles
policies in another form. `load` checks all values; policies that are built in code are not checked again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from trimtab.policy.actions.disruption_terms import DisruptionTermsAction
from trimtab.policy.actions.empty_dirs import EmptyDirs
from trimtab.policy.actions.labels import Annotations, Labels
from trimtab.policy.actions.limits import LimitsAction
from trimtab.policy.actions.overhead import OverheadAction
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.actions.pod_level_requests import PodLevelRequests
from trimtab.policy.actions.priority_class import PriorityClassChoice
from trimtab.policy.actions.request_fields import RequestsAction
from trimtab.policy.actions.runtime_class import RuntimeClassChoice
from trimtab.policy.actions.safe_to_evict_volumes import SafeToEvictVolumes
from trimtab.policy.actions.scheduler_name import SchedulerChoice
from trimtab.policy.actions.termination_grace_period import TerminationGracePeriod
from trimtab.policy.actions.topology_spread import TopologySpread
from trimtab.policy.conditions import Match
from trimtab.policy.field_types import (
    Flag,
    Mode,
    OptOut,
    Percent,
    Whole,
    policy_type,
)

T = TypeVar("T")


@policy_type
class Actions:
    """What a policy does. Each action is optional; at least one is required."""

    runtime_class: RuntimeClassChoice | None = None
    overhead: OverheadAction | None = None
    requests: RequestsAction | None = None
    limits: LimitsAction | None = None
    pod_level_requests: PodLevelRequests | None = None
    placement: PlacementAction | None = None
    safe_to_evict_volumes: SafeToEvictVolumes | None = None
    disruption_terms: DisruptionTermsAction | None = None
    priority_class: PriorityClassChoice | None = None
    topology_spread: TopologySpread | None = None
    scheduler_name: SchedulerChoice | None = None
    termination_grace_period: TerminationGracePeriod | None = None
    empty_dirs: EmptyDirs | None = None
    labels: Labels | None = None
    annotations: Annotations | None = None


@policy_type
class Spec:
    """The `spec` of a policy."""

    description: str = ""
    """A sentence for users who want to know why the policy changes their pod."""
    enabled: Flag = True
    """`false` switches the policy off without deleting it."""
    priority: Whole = 0
    """The policy with the highest priority decides a field. Among equal priorities, it is the one whose name comes
    first in alphabetical order."""
    mode: Mode = "apply"
    """`apply`: change pods. `warn`: change nothing, and warn about what would be changed. `audit`: change nothing, and
    only count and log it."""
    rollout: Percent = 100
    """The percentage of owners to whose pods the policy applies. A given percentage always means the same owners, and a
    larger one adds owners."""
    guaranteed: Literal["leave", "change"] = "leave"
    """`leave`: the requests and limits of pods with the class Guaranteed are not changed. `change`: they may be."""
    opt_out: OptOut = "pod"
    """What opts a pod out of this policy with `trimtab.dev/opt-out`. `pod`: a label or annotation of the pod, or a
    label of its namespace. `namespace`: only a label of the namespace. `nobody`: no one. A pod that opts out of a
    `required` action by itself is refused."""
    match: Match = Match()
    actions: Actions


@policy_type
# The API server and GitOps tools add fields to metadata, so only the name is checked here.
class PolicyMetadata:
    """The name of the policy, and everything else that an object's metadata holds (labels, annotations, managed
    fields)."""

    name: Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodPolicy:
    """A policy with its name and the file that it was loaded from."""

    name: str
    spec: Spec
    file: str = ""
    line: int | None = None

    @property
    def decision_order(self) -> tuple[int, str]:
        """The sort key of the policies: those that decide first sort first."""
        # The name breaks ties, so that the order never depends on the order of files or of watch events.
        return (-self.spec.priority, self.name)


@dataclass(frozen=True, slots=True)
class Policies:
    """A checked set of policies, in the order in which they decide."""

    all: tuple[PodPolicy, ...] = ()
    _computed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def compute_once(self, make: "Callable[[Policies], T]") -> T:
        """Returns `make(self)`. The result is computed at the first call and kept, because the set does not change."""
        if make not in self._computed:
            self._computed[make] = make(self)
        value: T = self._computed[make]
        return value

    @classmethod
    def from_policies(cls, *policies: PodPolicy) -> "Policies":
        return cls(tuple(sorted(policies, key=lambda p: p.decision_order)))
