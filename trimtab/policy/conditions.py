"""The conditions with which a policy selects pods: its `match`, and the exceptions in it.

Defined as Python types, like the whole of a PodPolicy (`podpolicy`). They know nothing of actions, which read them.
"""

from fnmatch import fnmatchcase
from typing import Literal

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import LabelSelector, SelectorRequirement
from trimtab.policy.field_types import LabelKey, LabelValue, Pattern, Quantity, Role, policy_type


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


def can_meet_patterns(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Returns whether two lists of patterns can select the same name. An empty list selects everything."""
    return not a or not b or any(is_meeting(pattern, other_pattern) for pattern in a for other_pattern in b)


def is_meeting(a: str, b: str) -> bool:
    """Returns whether both patterns may match the same name. Two patterns with wildcards always may."""
    has_wildcards = [bool(set(pattern) & set("*?[")) for pattern in (a, b)]
    if all(has_wildcards):
        return True
    # A name without wildcards meets a pattern exactly where the pattern matches it.
    return fnmatchcase(a, b) if has_wildcards[1] else fnmatchcase(b, a)
