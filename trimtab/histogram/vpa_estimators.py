"""What the VPA's recommender recommends for a histogram: target and bounds, computed according to its flags
(recommender/logic, VPA 1.6).

The steps are: a percentile; the safety margin; for bounds, the confidence in the history; the container's share of the
pod's minimum; rounding up; the cap. Amounts are millicores and bytes, cut to integers after every step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from trimtab.cluster.quantity import NotAQuantity, scheduler_value
from trimtab.cluster.timestamps import parse_duration
from trimtab.histogram.vpa import CPU_SCALE, DAY, MEMORY_SCALE, AggregateContainerState, Histogram

MAX_AMOUNT = 10**14
"""The largest amount that the recommender uses; it appears as an upper bound of "100T"."""
LOWER_CONFIDENCE, UPPER_CONFIDENCE = (0.001, -2.0), (1.0, 1.0)
"""(multiplier, exponent) of the lower and of the upper bound: (1 + multiplier / confidence) ** exponent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderFlags:
    """The flags of the VPA's recommender and updater that affect requests, with their defaults."""

    cpu_half_life_seconds: float = DAY
    memory_half_life_seconds: float = DAY
    target_cpu_percentile: float = 0.9
    lower_bound_cpu_percentile: float = 0.5
    upper_bound_cpu_percentile: float = 0.95
    target_memory_percentile: float = 0.9
    lower_bound_memory_percentile: float = 0.5
    upper_bound_memory_percentile: float = 0.95
    margin_fraction: float = 0.15
    min_pod_millicores: float = 25.0
    min_pod_mebibytes: float = 250.0
    memory_interval_seconds: float = DAY
    round_cpu_millicores: int = 1
    round_memory_bytes: int = 1
    max_allowed_millicores: int = MAX_AMOUNT
    max_allowed_bytes: int = MAX_AMOUNT
    min_replicas: int = 2
    """The updater evicts no pods of workloads with fewer pods than this."""
    eviction_tolerance: float = 0.5
    pod_update_threshold: float = 0.1
    eviction_lifetime_seconds: float = 12 * 3600.0
    """The age of a pod, in seconds, from which on the updater evicts it although the request is within the bounds."""

    def half_life(self, resource: str) -> float:
        """Returns the half-life of a sample of this resource, in seconds."""
        return self.cpu_half_life_seconds if resource == "cpu" else self.memory_half_life_seconds

    def percentile(self, resource: str, role: str) -> float:
        """Returns the percentile of a role: target, lower_bound or upper_bound."""
        return float(getattr(self, f"{role}_{resource}_percentile"))

    def create_state(self) -> AggregateContainerState:
        """Returns an empty history of one container."""
        return AggregateContainerState(
            cpu=Histogram(CPU_SCALE, self.cpu_half_life_seconds),
            memory=Histogram(MEMORY_SCALE, self.memory_half_life_seconds),
            interval=self.memory_interval_seconds,
        )


DEFAULT_FLAGS = RecommenderFlags()
_FLAG_FIELDS = {
    "cpu-histogram-decay-half-life": ("cpu_half_life_seconds", "duration"),
    "memory-histogram-decay-half-life": ("memory_half_life_seconds", "duration"),
    "target-cpu-percentile": ("target_cpu_percentile", "share"),
    "recommendation-lower-bound-cpu-percentile": ("lower_bound_cpu_percentile", "share"),
    "recommendation-upper-bound-cpu-percentile": ("upper_bound_cpu_percentile", "share"),
    "target-memory-percentile": ("target_memory_percentile", "share"),
    "recommendation-lower-bound-memory-percentile": ("lower_bound_memory_percentile", "share"),
    "recommendation-upper-bound-memory-percentile": ("upper_bound_memory_percentile", "share"),
    "recommendation-margin-fraction": ("margin_fraction", "number"),
    "pod-recommendation-min-cpu-millicores": ("min_pod_millicores", "number"),
    "pod-recommendation-min-memory-mb": ("min_pod_mebibytes", "number"),
    "memory-aggregation-interval": ("memory_interval_seconds", "duration"),
    "round-cpu-millicores": ("round_cpu_millicores", "count"),
    "round-memory-bytes": ("round_memory_bytes", "count"),
    "container-recommendation-max-allowed-cpu": ("max_allowed_millicores", "cpu"),
    "container-recommendation-max-allowed-memory": ("max_allowed_bytes", "memory"),
    "min-replicas": ("min_replicas", "count"),
    "eviction-tolerance": ("eviction_tolerance", "share"),
    "pod-update-threshold": ("pod_update_threshold", "number"),
    "in-recommendation-bounds-eviction-lifetime-threshold": ("eviction_lifetime_seconds", "duration"),
}
"""Flag of the recommender or the updater → the field of `RecommenderFlags`, and the form of its value."""
_EXPECTED = {
    "duration": "a duration above 0 such as 15m",
    "share": "a number from 0 to 1",
    "number": "a number of at least 0",
    "count": "a whole number of at least 1",
    "cpu": "a quantity such as 8 or 500m",
    "memory": "a quantity such as 16Gi",
}


def parse_recommender_flags(words: list[str]) -> tuple[RecommenderFlags, tuple[str, ...]]:
    """Returns the flags from words such as --target-cpu-percentile=0.95, with defaults for all other flags. Also
    returns a sentence for each word that is not understood."""
    values: dict[str, float] = {}
    mistakes = []
    for name, text in _split_flags(words):
        if name not in _FLAG_FIELDS:
            mistakes.append(f"--{name}, which is not one of {', '.join(sorted(_FLAG_FIELDS))}")
            continue
        field, form = _FLAG_FIELDS[name]
        value = _parse_value(text, form)
        if value is None:
            mistakes.append(f"--{name}={text}, which is not {_EXPECTED[form]}")
        else:
            values[field] = value
    flags = RecommenderFlags(**values)  # type: ignore[arg-type]
    return flags, tuple(mistakes)


def _split_flags(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yields (name, value) for flags written as --name=value or --name value."""
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.lstrip("-").partition("=")
        if not sign and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        yield name, value


def _parse_value(text: str, form: str) -> float | int | None:
    """Returns the value of a flag, or None if the text does not have this form."""
    if form == "duration":
        seconds = parse_duration(text)
        return float(seconds) if seconds else None
    if form in ("cpu", "memory"):
        try:
            amount = scheduler_value(form, text)
        except NotAQuantity:
            return None
        return amount if amount > 0 else None
    try:
        number = float(text)
    except ValueError:
        return None
    if form == "count":
        return int(number) if number >= 1 and number.is_integer() else None
    return number if number >= 0 and (form == "number" or number <= 1) and number < float(MAX_AMOUNT) else None


@dataclass(frozen=True, slots=True)
class HistoryLength:
    """The length of a container's history: seconds from the first to the last sample, and the number of cpu samples."""

    seconds: float
    samples: float

    def compute_confidence(self, interval_seconds: float = DAY) -> float:
        """Returns the VPA's confidence: the smaller of the days of history, and the number of samples divided by 1 440
        (a day with one sample a minute)."""
        return min(self.seconds / interval_seconds, self.samples / (interval_seconds / 60))


@dataclass(frozen=True, slots=True)
class VpaEstimate:
    """The target and the bounds of one resource of one container, in millicores or bytes."""

    lower_bound: int
    target: int
    upper_bound: int


def estimate_request(
    resource: str,
    histogram: Histogram,
    history: HistoryLength,
    containers: int = 1,
    flags: RecommenderFlags = DEFAULT_FLAGS,
) -> VpaEstimate:
    """Returns what the recommender recommends for a histogram; `containers` is the number of containers of the pod."""
    confidence = history.compute_confidence()
    lower, target, upper = (
        add_margin(
            usage_amount(resource, histogram.percentile(flags.percentile(resource, role))), flags.margin_fraction
        )
        for role in ("lower_bound", "target", "upper_bound")
    )
    return VpaEstimate(
        *(
            _finish_amount(resource, amount, containers, flags)
            for amount in (
                scale_by_confidence(lower, *LOWER_CONFIDENCE, confidence),
                target,
                scale_by_confidence(upper, *UPPER_CONFIDENCE, confidence),
            )
        )
    )


def estimate_target(
    resource: str, histogram: Histogram, containers: int = 1, flags: RecommenderFlags = DEFAULT_FLAGS
) -> int:
    """Returns the target alone, which does not depend on the confidence."""
    base = usage_amount(resource, histogram.percentile(flags.percentile(resource, "target")))
    return _finish_amount(resource, add_margin(base, flags.margin_fraction), containers, flags)


def _finish_amount(resource: str, amount: int, containers: int, flags: RecommenderFlags) -> int:
    most, step = (
        (flags.max_allowed_millicores, flags.round_cpu_millicores)
        if resource == "cpu"
        else (flags.max_allowed_bytes, flags.round_memory_bytes)
    )
    return min(most, round_amount_up(raise_to_minimum(resource, amount, containers, flags), step))


def usage_amount(resource: str, value: float) -> int:
    """Returns cores or bytes as whole millicores or bytes, cut to between 0 and the maximum."""
    return int(min(MAX_AMOUNT, max(0.0, value * 1000 if resource == "cpu" else value)))


def add_margin(amount: int, fraction: float = DEFAULT_FLAGS.margin_fraction) -> int:
    """Returns the amount plus the safety margin."""
    return amount + int(amount * fraction)


def scale_by_confidence(amount: int, multiplier: float, exponent: float, confidence: float) -> int:
    """Returns a bound, scaled by the confidence. With a confidence of zero, an upper bound is the maximum and a lower
    bound is 0."""
    if confidence == 0:
        return MAX_AMOUNT if exponent > 0 else 0
    return int(min(float(MAX_AMOUNT), amount * confidence_factor(multiplier, exponent, confidence)))


def confidence_factor(multiplier: float, exponent: float, confidence: float) -> float:
    """Returns (1 + multiplier / confidence) ** exponent."""
    return float((1 + multiplier / confidence) ** exponent)


def raise_to_minimum(resource: str, amount: int, containers: int = 1, flags: RecommenderFlags = DEFAULT_FLAGS) -> int:
    """Returns the amount, raised to the container's share of the pod's minimum if it is below."""
    minimum = flags.min_pod_millicores if resource == "cpu" else flags.min_pod_mebibytes * (1 << 20)
    return max(amount, int(minimum / containers))


def round_amount_up(amount: int, step: int) -> int:
    """Returns the amount rounded up to a multiple of the step (--round-cpu-millicores, --round-memory-bytes). Raises
    ValueError for a step below 1."""
    if step < 1:
        raise ValueError(f"a step of {step}")
    return -(-amount // step) * step


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionTimes:
    """The number of seconds from a sudden change of usage until requests follow it, if the history is long compared
    with the half-life."""

    rise_old_pod: float
    """The seconds until requests follow a rise of usage, for a pod that is old enough for the updater."""
    rise_young_pod: float
    """The seconds until requests follow a rise of usage, for a pod that has just started."""
    drop: float
    """The seconds until requests follow a drop of usage, for a pod that is old enough for the updater."""


def compute_reaction_times(flags: RecommenderFlags, resource: str = "cpu") -> ReactionTimes:
    """Returns the reaction times, computed by formula: percentile p follows a rise after h·log2(1/p) and a drop after
    h·log2(1/(1-p)), where h is the half-life.

    If the request is outside the bounds, the updater acts at once; inside them, it acts when the pod is old enough. For
    memory, whose samples are daily peaks, the times hold only if the half-life is long compared with a day.
    """
    half_life = flags.half_life(resource)
    lower, target, upper = (flags.percentile(resource, role) for role in ("lower_bound", "target", "upper_bound"))
    rise_lower, rise_target = (_rise_seconds(half_life, share) for share in (lower, target))
    drop_target, drop_upper = (_rise_seconds(half_life, 1 - share) for share in (target, upper))
    return ReactionTimes(
        rise_old_pod=min(rise_lower, rise_target),
        rise_young_pod=min(rise_lower, max(rise_target, flags.eviction_lifetime_seconds)),
        drop=min(drop_target, drop_upper),
    )


def _rise_seconds(half_life: float, share: float) -> float:
    return half_life * log2(1 / share) if share > 0 else float("inf")
