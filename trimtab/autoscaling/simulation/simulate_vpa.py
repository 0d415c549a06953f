"""What a VPA with given flags would have done to a workload: its requests over time, and what they would have cost.

Every sample of every pod goes into one history, as the recommender merges all pods of a VPA. After each moment the
recommender estimates and the updater acts: it evicts pods (or resizes them) within its tolerance. A pod that appears in
the series gets the target of that moment, as the VPA's webhook would write it. Usage does not react to requests: a
starved pod would have been slower, and its usage after that another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.autoscaling.simulation.vpa_updater import (
    ContainerEstimate,
    compute_update_priority,
    count_evictable_pods,
    is_update_due,
)
from trimtab.histogram.vpa import AggregateContainerState, Histogram
from trimtab.histogram.vpa_estimators import (
    DEFAULT_FLAGS,
    HistoryLength,
    RecommenderFlags,
    VpaEstimate,
    estimate_request,
)

RESOURCES = ("cpu", "memory")
MAX_STEP_SECONDS = 900
"""A sample covers the time to the next one of its pod, at most this long: in a longer gap the pod did not run."""


@dataclass(frozen=True, slots=True)
class PodSeries:
    """The samples of one container of one pod: cores or bytes at ascending seconds."""

    pod: str
    resource: str
    times: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class RequestChange:
    """New requests of a pod: the second, the pod, millicores and bytes, and who wrote them."""

    second: int
    pod: str
    requests: Mapping[str, int]
    cause: str
    """`created`, `evicted` or `resized`."""


@dataclass(slots=True)
class ResourceOutcome:
    """What the requests of one resource came to, over all pods. Amounts are core-hours or byte-hours."""

    observed_seconds: float = 0.0
    starved_seconds: float = 0.0
    """Pod time with usage above the request."""
    longest_starved_seconds: float = 0.0
    used: float = 0.0
    requested: float = 0.0
    wasted: float = 0.0
    """Requested and not used."""
    missing: float = 0.0
    """Used above the request."""

    @property
    def starved_share(self) -> float:
        return self.starved_seconds / self.observed_seconds if self.observed_seconds else 0.0

    @property
    def waste_share(self) -> float:
        """Waste as a share of what was used."""
        return self.wasted / self.used if self.used else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaOutcome:
    """The outcome of one simulation."""

    changes: tuple[RequestChange, ...]
    outcomes: Mapping[str, ResourceOutcome]
    """By resource."""
    evictions: int
    resizes: int
    blocked_rounds: int
    """Rounds in which the updater wanted to act and could not: fewer replicas than its minimum."""
    last: Mapping[str, VpaEstimate]
    """The recommendation at the end, by resource; empty without samples."""


@dataclass(slots=True)
class _Pod:
    requests: dict[str, int]
    started: int
    last_seen: int
    state: AggregateContainerState
    """The windows and peaks of this pod; the histograms in it are those of all pods."""
    starved_since: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Simulation:
    flags: RecommenderFlags
    containers: int
    initial: Mapping[str, int]
    in_place: bool
    state: AggregateContainerState
    pods: dict[str, _Pod] = field(default_factory=dict)
    changes: list[RequestChange] = field(default_factory=list)
    outcomes: dict[str, ResourceOutcome] = field(default_factory=dict)
    evictions: int = 0
    resizes: int = 0
    blocked: int = 0
    first_second: int | None = None
    covered_minutes: float = 0.0
    """Minutes of samples: a recommender takes one sample a minute of every pod."""

    def observe_moment(self, second: int, samples: Iterable[tuple[str, str, float, int]]) -> None:
        """Take (pod, resource, value, seconds covered) of one moment into account."""
        for pod, resource, value, covered in samples:
            running = self.pods.get(pod)
            if running is None or second - running.last_seen > MAX_STEP_SECONDS * 2:
                running = self._create_pod(pod, second)
            running.last_seen = second
            add_sample(running.state, resource, second, value)
            if resource == "cpu":
                self.first_second = second if self.first_second is None else self.first_second
                self.covered_minutes += covered / 60
            self._account(running, resource, value, second, covered)
        for pod in [name for name, running in self.pods.items() if second - running.last_seen > MAX_STEP_SECONDS * 2]:
            del self.pods[pod]

    def _create_pod(self, pod: str, second: int) -> _Pod:
        estimates = self.estimate(second)
        requests = {**self.initial, **{resource: estimate.target for resource, estimate in estimates.items()}}
        self.pods[pod] = _Pod(requests, second, second, share_histograms(self.state))
        self.changes.append(RequestChange(second, pod, dict(requests), "created"))
        return self.pods[pod]

    def estimate(self, second: int) -> dict[str, VpaEstimate]:
        """Returns the recommendation now; a resource without samples has none."""
        length = HistoryLength(second - self.first_second if self.first_second is not None else 0, self.covered_minutes)
        return _estimate_all(self.state, length, self.containers, self.flags)

    def update_pods(self, second: int) -> None:
        """Let the updater act once."""
        estimates = self.estimate(second)
        due = []
        for name, running in self.pods.items():
            priority = compute_update_priority([ContainerEstimate(running.requests, estimates)])
            if is_update_due(priority, second - running.started, self.flags):
                due.append((-priority.difference, name))
        if not due:
            return
        allowed = count_evictable_pods(len(self.pods), self.flags)
        self.blocked += allowed == 0
        for _, name in sorted(due)[:allowed]:
            self._update_pod(name, second, {resource: estimate.target for resource, estimate in estimates.items()})

    def _update_pod(self, name: str, second: int, targets: Mapping[str, int]) -> None:
        running = self.pods[name]
        running.requests.update(targets)
        if self.in_place:
            self.resizes += 1
        else:
            self.evictions += 1
            running.started = second
        cause = "resized" if self.in_place else "evicted"
        self.changes.append(RequestChange(second, name, dict(running.requests), cause))

    def _account(self, running: _Pod, resource: str, value: float, second: int, covered: int) -> None:
        request = running.requests.get(resource)
        if request is None:
            return
        amount = request / 1000 if resource == "cpu" else float(request)
        outcome = self.outcomes.setdefault(resource, ResourceOutcome())
        hours = covered / 3600
        outcome.observed_seconds += covered
        outcome.used += value * hours
        outcome.requested += amount * hours
        if value > amount:
            outcome.starved_seconds += covered
            outcome.missing += (value - amount) * hours
            since = running.starved_since.setdefault(resource, second)
            outcome.longest_starved_seconds = max(outcome.longest_starved_seconds, second - since + covered)
        else:
            outcome.wasted += (amount - value) * hours
            running.starved_since.pop(resource, None)


def simulate_vpa(
    series: Iterable[PodSeries], flags: RecommenderFlags = DEFAULT_FLAGS, *, initial: Mapping[str, int] | None = None,
    containers: int = 1, in_place: bool = False, updates: bool = True,
) -> VpaOutcome:  # fmt: skip
    """Simulate the VPA on all series of one container of a workload.

    `initial`: the requests that its pods have without a recommendation, in millicores and bytes. `containers`: of the
    pod, which share its minimum. `in_place`: the updater resizes instead of evicting. `updates` is off for a VPA with
    updateMode Initial: only pods that appear get the target.
    """
    simulation = _Simulation(flags, containers, initial or {}, in_place, flags.create_state())
    moments: dict[int, list[tuple[str, str, float, int]]] = {}
    for one in series:
        for n, (second, value) in enumerate(zip(one.times, one.values, strict=True)):
            following = one.times[n + 1] if n + 1 < len(one.times) else None
            covered = 60 if following is None else min(MAX_STEP_SECONDS, following - second)
            moments.setdefault(second, []).append((one.pod, one.resource, value, covered))
    for second in sorted(moments):
        # First cpu, then memory, pods in order: the same samples always give the same history.
        simulation.observe_moment(second, sorted(moments[second], key=lambda sample: (sample[0], sample[1])))
        if updates:
            simulation.update_pods(second)
    last = simulation.estimate(max(moments)) if moments else {}
    return VpaOutcome(
        changes=tuple(simulation.changes), outcomes=simulation.outcomes, evictions=simulation.evictions,
        resizes=simulation.resizes, blocked_rounds=simulation.blocked, last=last,
    )  # fmt: skip


def recommend_from_series(
    series: Iterable[PodSeries], flags: RecommenderFlags = DEFAULT_FLAGS, containers: int = 1
) -> dict[str, VpaEstimate]:
    """Returns the recommendation after all samples, without a simulation of the updater, or an empty mapping without
    samples."""
    shared, states = flags.create_state(), dict[str, AggregateContainerState]()
    seconds: list[int] = []
    samples = 0
    for one in series:
        state = states.setdefault(one.pod, share_histograms(shared))
        for second, value in zip(one.times, one.values, strict=True):
            add_sample(state, one.resource, second, value)
        seconds += [one.times[0], one.times[-1]] if one.resource == "cpu" and len(one.times) else []
        samples += len(one.times) if one.resource == "cpu" else 0
    length = HistoryLength(max(seconds) - min(seconds) if seconds else 0, samples)
    return _estimate_all(shared, length, containers, flags)


def share_histograms(state: AggregateContainerState) -> AggregateContainerState:
    """Returns the state of one more pod that adds to the same histograms, as the pods of one VPA do."""
    return AggregateContainerState(cpu=state.cpu, memory=state.memory, interval=state.interval)


def add_sample(state: AggregateContainerState, resource: str, second: int, value: float) -> None:
    """Add one sample of cores or bytes. The recommender keeps whole millicores and bytes, cut (ResourceAmount)."""
    if resource == "cpu":
        state.add_cpu_sample(second, int(value * 1000) / 1000)
    else:
        state.add_memory_sample(second, float(int(value)))


def _estimate_all(
    state: AggregateContainerState, length: HistoryLength, containers: int, flags: RecommenderFlags
) -> dict[str, VpaEstimate]:
    """Returns the recommendation by resource; a resource without samples has none."""
    return {
        resource: estimate_request(resource, histogram, length, containers, flags)
        for resource, histogram in (("cpu", state.cpu), ("memory", state.memory))
        if isinstance(histogram, Histogram) and not histogram.is_empty
    }
