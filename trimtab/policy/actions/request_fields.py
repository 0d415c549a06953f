"""Settings of the requests action: how a container's request of each resource is computed."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from trimtab.cluster import quantity
from trimtab.policy.field_types import (
    Age,
    Confidence,
    ExtendedResource,
    Pattern,
    Percent,
    Percentage,
    Pieces,
    Quantity,
    Required,
    Role,
    UsageRule,
    policy_type,
)


@policy_type
class RequestRule:
    """How the request of one resource is computed."""

    from_: Annotated[Literal["usage", "policy", "limit", "request"], Field(alias="from")] = "usage"
    """Where the request comes from. `usage`: the number that `rule` selects from the container's usage, or P5 if a VPA
    will take over; `otherwise` while the usage is not known. `policy`: always `otherwise`. `limit`: a share of the
    container's limit (see `percent`). `request`: a share of the container's own request, kept between `min` and `max`;
    `otherwise` if it has none."""
    otherwise: Quantity | None = None
    """The request for a container that has none, while nothing better is known. (With `from: policy` and `when: always`
    it also replaces a request that exists.) Absent: the container is left as it is."""
    min: Quantity | None = None
    """The smallest request that the policy sets."""
    max: Quantity | None = None
    """The largest request that the policy sets."""
    percent: Percent = 100
    """With `from: limit` the share of the limit, with `from: request` the share of the container's own request."""
    round: Quantity | None = None
    """The request is rounded up to a multiple of this amount. Default: 1m of cpu, 1Mi of any other resource (a share of
    a limit is rounded down)."""
    when: Literal["missing", "always"] = "missing"
    """When the request is set. `missing`: only if the container has no request. `always`: also in place of the
    container's own request, if the usage is known. The value in `otherwise` never replaces a request that exists,
    except with `from: policy`."""

    def __post_init__(self) -> None:
        if self.from_ == "policy" and self.otherwise is None:
            raise ValueError("`otherwise` with `from: policy`, because `otherwise` is then the value of the request")
        # `from: request` without any of these would set the request to itself.
        if self.from_ == "request" and (self.percent == 0 or not (self.min or self.max or self.percent < 100)):
            raise ValueError(
                "`min`, `max` or a `percent` from 1% to 99% with `from: request`, because otherwise the request "
                "would stay as it is"
            )
        if self.min and self.max and quantity.compare_quantities(self.min, self.max) > 0:
            raise ValueError(f"a min ({self.min}) not above the max ({self.max})")
        if self.otherwise and self.max and quantity.compare_quantities(self.otherwise, self.max) > 0:
            raise ValueError(f"an `otherwise` ({self.otherwise}) not above the max ({self.max})")


@policy_type
class ResourceRequestRule(RequestRule):
    """How the request of cpu or memory is computed."""

    min_percent: Percent | None = None
    """With `from: usage` and `when: always`: the request is at least this share of the container's own request."""
    max_percent: Percentage | None = None
    """With `from: usage` and `when: always`: the request is at most this share of the container's own request. With
    100%, no request is raised."""
    rule: UsageRule = "adaptive"
    """With `from: usage`, if no VPA takes over. `adaptive` is the request with the lowest expected cost, computed for
    each container from its recent usage. `p95` (or p5, p50, p90, p99, `max`) is that percentile of the last two weeks.
    Headroom may follow: `p99 +15%`, or `+15%` alone."""
    pods: Literal["typical", "largest"] = "typical"
    """With `from: usage`, if one pod of the workload always uses far more than the others. `typical`: the request
    covers that pod only if at least a tenth of the pods use as much. `largest`: the request always covers it."""
    under_vpa: Literal["p5", "p95"] = "p5"
    """With `from: usage`, if a VPA has no recommendation yet and will correct the request later. `p5`: a small request,
    which the VPA soon replaces at the price of one eviction of each pod. `p95`: the request that `rule` selects, which
    is enough from the beginning."""
    max_age: Age | None = None
    """With `from: usage`: the maximum age of the newest sample behind a recommendation, such as 14d. Absent: the
    recommendation's own end, 14 days after its last sample. At the end nothing changes for workloads that existed
    before it; workloads that are created later get `otherwise`."""
    min_confidence: Confidence | None = None
    """With `from: usage`: the confidence, from 0 to 1, below which a recommendation is not used. Absent: 0.5 to lower a
    request; recommendations that raise a request or add a missing one are always used."""
    running: Literal["leave", "resize"] = "leave"
    """With `from: usage`: whether running pods follow their recommendation. `resize`: the compactor resizes them in
    place, without a restart, on nodes of pools in mode `act`. `leave`: the request is only set on new pods."""

    def __post_init__(self) -> None:
        RequestRule.__post_init__(self)  # `super()` without arguments does not know a class with slots
        if self.from_ != "usage" and (self.rule != "adaptive" or self.pods != "typical"):
            raise ValueError("`rule` and `pods` only with `from: usage`, because they choose a number from the usage")
        if self.from_ != "usage" and (self.max_age is not None or self.min_confidence is not None):
            raise ValueError(
                "`maxAge` and `minConfidence` only with `from: usage`, because only a recommendation from usage "
                "has an age and a confidence"
            )
        if self.from_ != "usage" and self.running != "leave":
            raise ValueError(
                "`running: resize` only with `from: usage`, because the requests of running pods follow measured usage"
            )
        shares = [share for share in (self.min_percent, self.max_percent) if share is not None]
        # `missing` never replaces a request, so there is nothing that a share could bound.
        if shares and (self.from_ != "usage" or self.when != "always"):
            raise ValueError("`minPercent` and `maxPercent` only with `from: usage` and `when: always`")
        if shares != sorted(shares):
            raise ValueError(f"a minPercent ({self.min_percent}%) not above the maxPercent ({self.max_percent}%)")


@policy_type
class PlainRequest(RequestRule):
    """How the request of a resource without measured usage is computed."""

    from_: Annotated[Literal["policy", "limit", "request"], Field(alias="from")] = "policy"
    """Where the request comes from. `policy`: always `otherwise`. `limit`: a share of the container's limit (see
    `percent`). `request`: a share of the container's own request, kept between `min` and `max`; `otherwise` if it has
    none."""


@policy_type
class ContainerRequests:
    """Rules for some of the containers. The first entry that selects a container is used for it."""

    names: tuple[Pattern, ...] = ()
    """The containers' names, or patterns for them; empty means all containers."""
    roles: tuple[Role, ...] = ()
    """The containers' roles: `main`, `init`, `sidecar` (an init container that keeps running); empty means all
    roles."""
    images: tuple[Pattern, ...] = ()
    """Patterns for the containers' images, as they are written or by their full name: `docker.io/*` also matches
    `nginx:1.27`; empty means all images."""
    cpu: ResourceRequestRule | None = None
    memory: ResourceRequestRule | None = None
    ephemeral_storage: Annotated[PlainRequest | None, Field(alias="ephemeral-storage")] = None
    extended: dict[ExtendedResource, Pieces] | None = None
    """Extended resource → the number that a container gets as request and limit if it has none."""


@policy_type
class RequestsAction:
    """The requests that containers get when their pods are admitted."""

    cpu: ResourceRequestRule | None = None
    memory: ResourceRequestRule | None = None
    ephemeral_storage: Annotated[PlainRequest | None, Field(alias="ephemeral-storage")] = None
    extended: dict[ExtendedResource, Pieces] | None = None
    """Extended resource, such as `example.com/license` → the number that a container gets as request and limit if it
    has none."""
    containers: tuple[ContainerRequests, ...] = ()
    """Rules for some of the containers. The first entry that selects a container is used for it, in place of all rules
    above."""
    required: Required = False


def request_rules(settings: "RequestsAction | ContainerRequests") -> Iterator[tuple[str, RequestRule]]:
    """Yields (resource, rule) for each resource that has a rule."""
    for resource, rule in (
        ("cpu", settings.cpu),
        ("memory", settings.memory),
        ("ephemeral-storage", settings.ephemeral_storage),
    ):
        if rule is not None:
            yield resource, rule
