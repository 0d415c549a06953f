"""Computes the requests of containers: from usage (P95 if nothing will correct the request later, P5 if a VPA will),
from the policy, or as a share of the container's limit or request.

The policy's own bounds are applied here; all other bounds are applied in `policy/clamp_resources.py`.
"""

from collections.abc import Iterator

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import requests_of
from trimtab.policy import autoscalers, reasons
from trimtab.policy.actions.extended_resources import propose_extended
from trimtab.policy.actions.request_fields import (
    ContainerRequests,
    RequestRule,
    RequestsAction,
    ResourceRequestRule,
    request_rules,
)
from trimtab.policy.actions.request_origin import (
    RequestOrigin,
    find_doubt,
    find_origin,
    limit_to_bounds,
    share_of_request,
)
from trimtab.policy.actions.requests_of_policies import fills_gap
from trimtab.policy.changed_annotation import LIMIT_RANGER, is_defaulted
from trimtab.policy.compiled_annotation import COMPILED_PREFIX, find_compiled_policy, is_compiled_request
from trimtab.policy.pod_changes import PodChanges, RequestToLimitRatio, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter, PodContext, matches_container
from trimtab.policy.podpolicy import PodPolicy
from trimtab.policy.write_resources import find_written_request


def propose_changes(settings: RequestsAction, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes a request for each container and resource that no earlier policy has decided."""
    requests = changes.pod_context.compute_once(_PodRequests)
    for place in places:
        rules = rules_for(settings, place)
        if rules.cpu is not None:
            _propose_request(rules.cpu, changes, requests.request_for(changes.pod_context, place, "cpu"))
        if rules.memory is not None:
            _propose_request(rules.memory, changes, requests.request_for(changes.pod_context, place, "memory"))
        if rules.ephemeral_storage is not None:
            _propose_request(
                rules.ephemeral_storage, changes, requests.request_for(changes.pod_context, place, "ephemeral-storage")
            )
        if rules.extended:
            propose_extended(rules.extended, changes, place)


def find_unmet_field(settings: RequestsAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the first request that is missing, or that the policy should have replaced and did not; None if there is
    none. A request that a VPA decides counts as met, and so does one of the pod as a whole."""
    of_pod = requests_of(result.spec.resources)
    for place in result.places:
        rules, requests = rules_for(settings, place), requests_of(place.container.resources)
        for resource, rule in request_rules(rules):
            name = f"{place.name}.requests.{resource}"
            if resource not in of_pod and _is_unmet(rule, requests.get(resource), result.kept_reasons.get(name)):
                return name
        for resource in rules.extended or {}:
            if resource not in requests:
                return f"{place.name}.requests.{resource}"
    return None


def _is_unmet(rule: RequestRule, current: Written | None, kept_reason: Reason | None) -> bool:
    """Returns whether a request is not what its rule demands. `kept_reason` is the reason for which the policy did not
    change the request, or None if there is none.
    """
    if kept_reason is not None and kept_reason.code in (reasons.VPA_DECIDES, reasons.VPA_BOOSTS):
        return False
    if rule.from_ == "request" and (current is not None or rule.otherwise is None):
        is_whole = rule.percent == 100 or kept_reason is None
        return current is not None and not (is_whole and not _is_outside(rule, current))
    return current is None or (rule.when == "always" and kept_reason is not None)


def _is_outside(rule: RequestRule, amount: Written) -> bool:
    is_below = rule.min is not None and quantity.compare_quantities(amount, rule.min) < 0
    return is_below or (rule.max is not None and quantity.compare_quantities(amount, rule.max) > 0)


def rules_for(settings: RequestsAction, container: ContainerRef) -> RequestsAction | ContainerRequests:
    """Returns the first of the special rules that selects the container, or the general rules if none does."""
    for special in settings.containers:
        if matches_container(special.names, special.roles, special.images, container):
            return special
    return settings


class _ContainerRequest(msgspec.Struct, frozen=True, gc=False):
    """One request of a pod as the webhook received it. It does not depend on policies."""

    place: ContainerRef
    resource: str
    name: str
    written: Written | None
    own: Written | None
    """The request that the pod's author wrote; None if there is none, or if a LimitRange filled it in."""
    stays: Reason | None
    """Why no policy may change the request: a VPA boosts it, or the VPA's webhook wrote it. None if policies may change
    it."""
    sizing: autoscalers.VpaConstraints | None


class _PodRequests:
    """The requests of one pod. Each is read once for all policies. The pod's context caches this object, so it holds no
    reference back to the context, which would be a reference cycle."""

    def __init__(self, pod_context: PodContext) -> None:
        self._vpa_constraints = pod_context.compute_once(autoscalers.index_vpa_constraints)
        # LimitRanger and the VPA's webhook leave annotations; without theirs the request is the author's own.
        self._has_other_writers = (
            autoscalers.is_sized_by_others(pod_context)
            or LIMIT_RANGER in pod_context.annotations
            or any(key.startswith(COMPILED_PREFIX) for key in pod_context.annotations)
        )
        self._cache: dict[tuple[ContainerRef, str], _ContainerRequest] = {}

    def request_for(self, pod_context: PodContext, container: ContainerRef, resource: str) -> _ContainerRequest:
        """Returns the request of one container of the pod for one resource."""
        request = self._cache.get((container, resource))
        if request is None:
            request = self._cache[container, resource] = self._read(pod_context, container, resource)
        return request

    def _read(self, pod_context: PodContext, container: ContainerRef, resource: str) -> _ContainerRequest:
        current, name = (
            requests_of(container.container.resources).get(resource),
            f"{container.name}.requests.{resource}",
        )
        sizing = self._vpa_constraints.constraints_for(container, resource)
        if not self._has_other_writers:
            return _ContainerRequest(container, resource, name, current, current, None, sizing)
        is_filled_in = current is not None and (
            is_defaulted(pod_context, container, "request", resource)
            or is_compiled_request(pod_context, container, resource)
        )
        return _ContainerRequest(
            container,
            resource,
            name,
            current,
            None if is_filled_in else current,
            _vpa_reason(pod_context, container, resource, current),
            sizing,
        )


def _vpa_reason(
    pod_context: PodContext, container: ContainerRef, resource: str, current: Written | None
) -> Reason | None:
    """Returns why a request is not changed because a VPA has set it, or None if no VPA has."""
    if autoscalers.is_boosting_cpu(pod_context, container, resource):
        return reasons.VPA_BOOSTS(f"the VPA raises the cpu of {container.container.name} during its start")
    if current is not None and autoscalers.has_vpa_written(pod_context, container, resource):
        return reasons.VPA_DECIDES(f"a VPA wrote the {resource} request of {container.container.name}")
    return None


def _propose_request(rule: RequestRule, changes: PodChanges, request: _ContainerRequest) -> None:
    """Proposes the request of one container and resource, or records why it is not changed."""
    place, resource, name, own = request.place, request.resource, request.name, request.own
    source = rule.from_
    # A limit that follows its request while the request follows the limit has no value: see `clamp_resources`.
    if source == "limit" and (rule.when == "always" or not changes.is_decided_by_another(name)):
        # With `always` the request will be the share of the limit at the next admission, whatever filled it in before.
        bounded = bool(rule.min or rule.max or rule.round)
        changes.shares.setdefault((place, resource), RequestToLimitRatio(changes.policy, rule.percent, bounded))
    # The share above is recorded all the same: a limit must not follow a request that may become a share of it.
    if request.stays is not None:
        changes.leave_unchanged(name, request.stays)
        return
    # The default of a policy counts as a guess also where it is written in the pod already: by an earlier call of the
    # webhook, or because the manifest was copied from a cluster.
    if (
        source == "usage"
        and rule.otherwise is not None
        and (own is None or name in changes.applied_before or _is_default(rule, resource, own))
    ):
        changes.guesses[place, resource] = None
    vpa = request.sizing
    # The VPA's webhook writes its own target whatever the policy says, so the policy gives the same number.
    if vpa is not None and vpa.target is not None:
        _propose_target(rule, changes, place, own, vpa, resource)
        return
    share_base = None
    if own is not None:
        if fills_gap(rule):
            if not changes.silent:
                changes.leave_unchanged(name, reasons.ALREADY_SET(f"the container itself requests {own}"))
            return
        # The author's request, of which the rule computes a share, even if an earlier share has replaced it by now;
        # None if the author wrote none.
        share_base = find_written_request(changes.pod_context, name, own) if _is_share(rule) else own
        # A policy gave this request where the author wrote none: no share is taken of it.
        if share_base is None:
            own = None
    if own is not None and share_base is not None:
        if source == "request" and _is_already_applied(rule, resource, own, share_base):
            # At the second call the request is what this policy made of it; the field must stay this policy's.
            changes.decide_first(name, str(own))
            return
        if _is_given_by_another_policy(changes, place, resource, own, vpa):
            sentence = f"the container requests {own}, and another policy gives the same value"
            changes.leave_unchanged(name, reasons.ALREADY_SET(sentence))
            return
    request_origin = find_origin(rule, changes.pod_context, place, resource, share_base, vpa)
    if isinstance(request_origin, Reason):
        changes.leave_unchanged(name, request_origin)
        return
    if request_origin is None:
        if source == "request":
            changes.bounds[place, resource] = (*changes.bounds.get((place, resource), ()), rule)
        return
    current = request.written
    if current is not None and request.own is None and not request_origin.is_recommended and rule.when == "missing":
        compiled = find_compiled_policy(changes.pod_context, name)
        if compiled:
            changes.leave_unchanged(
                name,
                reasons.ALREADY_SET(
                    f"the compiled policy {compiled}, which the API server evaluates, has set {current}"
                ),
            )
            return
        sentence = f"a LimitRange has set {current}, and the policy has no recommendation that could replace it"
        changes.leave_unchanged(name, reasons.LIMIT_RANGE_DEFAULT(sentence))
        return
    value, reason = request_origin.bounded or limit_to_bounds(
        rule, resource, request_origin.amount, request_origin.reason, share_base
    )
    # Bounds of a policy with an earlier turn hold for the value as well: its author wants them whatever gives the
    # request.
    earlier_rules = changes.bounds.get((place, resource), ()) if changes.bounds else ()
    for earlier_rule in earlier_rules:
        value, reason = limit_to_bounds(earlier_rule, resource, quantity.scheduler_value(resource, value), reason)
    doubt = find_doubt(rule, resource, request_origin, own, value) if isinstance(rule, ResourceRequestRule) else None
    if doubt is not None:
        changes.leave_unchanged(name, doubt)
        return
    # An earlier policy took no share, because nothing is written; it must not take one of what this policy gives.
    is_recorded = _is_share(rule) or (own is None and any(map(_is_share, earlier_rules)))
    # The last step, so that a policy that gives nothing leaves the field to the next one.
    if changes.decide_first(name, value):
        changes.requests[place, resource] = ResourceRequest(
            place=place,
            resource=resource,
            value=value,
            policy=changes.policy,
            reason=reason,
            changes_guaranteed=changes.changes_guaranteed,
            wrote=(share_base or "") if is_recorded else None,
        )


def _is_default(rule: RequestRule, resource: str, own: Written) -> bool:
    """Returns whether a request equals the rule's `otherwise`, either as written or as the rule rounds and bounds
    it."""
    if rule.otherwise is None:
        return False
    amount = quantity.scheduler_value(resource, rule.otherwise)
    return quantity.is_same_quantity(own, rule.otherwise) or quantity.is_same_quantity(
        own, limit_to_bounds(rule, resource, amount, _NO_REASON)[0]
    )


def _is_share(rule: RequestRule) -> bool:
    """Returns whether the rule computes a share of the current request, so that applying it a second time would change
    the request again."""
    if rule.from_ == "request":
        # 100% of the request is the request: applying it again changes nothing.
        return rule.percent < 100
    if rule.from_ != "usage":
        return False
    return isinstance(rule, ResourceRequestRule) and (rule.min_percent is not None or rule.max_percent is not None)


def _is_already_applied(rule: RequestRule, resource: str, own: Written, share_base: Written) -> bool:
    """Returns whether the request already is what the rule makes of the author's request."""
    if rule.percent == 100:
        return not _is_outside(rule, own)
    amount = share_of_request(rule, resource, share_base)
    return quantity.is_same_quantity(own, limit_to_bounds(rule, resource, amount, _NO_REASON)[0])


_NO_REASON = reasons.POLICY_SAYS("")


def _is_given_by_another_policy(
    changes: PodChanges, container: ContainerRef, resource: str, own: Written, vpa: autoscalers.VpaConstraints | None
) -> bool:
    """Returns whether another policy would have set this same request if the author had written none. The request then
    counts as set by that policy, so that a manifest copied from a cluster is admitted again without a change."""
    return any(
        isinstance(origin := find_origin(rule, changes.pod_context, container, resource, None, vpa), RequestOrigin)
        and quantity.is_same_quantity(
            own, (origin.bounded or limit_to_bounds(rule, resource, origin.amount, origin.reason))[0]
        )
        for rule in _gap_rules_of_other_policies(changes, container, resource)
    )


def _gap_rules_of_other_policies(changes: PodChanges, container: ContainerRef, resource: str) -> Iterator[RequestRule]:
    """Yields the rules of other policies that only add missing requests and that would have set this request."""
    withheld = changes.pod_context.withheld
    for turn in changes.turns:
        if turn.name == changes.policy:
            # A policy that a change brings in has its first turn in a later round, after all those of the round before.
            if not turn.may_match_later:
                return
        elif turn.fills_requests and turn.applies and (turn.name, "requests") not in withheld:
            settings = turn.policy.spec.actions.requests
            if settings is not None and container in turn.select_containers(changes.pod_context):
                for rule_resource, rule in request_rules(rules_for(settings, container)):
                    if rule_resource == resource and fills_gap(rule):
                        yield rule


def _propose_target(
    rule: RequestRule,
    changes: PodChanges,
    container: ContainerRef,
    own: Written | None,
    vpa: autoscalers.VpaConstraints,
    resource: str,
) -> None:
    """Proposes, for a container without a request, the request that the VPA's webhook would set, because that webhook
    may not be called for the pod."""
    field, name = f"{container.name}.requests.{resource}", vpa.name
    if own is not None:
        if rule.when == "always":
            changes.leave_unchanged(
                field, reasons.VPA_DECIDES(f"VPA {name} recommends {resource} for {container.container.name}")
            )
        return
    value = quantity.format_quantity(resource, vpa.target or 0)
    if changes.decide_first(field, value):
        changes.requests[container, resource] = ResourceRequest(
            place=container,
            resource=resource,
            value=value,
            policy=changes.policy,
            reason=reasons.VPA_TARGET(f"VPA {name} recommends {value}"),
            changes_guaranteed=changes.changes_guaranteed,
        )


def resize_rule(policy: PodPolicy, container: ContainerRef, resource: str) -> ResourceRequestRule | None:
    """Returns the rule of the policy by which running pods are resized; None if it has none for the container."""
    settings = policy.spec.actions.requests
    rules = None if settings is None else rules_for(settings, container)
    rule = None if rules is None else rules.cpu if resource == "cpu" else rules.memory
    return rule if rule is not None and rule.running == "resize" else None
