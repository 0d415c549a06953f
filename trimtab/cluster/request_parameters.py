"""Recommended requests as parameters for policies that the API server itself evaluates: the ConfigMap
`trimtab-requests` of a namespace.

    data:
      _namespace: until=2026-01-20T06:00:00Z limitranges=0 quotas=1 hpas=Deployment.api vpas=
      Deployment.api.main: until=2026-02-02T09:00:00Z cpu=250 cpu.p95=230 memory=536870912 memory.floor=600000000

A key is KIND.OWNER.CONTAINER, because a key of a ConfigMap may not contain a slash. Amounts are whole numbers: cpu in
millicores, memory in bytes. `until` says when the entry stops being valid. The policy's CEL expressions compare it as
text, so all times have one form (UTC, whole seconds).

The ConfigMap is in a tenant's namespace. An admission policy that `trimtab install` creates lets only the recommender
write it, and the policies' expressions still check every number in it. Policies that replace requests (`when: always`)
read it from Trimtab's own namespace instead, where it is called `trimtab-requests.NAMESPACE`.

`cpu.sure=adaptive,p95` names the amounts that are certain enough to lower a request; `cpu.young=1` says that less than
a day of usage is known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.kinds import GROUPS_BY_KIND, kind_name
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import Written
from trimtab.cluster.recommendation import (
    LOWERING_CONFIDENCE,
    VALIDITY_SECONDS,
    ContainerUsage,
    Percentiles,
    confidence_at,
)
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.cluster.whole_pods import is_whole_pod

PARAMETERS_NAME = "trimtab-requests"
"""The name of the ConfigMap with the parameters in each namespace."""
NAMESPACE_KEY = "_namespace"
"""The key of the entry for the whole namespace. It cannot be a workload's key, because no kind begins with an
underscore."""
PARAMETERS_LABEL = "trimtab.dev/parameters"
"""The label of these ConfigMaps; its value is `v1`."""
MAX_KEY_LENGTH = 253
MAX_BYTES = 512 * 1024
"""The size limit in bytes: half of what a ConfigMap may hold, because every API server keeps it in memory and reads it
for each new pod."""
RULES_VALIDITY_SECONDS = 6 * 3600
"""How long the namespace's entry is valid, in seconds. A LimitRange that is created later is not in the entry."""
PERCENTILES = ("p5", "p50", "p90", "p95", "p99", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRules:
    """What limited or resized the pods of one namespace when its parameters were computed: LimitRanges, ResourceQuotas
    and autoscalers."""

    limit_ranges: int = 0
    quotas: int = 0
    hpas: tuple[str, ...] = ()
    """KIND.NAME of each workload that a HorizontalPodAutoscaler scales by its usage relative to requests."""
    vpas: tuple[str, ...] = ()
    """KIND.NAME of each workload that is the target of a VerticalPodAutoscaler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParameters:
    """The content of one ConfigMap, and the containers for which it had no room."""

    data: Mapping[str, str]
    not_carried: tuple[str, ...] = ()
    """KIND.OWNER.CONTAINER of each container that was left out, because its key is too long or the ConfigMap is
    full."""


def build_parameters(
    containers: Mapping[tuple[OwnerKey, str], ContainerUsage], rules: NamespaceRules, now: Seconds
) -> RequestParameters:
    """Returns the parameters of one namespace.

    `containers` maps (owner, container) to a recommendation. When `MAX_BYTES` is reached, the containers whose keys
    come last are left out and listed in `not_carried`, as are those of two kinds of one name that would share a key.
    """
    data, left_out = {NAMESPACE_KEY: encode_rules(rules, now)}, []
    size = _size_of(NAMESPACE_KEY, data[NAMESPACE_KEY])
    keyed = [
        (f"{workload}.{container}", usage)
        for (owner, container), usage in containers.items()
        # A key has no plus sign, and no compiled policy requests for whole pods.
        if not is_whole_pod(container) and (workload := parameter_owner(owner)) is not None
    ]
    counts = Counter(key for key, _ in keyed)
    for key, usage in sorted(keyed, key=lambda pair: pair[0]):
        text = encode_entry(usage, now)
        if not text:
            continue
        grown = size + _size_of(key, text)
        if len(key) > MAX_KEY_LENGTH or grown > MAX_BYTES or counts[key] > 1:
            left_out.append(key)
            continue
        data[key], size = text, grown
    return RequestParameters(data=data, not_carried=tuple(left_out))


def encode_rules(rules: NamespaceRules, now: Seconds) -> str:
    """Returns the entry of the namespace, or an empty string if it is longer than 64 KiB. If the entry is missing, the
    policies know of no autoscaler in the namespace."""
    text = (
        f"until={_timestamp(now + RULES_VALIDITY_SECONDS)} limitranges={rules.limit_ranges} quotas={rules.quotas}"
        f" hpas={','.join(sorted(rules.hpas))} vpas={','.join(sorted(rules.vpas))}"
    )
    return text if len(text) <= 65536 else ""


def encode_entry(usage: ContainerUsage, now: Seconds) -> str:
    """Returns the entry of one container, or an empty string if its recommendation is no longer valid or has no
    amounts."""
    ends = usage.ends_at if usage.ends_at is not None else (usage.computed_at or now) + VALIDITY_SECONDS
    parts = []
    for resource in ("cpu", "memory"):
        percentiles = usage.percentiles_of(resource)
        if percentiles is None:
            continue
        request = percentiles.p95 if percentiles.request is None else percentiles.request
        published: dict[str, Written | None] = {name: getattr(percentiles, name) for name in PERCENTILES}
        amounts: dict[str, Written | None] = {
            resource: request,
            f"{resource}.floor": percentiles.floor,
            **{f"{resource}.{name}": amount for name, amount in published.items()},
        }
        parts += [f"{n}={quantity.scheduler_value(resource, v)}" for n, v in amounts.items() if v is not None]
        if percentiles.young:
            parts.append(f"{resource}.young=1")
        else:
            named = {"adaptive": request, **published}
            sure = [
                name for name, amount in named.items() if amount and _may_lower(usage, percentiles, resource, amount)
            ]
            parts.append(f"{resource}.sure={','.join(sure)}")
    return " ".join([f"until={_timestamp(ends)}", *parts]) if parts and ends > now else ""


def _may_lower(usage: ContainerUsage, percentiles: Percentiles, resource: str, amount: Written) -> bool:
    """Returns whether a request of this amount is certain enough to replace a larger one."""
    number = quantity.scheduler_value(resource, amount)
    confidence = confidence_at(resource, percentiles, number, usage.confidence_of(resource))
    return confidence is None or confidence >= LOWERING_CONFIDENCE


def name_own_parameters(namespace: str) -> str:
    """Returns the name of the ConfigMap with the parameters of a namespace in Trimtab's own namespace."""
    return f"{PARAMETERS_NAME}.{namespace}"


def is_same_except_times(before: Mapping[str, str], after: Mapping[str, str], *, namespace_expires_before: str) -> bool:
    """Returns whether `before` and `after` differ only in times, and the namespace's entry is valid at least until
    `namespace_expires_before` (a timestamp as text)."""
    if before.keys() != after.keys() or before.get(NAMESPACE_KEY, "")[6:26] < namespace_expires_before:
        return False
    return all(before[key][26:] == text[26:] for key, text in after.items())


def parameter_owner(owner: OwnerKey) -> str | None:
    """Returns KIND.OWNER of an owner, or None for an owner that has no parameters.

    A key has no group, so that policies which were compiled earlier read it. A kind with the name of a known kind, but
    of another group, would have the key of the known kind, so it has no parameters.
    """
    name = kind_name(owner.kind)
    return None if name != owner.kind and name in GROUPS_BY_KIND else f"{name}.{owner.name}"


def list_owner_keys(owners: Iterable[OwnerKey]) -> tuple[str, ...]:
    """Returns KIND.NAME of each owner that has parameters, sorted."""
    return tuple(sorted({text for text in map(parameter_owner, owners) if text is not None}))


def _size_of(key: str, text: str) -> int:
    return len(key) + len(text) + 8


def _timestamp(seconds: Seconds) -> str:
    return format_timestamp(seconds)
