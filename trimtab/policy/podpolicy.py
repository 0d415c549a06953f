"""Defines PodPolicy as Python types.

The JSON Schema and the CustomResourceDefinition are generated from these types, and no code after the loader handles
policies in another form. `load` checks all values; policies that are built in code are not checked again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import LabelSelector, SelectorRequirement
from trimtab.policy.actions.empty_dirs import EmptyDirs
from trimtab.policy.actions.labels import Annotations, Labels
from trimtab.policy.actions.limits import LimitsAction
from trimtab.policy.actions.overhead import OverheadAction
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.actions.priority_class import PriorityClassChoice
from trimtab.policy.actions.request_fields import RequestsAction
from trimtab.policy.actions.runtime_class import RuntimeClassChoice
from trimtab.policy.actions.safe_to_evict_volumes import SafeToEvictVolumes
from trimtab.policy.actions.scheduler_name import SchedulerChoice
from trimtab.policy.actions.termination_grace_period import TerminationGracePeriod
from trimtab.policy.actions.topology_spread import TopologySpread
from trimtab.policy.field_types import (
    Flag,
    LabelKey,
    LabelValue,
    Mode,
    OptOut,
    Pattern,
    Percent,
    Quantity,
    Role,
    Whole,
    policy_type,
)

T = TypeVar("T")

API_VERSION = "trimtab.dev/v1alpha1"
KIND = "PodPolicy"


@policy_type
class PolicySelectorRequirement:
    """One expression of a label selector, as in other Kubernetes objects."""

    key: LabelKey
    """The key of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is compared: `In` and `NotIn` with `values`; `Exists` and `DoesNotExist` by the key alone."""
    values: tuple[LabelValue, ...] = ()
    """The values that `In` and `NotIn` compare with; empty for the other operators."""

    def __post_init__(self) -> None:
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            # The same rule as apimachinery's (labels.NewRequirement), so that no selector fails later.
            raise ValueError("values if the operator is In or NotIn, and none with other operators")


@policy_type
class PolicyLabelSelector:
    """A label selector, as in other Kubernetes objects."""

    match_labels: dict[LabelKey, LabelValue] | None = None
    """Label → the value that it must have. All of these must match."""
    match_expressions: tuple[PolicySelectorRequirement, ...] = ()
    """Expressions on labels, all of which must match as well."""

    @property
    def api_selector(self) -> LabelSelector:
        """The selector in the form that `labels_match` takes."""
        expressions = (
            SelectorRequirement(key=e.key, operator=e.operator, values=e.values) for e in self.match_expressions
        )
        return LabelSelector(match_labels=self.match_labels or {}, match_expressions=tuple(expressions))


@policy_type
class NamespaceMatch:
    """Conditions on the pod's namespace, by name and by label."""

    include: tuple[Pattern, ...] = ()
    """Patterns of names; empty means every namespace."""
    exclude: tuple[Pattern, ...] = ()
    """Patterns for namespaces that are left out, even if `include` matches them."""
    selector: PolicyLabelSelector | None = None
    """A label selector for the namespace's own labels."""


@policy_type
class AmountCondition:
    """A condition on the requested amount of a resource. All parts that are set must hold."""

    at_least: Quantity | None = None
    """The amount is this or more."""
    below: Quantity | None = None
    """The amount is less than this, or there is none."""
    exists: Literal[True] | None = None
    """The amount is above zero."""
    absent: Literal[True] | None = None
    """There is no amount."""

    def __post_init__(self) -> None:
        if self.at_least is None and self.below is None and not self.exists and not self.absent:
            raise ValueError("one of atLeast, below, exists, absent")
        if self.absent and (self.exists or self.at_least is not None or self.below is not None):
            raise ValueError("no other field together with absent")
        # Such a range is empty: the policy would never match a pod.
        if self.at_least and self.below and quantity.compare_quantities(self.at_least, self.below) >= 0:
            raise ValueError(f"an atLeast ({self.at_least}) that is less than below ({self.below})")


@policy_type
class Containers:
    """Conditions that select some of a pod's containers."""

    names: tuple[Pattern, ...] = ()
    """The containers' names, or patterns for them; empty means all containers."""
    roles: tuple[Role, ...] = ()
    """The roles of the containers: `main`, `init`, `sidecar` (an init container that keeps running); empty means
    all."""
    images: tuple[Pattern, ...] = ()
    """Patterns of images, compared by their full names: `docker.io/*` also matches `nginx:1.27`. A wildcard before the
    first slash matches no slash: `*.example.com/*` selects only images of these registries. A pattern without a slash
    means official images of Docker Hub (`nginx*`), or, if it begins with `*`, images of every registry (`*:latest`)."""
    not_images: tuple[Pattern, ...] = ()
    """Only containers whose image matches none of these patterns, such as images from outside your own registry."""
    requests: dict[LabelKey, AmountCondition] | None = None
    """Conditions on the container's requests, by resource."""


@policy_type
class Conditions:
    """Conditions on a pod. All that are set must hold; a condition that is absent always holds."""

    namespaces: NamespaceMatch | None = None
    pod_labels: dict[LabelKey, Pattern] | None = None
    """Label → value or pattern; `*` means that the label exists."""
    pod_selector: PolicyLabelSelector | None = None
    """A full label selector for the pod's labels, if patterns are not enough."""
    owners: tuple[Pattern, ...] = ()
    """Owners as `Deployment`, or with a pattern for the name as `StatefulSet/db-*`. Indirect owners count too. `Pod`
    means a pod without an owner. A kind of another group with the name of a built-in kind is written with its group, as
    `StatefulSet.apps.kruise.io`."""
    containers: Containers | None = None
    """The pod has at least one such container. Under `match`, requests and limits then apply only to these
    containers."""
    runtime_classes: tuple[Pattern, ...] = ()
    """The RuntimeClass that the pod names; `none` means that it names none."""
    priority_classes: tuple[Pattern, ...] = ()
    """The PriorityClass of the pod; `none` means that it has none."""
    requests: dict[LabelKey, AmountCondition] | None = None
    """Conditions on the requests of the whole pod, by resource, as the scheduler counts them, without overhead:
    `nvidia.com/gpu: {exists: true}`, `cpu: {atLeast: 8}`."""
    annotations: dict[LabelKey, Pattern] | None = None
    """Annotation of the pod → value or pattern; `*` means that the annotation exists."""
    service_accounts: tuple[Pattern, ...] = ()
    """The ServiceAccount of the pod; a pod that names none has `default`."""
    vpa: Literal["managed", "unmanaged"] | None = None
    """Whether a VerticalPodAutoscaler manages the pod."""
    hpa: Literal["utilization", "unaffected"] | None = None
    """`utilization`: a HorizontalPodAutoscaler scales the pod's owner by usage relative to requests, so another request
    changes the number of replicas. `unaffected`: no HorizontalPodAutoscaler does."""


@policy_type
# Exclusions have no exclusions of their own, which keeps a policy readable as one sentence.
class Match(Conditions):
    """The pods to which a policy applies. Empty: every pod outside the namespaces that are always excluded."""

    exclude: tuple[Conditions, ...] = ()
    """Exceptions: the policy does not apply to pods that satisfy any of these entries."""


@policy_type
class Actions:
    """What a policy does. Each action is optional; at least one is required."""

    runtime_class: RuntimeClassChoice | None = None
    overhead: OverheadAction | None = None
    requests: RequestsAction | None = None
    limits: LimitsAction | None = None
    placement: PlacementAction | None = None
    safe_to_evict_volumes: SafeToEvictVolumes | None = None
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
