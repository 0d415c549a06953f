"""What the requests actions of whole policies say: which rules they have, whether they resize, which images they name.

Whoever asks a policy about its requests asks here."""

from collections.abc import Iterator

from trimtab.policy.actions.request_fields import (
    ContainerRequests,
    RequestRule,
    RequestsAction,
    ResourceRequestRule,
    request_rules,
)
from trimtab.policy.podpolicy import PodPolicy, Policies


def policies_that_resize(policies: Policies) -> tuple[PodPolicy, ...]:
    """Returns the policies in mode `apply` that have `running: resize`."""
    applied = (policy for policy in policies.all if policy.spec.mode == "apply")
    return tuple(policy for policy in applied if any(rule.running == "resize" for rule in _usage_rules(policy)))


def usage_rules(policies: Policies) -> Iterator[ResourceRequestRule]:
    """Yields the rules for cpu and memory of all policies."""
    return (rule for policy in policies.all for rule in _usage_rules(policy))


def request_image_patterns(policy: PodPolicy) -> Iterator[str]:
    """Yields the patterns by which the policy's requests select containers."""
    return (image for part in _parts(policy) if isinstance(part, ContainerRequests) for image in part.images)


def adds_missing_requests(policy: PodPolicy) -> bool:
    """Returns whether the policy has a rule that only adds missing requests and replaces none."""
    return any(fills_gap(rule) for part in _parts(policy) for _, rule in request_rules(part))


def fills_gap(rule: RequestRule) -> bool:
    """Returns whether the rule only adds missing requests and replaces none."""
    return rule.when == "missing" and rule.from_ != "request"


def _usage_rules(policy: PodPolicy) -> Iterator[ResourceRequestRule]:
    return (rule for part in _parts(policy) for rule in (part.cpu, part.memory) if rule is not None)


def _parts(policy: PodPolicy) -> tuple[RequestsAction | ContainerRequests, ...]:
    settings = policy.spec.actions.requests
    return () if settings is None else (settings, *settings.containers)
