"""What one VPA says about its recommendation: annotations that choose the rule and the window, and the bump after OOM
kills in its container policies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from trimtab.cluster import quantity, usage_rule
from trimtab.cluster.api.autoscaling import ContainerPolicy, VerticalPodAutoscaler
from trimtab.cluster.api.meta import UnsetType, value_or
from trimtab.cluster.format_count import join_first
from trimtab.cluster.quantity import NotAQuantity, Written
from trimtab.cluster.recommendation import RESOURCES
from trimtab.cluster.usage_rule import ADAPTIVE, UsageRule
from trimtab.histogram.oom_kills import BUMP_UP_RATIO, MIN_BUMP_UP_BYTES, BumpUp

RULE_ANNOTATIONS = {"cpu": "trimtab.dev/vpa-cpu", "memory": "trimtab.dev/vpa-memory"}
"""Resource → the annotation of a VPA with the rule for it, such as `p95 +10%`."""
WINDOW_ANNOTATION = "trimtab.dev/vpa-window-days"
"""The annotation of a VPA with the number of days of usage from which its recommendation is computed."""
MIN_WINDOW_DAYS = 2
"""The shortest window: today and yesterday. Today alone has a day of usage only shortly before midnight."""
MAX_PROBLEMS = 5
"""The number of problems that a VPA's status names. A VPA may have thousands of policies, and a status has a size."""
MAX_NAME_LENGTH = 63
"""The length of the longest name of a container. A policy may have a longer one, which matches none."""
_WHOLE_NUMBER = re.compile("[1-9][0-9]{0,3}")
ANY_CONTAINER = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaSettings:
    """How the recommendation of one VPA is computed."""

    window_days: int
    rules: Mapping[str, UsageRule] = field(default_factory=dict)
    """Resource → its rule; a resource that is missing has the adaptive rule."""

    def rule_of(self, resource: str) -> UsageRule:
        """Returns the rule of one resource."""
        return self.rules.get(resource, ADAPTIVE)

    def percentiles_of(self, resource: str) -> tuple[Decimal, ...]:
        """Returns the percentiles that must be computed from the usage, in addition to the fixed ones."""
        percentile = self.rule_of(resource).percentile
        return () if percentile is None else (percentile,)


@dataclass(frozen=True, slots=True)
class UnreadableSettings:
    """What is not valid in a VPA: a sentence for each field."""

    problems: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The first problems in one sentence."""
        return join_first(self.problems, MAX_PROBLEMS)


def annotations_of(vpa: VerticalPodAutoscaler) -> tuple[str | None, ...]:
    """Returns the annotations that choose how the VPA's recommendation is computed; None for one that is absent. A
    change of them does not change the VPA's generation."""
    annotations = value_or(vpa.metadata.annotations, {})
    return tuple(annotations.get(name) for name in (*RULE_ANNOTATIONS.values(), WINDOW_ANNOTATION))


def read_settings(vpa: VerticalPodAutoscaler, max_days: int) -> VpaSettings | UnreadableSettings:
    """Returns the VPA's settings; UnreadableSettings if an annotation or an amount in a policy is not valid. `max_days`
    is the number of days that the history has."""
    annotations, problems = value_or(vpa.metadata.annotations, {}), list[str]()
    rules: dict[str, UsageRule] = {}
    for resource, name in RULE_ANNOTATIONS.items():
        if name in annotations:
            try:
                rules[resource] = usage_rule.parse(annotations[name])
            except ValueError as error:
                problems.append(f"annotation {name}: expected {error}")
    days = annotations.get(WINDOW_ANNOTATION, str(max_days))
    if WINDOW_ANNOTATION in annotations and not (
        _WHOLE_NUMBER.fullmatch(days) and MIN_WINDOW_DAYS <= int(days) <= max_days
    ):
        problems.append(f"annotation {WINDOW_ANNOTATION}: expected a whole number from {MIN_WINDOW_DAYS} to {max_days}")
    problems += [problem for policy in vpa.spec.resource_policy.container_policies for problem in _problems_of(policy)]
    return UnreadableSettings(tuple(problems)) if problems else VpaSettings(window_days=int(days), rules=rules)


def _problems_of(policy: ContainerPolicy) -> list[str]:
    amounts: dict[str, Written | None] = {
        "oomBumpUpRatio": policy.oom_bump_up_ratio,
        "oomMinBumpUp": policy.oom_min_bump_up,
        **{f"minAllowed.{resource}": policy.min_allowed.get(resource) for resource in RESOURCES},
        **{f"maxAllowed.{resource}": policy.max_allowed.get(resource) for resource in RESOURCES},
    }
    return [
        f"{name} of container {policy.container_name:.{MAX_NAME_LENGTH}}: expected a quantity of at least 0"
        for name, amount in amounts.items()
        if amount is not None and not (quantity.is_quantity(amount) and quantity.to_milli(amount) >= 0)
    ]


def policy_of(vpa: VerticalPodAutoscaler, container: str) -> ContainerPolicy:
    """Returns the policy of a container: the first of its own, else the last of `*`, else the VPA's defaults. The VPA's
    own processes choose in the same way among several (pkg/utils/vpa/api.go)."""
    policies = vpa.spec.resource_policy.container_policies
    own = (policy for policy in policies if policy.container_name == container)
    of_any = (policy for policy in reversed(policies) if policy.container_name == ANY_CONTAINER)
    return next(own, None) or next(of_any, None) or ContainerPolicy()


def controls(policy: ContainerPolicy, resource: str) -> bool:
    """Returns whether the VPA recommends this resource of the container: its mode is not `Off`, and the resource is
    among its controlledResources, if there are any."""
    resources = policy.controlled_resources
    return policy.mode != "Off" and (isinstance(resources, UnsetType) or resource in resources)


def bump_up_of(policy: ContainerPolicy) -> BumpUp:
    """Returns how much more memory a container needs after an OOM kill."""
    ratio, minimum = policy.oom_bump_up_ratio, policy.oom_min_bump_up
    return BumpUp(
        ratio=BUMP_UP_RATIO if ratio is None else max(1.0, quantity.to_milli(ratio) / 1000),
        min_bytes=MIN_BUMP_UP_BYTES if minimum is None else max(0, quantity.to_whole_units(minimum)),
    )


def bound_amount(policy: ContainerPolicy, resource: str, amount: int) -> int:
    """Returns the amount within the policy's minAllowed and maxAllowed, the latter last, as the VPA's own recommender
    does. A bound of 0 bounds nothing."""
    minimum, maximum = (_bound(bounds.get(resource), resource) for bounds in (policy.min_allowed, policy.max_allowed))
    raised = max(amount, minimum) if minimum else amount
    return min(raised, maximum) if maximum else raised


def _bound(amount: Written | None, resource: str) -> int:
    try:
        return 0 if amount is None else quantity.scheduler_value(resource, amount)
    except NotAQuantity:
        return 0
