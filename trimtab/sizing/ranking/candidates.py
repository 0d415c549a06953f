"""Puts the machine types of a region together as candidates, with facts, prices and reservations, and says which types
are left out before the ranking.

A type is left out here if one of these holds: its name is not among those asked for, its architecture is not allowed,
it is for a special use that is not included, or its price in the region is not known.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import sqrt

from trimtab.cluster.reason import Reason
from trimtab.machines.machine_types import MachineType, Use
from trimtab.reservations.formula import NodeSize, calculate_reservations
from trimtab.reservations.profile import Profile
from trimtab.sizing.ranking.capacity import Candidate, NodeReservation
from trimtab.sizing.ranking.reasons import NO_LIST_PRICE, NOT_ALLOWED, OTHER_ARCHITECTURE, SPECIAL_USE

_MIB = 1 << 20
_GIB = 1 << 30
_GIB_MIB = 1024
MEMORY_WEIGHTS = {"aws": 8.8, "azure": 8.5, "gcp": 7.46}
"""Cloud → how many GiB cost as much as a core, from regressions over families of one generation (list prices, July
2026)."""
OTHER_MEMORY_WEIGHT = 8.5
DEFAULT_PROFILES = {"aws": "eks", "azure": "aks-1.29", "gcp": "gke"}
"""Cloud → the reservation profile of its managed nodes."""
OTHER_PROFILE = "gke"
DEFAULT_MAX_PODS = 110


MIN_SPEED, MAX_SPEED = 0.8, 1.5
"""The limits of `Performance.CLAMPED`: a benchmark that runs in caches overstates the differences."""


class Performance(StrEnum):
    """How the measured speed of a core counts in a ranking."""

    OFF = "off"
    """The measured speed does not count: every core counts as one, as for kube-scheduler."""
    CLAMPED = "clamped"
    """The measured speed counts, but is limited to between 0.8 and 1.5."""
    ROOT = "root"
    """The square root of the measured speed counts."""
    ESTIMATED = "estimated"
    """As `clamped`, and an estimated speed counts like a measured one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSpeeds:
    """How much work a core of each machine type does, relative to a core of the baseline."""

    factors: Mapping[str, float] = field(default_factory=dict)
    """Type → the speed of a core."""
    otherwise: float = 1.0
    """The speed of types that are not in the mapping: that of the slowest present node, so that a type of unknown speed
    has no advantage."""
    unknown: tuple[str, ...] = ()
    """Types of present nodes whose speed is not known, so that every core counts as one."""
    is_limited: bool = False
    """Whether the speed of a present type is an estimate, so that no estimate makes a type better than these."""

    def factor_of(self, name: str) -> float:
        """Returns the speed of a core of this type."""
        return self.factors.get(name, self.otherwise)


def read_core_speeds(
    table: Mapping[str, MachineType], present: Collection[str], performance: Performance
) -> CoreSpeeds:
    """Returns the speeds by this rule.

    They count only if that of every present type is known (`present`: the types of the nodes on which the workload
    runs; the empty name is a type that is not known): otherwise the workload would seem to shrink on each type whose
    speed is known. An estimated speed counts as at most that of the slowest present type: it can make a type worse than
    the present ones, and none better."""
    if performance is Performance.OFF or not present:
        return CoreSpeeds()
    factors = {
        name: sqrt(speed) if performance is Performance.ROOT else min(MAX_SPEED, max(MIN_SPEED, speed))
        for name, kind in table.items()
        if (speed := kind.performance) is not None
    }
    unknown = tuple(sorted(set(present) - factors.keys()))
    if unknown:
        return CoreSpeeds(unknown=unknown)
    slowest = min(factors[name] for name in present)
    if performance is not Performance.ESTIMATED:
        factors |= {name: min(factors[name], slowest) for name in factors if table[name].is_coremark_estimated}
    is_limited = performance is not Performance.ESTIMATED and any(table[name].is_coremark_estimated for name in present)
    return CoreSpeeds(factors=factors, otherwise=slowest, is_limited=is_limited)


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRules:
    """Decides which types are candidates, and how their cores and reservations are counted."""

    architectures: frozenset[str]
    names: re.Pattern[str] | None = None
    """Only types whose whole name matches are candidates; None: all."""
    included_uses: frozenset[Use] = frozenset({Use.GENERAL})
    max_pods: int = DEFAULT_MAX_PODS
    """The maxPods setting of the kubelets."""
    uses_interface_limits: bool = False
    """Whether the AWS VPC CNI, without prefix delegation, limits the number of pods of a type."""
    speeds: CoreSpeeds = field(default_factory=CoreSpeeds)
    measured: NodeReservation | None = None
    """The usage of kubelet and container runtime as it was measured, which replaces the formula. None: the formula is
    used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateList:
    """The candidates, and the types that were left out before anything was calculated for them."""

    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, Reason] = field(default_factory=dict)


def list_candidates(
    types: Iterable[MachineType], prices: Mapping[str, int], profiles: Mapping[str, Profile], rules: CandidateRules
) -> CandidateList:
    """Returns the candidates among these types.

    `prices`: type → micro-dollars an hour. `profiles`: cloud → reservation profile; the entry with the empty key is for
    all other clouds.
    """
    candidates, left_out = [], {}
    for kind in types:
        reason = _exclusion_reason(kind, prices, rules)
        if reason is not None:
            left_out[kind.name] = reason
        else:
            profile = profiles.get(kind.cloud, profiles[""])
            candidates.append(make_candidate(kind, prices[kind.name], profile, rules))
    return CandidateList(candidates=tuple(candidates), left_out=left_out)


def _exclusion_reason(kind: MachineType, prices: Mapping[str, int], rules: CandidateRules) -> Reason | None:
    if rules.names is not None and not rules.names.fullmatch(kind.name):
        return NOT_ALLOWED(f"{kind.name} does not match {rules.names.pattern}")
    if kind.arch not in rules.architectures:
        return OTHER_ARCHITECTURE(
            f"{kind.name} has the architecture {kind.arch}, but the pods run on "
            f"{', '.join(sorted(rules.architectures))}"
        )
    if kind.use not in rules.included_uses:
        return SPECIAL_USE(f"{kind.name} is a special type: {kind.use}")
    if kind.name not in prices:
        return NO_LIST_PRICE(f"the price of {kind.name} is not known")
    return None


def make_candidate(kind: MachineType, price: int, profile: Profile, rules: CandidateRules) -> Candidate:
    """Returns the type as a candidate, with its price in micro-dollars an hour, and its reservation from the profile or
    as measured."""
    max_pods = rules.max_pods
    if rules.uses_interface_limits and kind.max_pods is not None:
        max_pods = min(max_pods, kind.max_pods)
    size = NodeSize(
        millicores=round(kind.cores * 1000),
        memory_bytes=kind.memory_mib * _MIB,
        max_pods=max_pods,
        lost_bytes=round((kind.memory_mib - min(kind.kernel_mib, kind.memory_mib)) * _MIB),
        architecture=kind.arch,
    )
    reserved = calculate_reservations(profile, size)
    reservation = rules.measured or NodeReservation(
        cores=float(reserved.cpu.reserved / 1000),
        gib=float(reserved.memory.reserved / _GIB),
        eviction_gib=float(reserved.memory.eviction / _GIB),
    )
    return Candidate(
        name=kind.name,
        family=kind.family,
        architecture=kind.arch,
        cores=kind.cores,
        gib=kind.memory_mib / _GIB_MIB,
        visible_gib=float((reserved.memory.size - reserved.memory.lost) / _GIB),
        price=price,
        reservation=reservation,
        max_pods=max_pods,
        max_volumes=kind.max_volumes,
        performance=rules.speeds.factor_of(kind.name),
        memory_weight=MEMORY_WEIGHTS.get(kind.cloud, OTHER_MEMORY_WEIGHT),
    )
