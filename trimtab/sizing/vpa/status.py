"""The status of a VPA that names Trimtab as its recommender: a pure function of the VPA and of what is known of its
target.

No amount is written before there is a day of usage, and none is lowered before there are eight. What the VPA's status
has until then, from whichever recommender, stays: a VPA that changes its recommender must not lose a request because
the next one does not know the workload yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.cluster import quantity
from trimtab.cluster.api.autoscaling import ContainerRecommendation, VerticalPodAutoscaler
from trimtab.cluster.reason import Code, NotYet, Reason
from trimtab.cluster.recommendation import RESOURCES, VPA_RECOMMENDER_NAME
from trimtab.cluster.timestamps import Seconds, format_timestamp, parse_timestamp
from trimtab.policy.cluster_facts import vpa_target
from trimtab.sizing.statistics import UsageStatistics
from trimtab.sizing.vpa import reasons
from trimtab.sizing.vpa.amounts import (
    FULL_HISTORY_DAYS,
    ResourceAmounts,
    amounts_from_usage,
    is_full_history,
    never_lower,
    present_amounts,
    within_policy,
)
from trimtab.sizing.vpa.settings import (
    UnreadableSettings,
    VpaSettings,
    bump_up_of,
    controls,
    policy_of,
    read_settings,
)
from trimtab.sizing.vpa.target_usage import TargetPods, TargetUsage

PROVIDED, LOW_CONFIDENCE, NO_PODS, UNSUPPORTED = (
    "RecommendationProvided",
    "LowConfidence",
    "NoPodsMatched",
    "ConfigUnsupported",
)
"""The types of the conditions that Trimtab writes, from the VPA's API."""

Amounts = dict[str, dict[str, ResourceAmounts]]
"""Container → resource → its amounts."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Says that a VPA's status is not Trimtab's to write, and why."""

    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedStatus:
    """The status that a VPA should have."""

    amounts: Amounts | None
    """The recommendation; None if the one that the VPA has stays as it is, whatever it is."""
    conditions: dict[str, Reason]
    """Condition that is true → its reason. `RecommendationProvided` is always there (see `provided`)."""
    provided: bool
    """Whether the condition `RecommendationProvided` is true."""
    generation: int
    used_until: Seconds | None = None
    """The time of the newest sample of usage, or None if there is none."""


def names_trimtab(vpa: VerticalPodAutoscaler) -> bool:
    """Returns whether the VPA's recommenders are Trimtab and no other."""
    return [selector.name for selector in vpa.spec.recommenders] == [VPA_RECOMMENDER_NAME]


def why_left_alone(vpa: VerticalPodAutoscaler) -> LeftAlone | None:
    """Returns why Trimtab does not write this VPA's status; None if it does."""
    if names_trimtab(vpa):
        return None
    if VPA_RECOMMENDER_NAME in [selector.name for selector in vpa.spec.recommenders]:
        return LeftAlone(
            reasons.SEVERAL_RECOMMENDERS(f"VPA {vpa.metadata.name} names {len(vpa.spec.recommenders)} recommenders")
        )
    return LeftAlone(reasons.ANOTHER_RECOMMENDER(f"VPA {vpa.metadata.name} does not name {VPA_RECOMMENDER_NAME}"))


def build_status(
    vpa: VerticalPodAutoscaler, pods: TargetPods, usage: TargetUsage | None, *, max_days: int, now: Seconds
) -> WantedStatus | LeftAlone:
    """Returns the status that the VPA should have. `usage` is None if no usage of its target is known, and `max_days`
    is the number of days that the history has."""
    left_alone = why_left_alone(vpa)
    if left_alone is not None:
        return left_alone
    settings, unsupported = read_settings(vpa, max_days), _why_unsupported(vpa, pods)
    if isinstance(settings, UnreadableSettings):
        unsupported = unsupported or reasons.BAD_SETTINGS(settings.sentence)
    if unsupported is not None or isinstance(settings, UnreadableSettings):
        assert unsupported is not None
        provided = bool(vpa.status.recommendation.container_recommendations)
        conditions = {UNSUPPORTED: unsupported, PROVIDED: unsupported}
        return WantedStatus(
            amounts=None, conditions=conditions, provided=provided, generation=vpa.metadata.generation, used_until=None
        )
    return _status_from_usage(vpa, pods, usage, settings, now)


def _why_unsupported(vpa: VerticalPodAutoscaler, pods: TargetPods) -> Reason | None:
    target = vpa_target(vpa)
    if not (vpa.spec.target_ref.kind_name and vpa.spec.target_ref.name):
        return reasons.NO_TARGET("spec.targetRef names no object")
    if pods.topmost != target:
        return reasons.TARGET_HAS_OWNER(f"{target} belongs to {pods.topmost}; name that in spec.targetRef")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The amounts of one resource of one container, before the VPA's bounds."""

    amounts: ResourceAmounts | None
    doubt: Reason | None = None
    """Why the amounts are not, or not only, those of the usage."""

    @property
    def is_from_usage(self) -> bool:
        """Whether there is enough usage, so that the amounts are more than those that the VPA had."""
        return self.doubt is None or self.doubt.code == reasons.NOT_LOWERED_YET


def _status_from_usage(
    vpa: VerticalPodAutoscaler, pods: TargetPods, usage: TargetUsage | None, settings: VpaSettings, now: Seconds
) -> WantedStatus:
    present, amounts, choices = _entries_of(vpa), Amounts(), list[_Choice]()
    for container in _containers_of(pods, usage, present):
        policy = policy_of(vpa, container)
        for resource in filter(lambda resource: controls(policy, resource), RESOURCES):
            before = present_amounts(present.get(container), resource)
            choice = _choose_amounts(vpa, usage, container, resource, settings, before, now)
            choices.append(choice)
            if choice.amounts is not None:
                amounts.setdefault(container, {})[resource] = within_policy(choice.amounts, policy, resource)
    doubts = [choice.doubt for choice in choices if choice.doubt is not None]
    is_from_usage = any(choice.is_from_usage for choice in choices)
    used_until = usage.last_sample_at if usage is not None and is_from_usage else None
    conditions = {LOW_CONFIDENCE: _join_reasons(doubts)} if doubts else {}
    if not pods.count:
        conditions[NO_PODS] = reasons.NO_PODS(f"no pod belongs to {vpa_target(vpa)}")
    conditions[PROVIDED] = _why_provided(amounts, doubts, used_until, pods)
    return WantedStatus(
        amounts=amounts,
        conditions=conditions,
        provided=bool(amounts),
        generation=vpa.metadata.generation,
        used_until=used_until,
    )


def _entries_of(vpa: VerticalPodAutoscaler) -> dict[str, ContainerRecommendation]:
    """Returns container → the first entry of its name in the VPA's status, which is the one that counts."""
    return {entry.container_name: entry for entry in reversed(vpa.status.recommendation.container_recommendations)}


def _containers_of(
    pods: TargetPods, usage: TargetUsage | None, present: dict[str, ContainerRecommendation]
) -> list[str]:
    """Returns the containers to recommend for, sorted: those of the pods; if there are none, those with usage or with a
    recommendation."""
    names = pods.containers or {*(usage.containers if usage is not None else ()), *present}
    return sorted(names - pods.init_containers)


def _choose_amounts(
    vpa: VerticalPodAutoscaler,
    usage: TargetUsage | None,
    container: str,
    resource: str,
    settings: VpaSettings,
    before: ResourceAmounts | None,
    now: Seconds,
) -> _Choice:
    statistics = None if usage is None else usage.summarize(container, resource, settings, now)
    if usage is None or statistics is None or isinstance(statistics, NotYet) or statistics.is_young:
        span = "no usage" if statistics is None else _history_of(statistics)
        stays = "" if before is None else "; its present recommendation stays"
        return _Choice(amounts=before, doubt=reasons.TOO_LITTLE_HISTORY(f"{container} {resource}: {span}{stays}"))
    floor = usage.oom_floor(container, bump_up_of(policy_of(vpa, container)), statistics, settings, now)
    amounts = amounts_from_usage(settings.rule_of(resource), statistics, floor)
    if before is None or before.uncapped <= amounts.uncapped or is_full_history(statistics, settings.window_days):
        return _Choice(amounts=amounts)
    sentence = f"{container} {resource}: {statistics.span_text} of {FULL_HISTORY_DAYS}, so the amount is not lowered"
    return _Choice(amounts=never_lower(amounts, before), doubt=reasons.NOT_LOWERED_YET(sentence))


def _history_of(statistics: UsageStatistics | NotYet) -> str:
    return f"{statistics.have if isinstance(statistics, NotYet) else statistics.span_text} of a day"


def _join_reasons(doubts: list[Reason]) -> Reason:
    """Returns one reason with all sentences. Its code is that of the first doubt about too little history, if any."""
    first = next((doubt.code for doubt in doubts if doubt.code == reasons.TOO_LITTLE_HISTORY), doubts[0].code)
    return first("; ".join(doubt.sentence for doubt in doubts))


def _why_provided(amounts: Amounts, doubts: list[Reason], used_until: Seconds | None, pods: TargetPods) -> Reason:
    if amounts and used_until is not None:
        return reasons.FROM_RECORDED_USAGE(f"{_USED_UNTIL}{format_timestamp(used_until)}")
    if amounts or doubts:
        return _join_reasons(doubts)
    if not pods.count:
        return reasons.NO_PODS("there is neither a pod nor any usage of the target")
    return reasons.NOTHING_CONTROLLED("the container policies leave nothing to recommend")


# ── as a document ────────────────────────────────────────────────────────────────────────────────────────────────

_USED_UNTIL = "Trimtab computed the recommendation from the usage until "
_TIME_IN_MESSAGE = re.compile(re.escape(_USED_UNTIL) + r"(\S{1,40})")


def read_used_until(vpa: VerticalPodAutoscaler) -> Seconds | None:
    """Returns the time until which the usage goes that the VPA's status was computed from; None if Trimtab did not
    write the status, or it was computed from no usage."""
    for condition in vpa.status.conditions:
        match = _TIME_IN_MESSAGE.match(condition.message) if condition.type == PROVIDED else None
        if match is not None:
            return parse_timestamp(match[1])
    return None


REFRESH_SECONDS = 3600
"""How far the time in the status may be behind the newest sample, in seconds, before the status is written again only
for it."""


def status_document(vpa: VerticalPodAutoscaler, wanted: WantedStatus, now: Seconds) -> dict[str, Any]:
    """Returns the fields of the status as a merge patch writes them. Conditions of other types are removed: they were
    those of another recommender."""
    document: dict[str, Any] = {
        "conditions": [_condition(vpa, kind, wanted, now) for kind in sorted(wanted.conditions)],
        "observedGeneration": wanted.generation,
    }
    if wanted.amounts is not None:
        document["recommendation"] = _recommendation(wanted.amounts) if wanted.amounts else None
    return document


def _condition(vpa: VerticalPodAutoscaler, kind: str, wanted: WantedStatus, now: Seconds) -> dict[str, Any]:
    is_true = wanted.provided if kind == PROVIDED else True
    status, reason = "True" if is_true else "False", wanted.conditions[kind]
    before = next((one for one in vpa.status.conditions if one.type == kind), None)
    since = before.last_transition_time if before is not None and before.status == status else None
    return {
        "type": kind,
        "status": status,
        "reason": condition_reason(reason.code),
        "message": reason.sentence,
        "lastTransitionTime": since or format_timestamp(now),
        "observedGeneration": wanted.generation,
    }


def condition_reason(code: Code) -> str:
    """Returns the code in the form of a condition's reason: `VpaFromUsage`."""
    return "".join(word.capitalize() for word in code.name.split("-"))


def _recommendation(amounts: Amounts) -> dict[str, Any]:
    fields: dict[str, Callable[[ResourceAmounts], int]] = {
        "target": lambda amount: amount.target,
        "lowerBound": lambda amount: amount.lower,
        "upperBound": lambda amount: amount.upper,
        "uncappedTarget": lambda amount: amount.uncapped,
    }
    entries = [
        {
            "containerName": container,
            **{
                name: {
                    resource: quantity.format_quantity(resource, read(amount))
                    for resource, amount in by_resource.items()
                }
                for name, read in fields.items()
            },
        }
        for container, by_resource in sorted(amounts.items())
    ]
    return {"containerRecommendations": entries}


def needs_write(vpa: VerticalPodAutoscaler, wanted: WantedStatus, tolerance: float) -> bool:
    """Returns whether the status differs from the wanted one by more than `tolerance`, a share of an amount. A higher
    target is written however small the difference is, the time of the usage once an hour or if it is in the future, and
    what is not supported whenever it is another sentence."""
    conditions = {one.type: one for one in vpa.status.conditions}
    # A definition before VPA 1.8 has no field for the generation, and the API server drops it.
    if conditions.keys() != wanted.conditions.keys() or vpa.status.observed_generation not in (None, wanted.generation):
        return True
    for kind, reason in wanted.conditions.items():
        is_true = wanted.provided if kind == PROVIDED else True
        present = conditions[kind]
        if (present.status, present.reason) != ("True" if is_true else "False", condition_reason(reason.code)):
            return True
        if kind == UNSUPPORTED and present.message != reason.sentence:
            return True
    # Either way: a time ahead of the usage, by a clock that was wrong, would hide how old the recommendation becomes.
    if abs((wanted.used_until or 0) - (read_used_until(vpa) or 0)) >= REFRESH_SECONDS:
        return True
    return wanted.amounts is not None and any(_differences(vpa, wanted.amounts, tolerance))


def _differences(vpa: VerticalPodAutoscaler, amounts: Amounts, tolerance: float) -> Iterator[bool]:
    present = _entries_of(vpa)
    yield present.keys() != amounts.keys()
    for container, entry in present.items():
        wanted = amounts.get(container, {})
        for resource in RESOURCES:
            before, after = present_amounts(entry, resource), wanted.get(resource)
            if before is None or after is None:
                yield (before is None) is not (after is None)
            else:
                pairs = zip(before.all, after.all, strict=True)
                yield after.target > before.target or any(
                    abs(new - old) > tolerance * max(old, 1) for old, new in pairs
                )
