"""Simulates what a VPA with given flags would have done to a workload: its requests over time, and what they would have
cost.

Every sample of every pod is added to one history, because the recommender merges all pods of a VPA. After each moment,
the recommender computes its estimates, and the updater evicts (or resizes) the pods whose requests differ from these by
more than its tolerance. A pod that appears in the series gets the target of that moment, as the VPA's webhook would set
it. The usage does not react to requests: in reality, a pod with too small a request would have been slower, and its
later usage would have been different.
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
"""A sample stands for the time until the next sample of its pod, but at most for this many seconds: in a longer gap the
pod did not run."""


@dataclass(frozen=True, slots=True)
class PodSeries:
    """The samples of one container of one pod: cores or bytes at ascending times in seconds."""

    pod: str
    resource: str
    times: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class RequestChange:
    """New requests of a pod: the time, the pod, millicores and bytes, and what set them."""

    second: int
    pod: str
    requests: Mapping[str, int]
    cause: str
    """Why the requests were set: the pod was `created`, `evicted` or `resized`."""


@dataclass(slots=True)
class ResourceOutcome:
    """The result for one resource over all pods. Amounts are core-hours or byte-hours."""

    observed_seconds: float = 0.0
    starved_seconds: float = 0.0
    """The total time of pods with usage above the request, in seconds."""
    longest_starved_seconds: float = 0.0
    used: float = 0.0
    requested: float = 0.0
    wasted: float = 0.0
    """The amount that was requested and not used."""
    missing: float = 0.0
    """The amount that was used above the request."""

    @property
    def starved_share(self) -> float:
        return self.starved_seconds / self.observed_seconds if self.observed_seconds else 0.0

    @property
    def waste_share(self) -> float:
        """The ratio of what was requested and not used to what was used."""
        return self.wasted / self.used if self.used else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaOutcome:
    """The result of one simulation."""

    changes: tuple[RequestChange, ...]
    outcomes: Mapping[str, ResourceOutcome]
    """Resource → its result."""
    evictions: int
    resizes: int
    blocked_rounds: int
    """The number of rounds in which the updater wanted to act but could not, because the workload had fewer replicas
    than the updater's minimum."""
    last: Mapping[str, VpaEstimate]
    """Resource → the recommendation at the end; empty if there were no samples."""


@dataclass(slots=True)
class _Pod:
    requests: dict[str, int]
    started: int
    last_seen: int
    state: AggregateContainerState
    """The VPA's state of this pod: its own time windows and peaks, and histograms that all pods share."""
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
    """The number of minutes that the samples cover; a recommender takes one sample a minute of every pod."""

    def observe_moment(self, second: int, samples: Iterable[tuple[str, str, float, int]]) -> None:
        """Adds the samples of one moment, as (pod, resource, value, seconds covered)."""
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
        """Returns resource → the present recommendation; a resource without samples is not in it."""
        length = HistoryLength(second - self.first_second if self.first_second is not None else 0, self.covered_minutes)
        return _estimate_all(self.state, length, self.containers, self.flags)

    def update_pods(self, second: int) -> None:
        """Lets the updater act once."""
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
    series: Iterable[PodSeries],
    flags: RecommenderFlags = DEFAULT_FLAGS,
    *,
    initial: Mapping[str, int] | None = None,
    containers: int = 1,
    in_place: bool = False,
    updates: bool = True,
) -> VpaOutcome:
    """Simulates the VPA on all series of one container of a workload, and returns the result.

    `initial`: the requests of its pods while there is no recommendation, in millicores and bytes. `containers`: the
    number of containers of the pod, which share its minimum. `in_place`: the updater resizes instead of evicting.
    `updates`: False for a VPA with updateMode Initial, where only pods that appear get the target.
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
        changes=tuple(simulation.changes),
        outcomes=simulation.outcomes,
        evictions=simulation.evictions,
        resizes=simulation.resizes,
        blocked_rounds=simulation.blocked,
        last=last,
    )


def recommend_from_series(
    series: Iterable[PodSeries], flags: RecommenderFlags = DEFAULT_FLAGS, containers: int = 1
) -> dict[str, VpaEstimate]:
    """Returns resource → the recommendation after all samples, without simulating the updater; empty if there are no
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
    """Returns the state of another pod of the same VPA. Its samples go into the same histograms, because the pods of
    one VPA share them."""
    return AggregateContainerState(cpu=state.cpu, memory=state.memory, interval=state.interval)


def add_sample(state: AggregateContainerState, resource: str, second: int, value: float) -> None:
    """Adds one sample in cores or bytes. Like the recommender, it cuts the value to whole millicores or bytes
    (ResourceAmount)."""
    if resource == "cpu":
        state.add_cpu_sample(second, int(value * 1000) / 1000)
    else:
        state.add_memory_sample(second, float(int(value)))


def _estimate_all(
    state: AggregateContainerState, length: HistoryLength, containers: int, flags: RecommenderFlags
) -> dict[str, VpaEstimate]:
    """Returns resource → the recommendation; a resource without samples is not in it."""
    return {
        resource: estimate_request(resource, histogram, length, containers, flags)
        for resource, histogram in (("cpu", state.cpu), ("memory", state.memory))
        if isinstance(histogram, Histogram) and not histogram.is_empty
    }
