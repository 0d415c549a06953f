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
    """`usage`: the number that `rule` selects from the container's use, or P5 where a VPA will take over; `otherwise`
    until the use is known. `policy`: always `otherwise`. `limit`: a share of the container's limit (see `percent`).
    `request`: a share of the container's own request, kept between `min` and `max`; `otherwise` if it has none."""
    otherwise: Quantity | None = None
    """The value where nothing better is known, and only where the container has no request (unless `from: policy` with
    `when: always`). Absent: leave the container as it is."""
    min: Quantity | None = None
    """Never less."""
    max: Quantity | None = None
    """Never more."""
    percent: Percent = 100
    """With `from: limit` the share of the limit, with `from: request` the share of the container's own request."""
    round: Quantity | None = None
    """The request is rounded up to a multiple of this. Default: 1m of cpu, 1Mi of anything else (a share of a limit is
    rounded down)."""
    when: Literal["missing", "always"] = "missing"
    """`missing`: only where the container has no request. `always`: replace the container's own request where usage is
    known. A mere `otherwise` never replaces what a team wrote, unless the rule has `from: policy`."""

    def __post_init__(self) -> None:
        if self.from_ == "policy" and self.otherwise is None:
            raise ValueError("`otherwise` with `from: policy`, because it is the value of the request")
        # `from: request` without any of these would set the request to itself.
        if self.from_ == "request" and (self.percent == 0 or not (self.min or self.max or self.percent < 100)):
            raise ValueError(
                "`min`, `max` or a `percent` from 1% to 99% with `from: request`, because the container's own "
                "request is changed"
            )
        if self.min and self.max and quantity.compare_quantities(self.min, self.max) > 0:
            raise ValueError(f"a min ({self.min}) not above the max ({self.max})")
        if self.otherwise and self.max and quantity.compare_quantities(self.otherwise, self.max) > 0:
            raise ValueError(f"an `otherwise` ({self.otherwise}) not above the max ({self.max})")


@policy_type
class ResourceRequestRule(RequestRule):
    """How the request of cpu or memory is computed."""

    min_percent: Percent | None = None
    """With `from: usage` and `when: always`: never less than this share of the container's own request."""
    max_percent: Percentage | None = None
    """With `from: usage` and `when: always`: never more than this share of the container's own request. 100% raises
    nothing."""
    rule: UsageRule = "adaptive"
    """With `from: usage`, where no VPA takes over: `adaptive` is the request with the lowest expected cost, computed
    for each container from its recent usage. `p95` (or p5, p50, p90, p99, `max`) is that percentile of the last two
    weeks. Headroom may follow: `p99 +15%`, or `+15%` alone."""
    pods: Literal["typical", "largest"] = "typical"
    """With `from: usage`, if one pod of the workload always uses far more than the others: `typical` covers it only if
    at least a tenth of the pods use as much, `largest` always."""
    under_vpa: Literal["p5", "p95"] = "p5"
    """With `from: usage`, where a VPA has no recommendation yet and will correct the request: `p5` is soon replaced, at
    the price of one eviction of each pod; `p95` gives what `rule` selects, which is enough from the beginning."""
    max_age: Age | None = None
    """With `from: usage`: how old the newest sample behind a recommendation may be, such as 14d. Absent: until the
    recommendation's own end, 14 days after its last sample. At the end nothing changes for workloads that existed
    before it; workloads created later get `otherwise`."""
    min_confidence: Confidence | None = None
    """With `from: usage`: the confidence, from 0 to 1, that a recommendation must have to be used at all. Absent: 0.5
    to lower a request, and none to raise one or to fill a missing one."""
    running: Literal["leave", "resize"] = "leave"
    """With `from: usage`: `resize` lets running pods follow their recommendation. The compactor resizes them in
    place, without a restart, on nodes of pools that act; `leave` waits for the next pod."""

    def __post_init__(self) -> None:
        RequestRule.__post_init__(self)  # `super()` without arguments does not know a class with slots
        if self.from_ != "usage" and (self.rule != "adaptive" or self.pods != "typical"):
            raise ValueError("`rule` and `pods` only with `from: usage`, because they select a number of the usage")
        if self.from_ != "usage" and (self.max_age is not None or self.min_confidence is not None):
            raise ValueError("`maxAge` and `minConfidence` only with `from: usage`, because no other source has an age")
        if self.from_ != "usage" and self.running != "leave":
            raise ValueError("`running: resize` only with `from: usage`, because running pods follow measured usage")
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
    """`policy`: always `otherwise`. `limit`: a share of the container's limit (see `percent`). `request`: a share of
    the container's own request, kept between `min` and `max`; `otherwise` if it has none."""


@policy_type
class ContainerRequests:
    """A rule for some containers. The first rule that matches a container counts."""

    names: tuple[Pattern, ...] = ()
    """Names of containers, or patterns of them; empty means all."""
    roles: tuple[Role, ...] = ()
    """`main`, `init`, `sidecar` (an init container that keeps running); empty means all."""
    images: tuple[Pattern, ...] = ()
    """Images as written or by their full name: `docker.io/*` also matches `nginx:1.27`; empty means all."""
    cpu: ResourceRequestRule | None = None
    memory: ResourceRequestRule | None = None
    ephemeral_storage: Annotated[PlainRequest | None, Field(alias="ephemeral-storage")] = None
    extended: dict[ExtendedResource, Pieces] | None = None
    """Extended resource → the number, as request and limit, if the container has none."""


@policy_type
class RequestsAction:
    """The requests that containers get when their pods are admitted."""

    cpu: ResourceRequestRule | None = None
    memory: ResourceRequestRule | None = None
    ephemeral_storage: Annotated[PlainRequest | None, Field(alias="ephemeral-storage")] = None
    extended: dict[ExtendedResource, Pieces] | None = None
    """Extended resource, such as `example.com/license` → the number, as request and limit, if the container has
    none."""
    containers: tuple[ContainerRequests, ...] = ()
    """Rules for single containers. The first rule that matches a container counts, instead of everything above."""
    required: Required = False


def resizes_running_pods(settings: "RequestsAction") -> bool:
    """Returns whether any rule says `running: resize`."""
    parts: tuple[RequestsAction | ContainerRequests, ...] = (settings, *settings.containers)
    return any(rule is not None and rule.running == "resize" for part in parts for rule in (part.cpu, part.memory))


def request_rules(settings: "RequestsAction | ContainerRequests") -> Iterator[tuple[str, RequestRule]]:
    """Yields (resource, rule) for each resource that has a rule."""
    for resource, rule in (
        ("cpu", settings.cpu), ("memory", settings.memory), ("ephemeral-storage", settings.ephemeral_storage),
    ):  # fmt: skip
        if rule is not None:
            yield resource, rule
