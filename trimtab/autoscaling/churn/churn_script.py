"""What happens in a cluster that never rests: a list of events in time that follows from a seed alone.

Neither the simulation nor a live run decides anything of it, so each variant of a comparison meets the same events. An
event that concerns a node does not name it, because the variants have different nodes: `share` says which of the
present nodes, in the order of their names, it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import pi, sin

from trimtab.autoscaling.churn.dice import Dice
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape

HOUR = 3600


class ChurnKind(StrEnum):
    """The kinds of events."""

    SCALE = "scale"
    """A workload gets `amount` replicas, by its HPA or by a user."""
    ROLLOUT = "rollout"
    """The pods of a workload are replaced, because its template has changed."""
    JOB = "job"
    """A Job begins; its pod requests what the workload `workload` requests."""
    JOB_ENDS = "job-ends"
    """The Job is deleted with its pod."""
    SPOT_LOSS = "spot-loss"
    """A node gets a taint, and is deleted with its pods after `SPOT_NOTICE_SECONDS`."""
    NODE_DIES = "node-dies"
    """A node and its pods are deleted at once."""
    BUDGET = "budget"
    """The budget of a workload allows `amount` unavailable pods; -1: the budget is deleted."""
    CORDON = "cordon"
    """A user cordons a node for `amount` seconds."""


SPOT_NOTICE_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnEvent:
    """One event; which fields it uses, its kind says."""

    at: int
    """Seconds since the beginning of the churn, in the time of the cluster."""
    kind: ChurnKind
    workload: str = ""
    """The workload; for a Job, its name."""
    amount: int = 0
    share: float = 0.0
    shape: ChurnPodShape | None = None
    """What the pod of a Job requests; None for other events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnWorkload:
    """A Deployment as it is at the beginning."""

    name: str
    shape: ChurnPodShape
    replicas: int
    max_unavailable: int | None
    """What its budget allows; None: it has no budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnMachine:
    """A node group: equal machines, of which the autoscaler may add more."""

    group: str
    instance_type: str
    millicores: int
    """What pods may request of a machine, here and below."""
    mebibytes: int
    price: int
    """Micro-dollars an hour."""
    pods: int = 110


MACHINES = (
    ChurnMachine(group="small", instance_type="m6i.2xlarge", millicores=7910, mebibytes=29_500, price=384_000),
    ChurnMachine(group="large", instance_type="m6i.4xlarge", millicores=15_890, mebibytes=60_600, price=768_000),
)
"""Two groups. Allocatable amounts and prices are those of on-demand machines in us-east-1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnOptions:
    """How much happens; the defaults are ten hours in which one thing changes every ten seconds."""

    seed: int = 1
    hours: float = 10.0
    wave_hours: float = 5.0
    """The length of a day: a compressed one, unless it is 24."""
    step_seconds: int = 10
    """The time between two events."""
    cores: float = 220.0
    """About how many cores the workloads request when their wave is in the middle."""
    fill: float = 0.6
    """The share of the nodes that is requested at the beginning."""
    warm_up_seconds: int = 1800
    """How long after the beginning the measurement begins."""
    rest_seconds: int = 1800
    """How long after the last event the cluster is still observed, so that drains end. It is not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    """The cluster at the beginning, and all that happens in it."""

    options: ChurnOptions
    workloads: tuple[ChurnWorkload, ...]
    events: tuple[ChurnEvent, ...]
    """In the order of their times."""
    machines: tuple[ChurnMachine, ...] = MACHINES
    nodes: tuple[str, ...] = field(default=())
    """The group of each node at the beginning."""

    @property
    def seconds(self) -> int:
        """The end of the measurement, in seconds since the beginning."""
        return int(self.options.hours * HOUR)


@dataclass(slots=True)
class _Service:
    """A workload with its wave."""

    workload: ChurnWorkload
    base: float
    amplitude: float
    phase: float
    period: float
    replicas: int

    def wanted_at(self, second: int) -> int:
        """Returns how many replicas the HPA wants."""
        wave = 1 + self.amplitude * sin(2 * pi * (second / self.period + self.phase))
        return max(1, round(self.base * wave))


_WEIGHTS = (
    (ChurnKind.SCALE, 0.44),
    (ChurnKind.JOB, 0.475),
    (ChurnKind.ROLLOUT, 0.05),
    (ChurnKind.BUDGET, 0.025),
    (ChurnKind.CORDON, 0.006),
    (ChurnKind.SPOT_LOSS, 0.003),
    (ChurnKind.NODE_DIES, 0.001),
)
"""How likely each kind is for the event of a step."""
JOB_SHARE = 0.18
"""About which part of all requested cores Jobs request."""


def draw_churn(options: ChurnOptions, shapes: Sequence[ChurnPodShape]) -> Churn:
    """Returns the churn of these options. Equal options and shapes give an equal churn."""
    services = _draw_services(options, shapes)
    dice, end = Dice.for_purpose(options.seed, "events"), int(options.hours * HOUR)
    jobs = _jobs_to_draw_from(options, shapes)
    events: list[ChurnEvent] = []
    for number, at in enumerate(range(options.step_seconds, end, options.step_seconds)):
        events += _draw_events(at, number, dice, services, jobs, options)
    events.sort(key=lambda event: event.at)
    workloads = tuple(service.workload for service in services)
    return Churn(
        options=options,
        workloads=workloads,
        events=tuple(event for event in events if event.at < end),
        nodes=_first_nodes(options, workloads),
    )


def _draw_services(options: ChurnOptions, shapes: Sequence[ChurnPodShape]) -> list[_Service]:
    dice = Dice.for_purpose(options.seed, "services")
    services: list[_Service] = []
    millicores, period = 0.0, options.wave_hours * HOUR
    while millicores < options.cores * 1000 * (1 - JOB_SHARE):
        shape, base = shapes[dice.draw_index(len(shapes))], dice.draw_between(2, 6)
        # A third of the workloads has no HPA; the waves of the others nearly agree, as those of one region's users do.
        amplitude = 0.0 if dice.draw_share() < 1 / 3 else 0.25 + 0.4 * dice.draw_share()
        budget = 1 if dice.draw_share() < 0.4 else None
        service = _Service(
            ChurnWorkload(name=f"w{len(services):03d}", shape=shape, replicas=base, max_unavailable=budget),
            base=base,
            amplitude=amplitude,
            phase=0.1 * dice.draw_share(),
            period=period,
            replicas=base,
        )
        services.append(service)
        millicores += base * shape.millicores
    return services


def _jobs_to_draw_from(options: ChurnOptions, shapes: Sequence[ChurnPodShape]) -> Sequence[ChurnPodShape]:
    """Returns the shapes with their lifetimes changed by one factor, so that Jobs request their share of the cores."""
    rate = dict(_WEIGHTS)[ChurnKind.JOB] / options.step_seconds
    mean = sum(shape.millicores * shape.seconds for shape in shapes) / len(shapes)
    factor = options.cores * 1000 * JOB_SHARE / (rate * mean)
    return [
        ChurnPodShape(millicores=one.millicores, mebibytes=one.mebibytes, seconds=max(30, round(one.seconds * factor)))
        for one in shapes
    ]


def _draw_kind(dice: Dice) -> ChurnKind:
    share = dice.draw_share()
    for kind, weight in _WEIGHTS:
        share -= weight
        if share < 0:
            return kind
    return ChurnKind.JOB


def _draw_events(
    at: int,
    number: int,
    dice: Dice,
    services: Sequence[_Service],
    jobs: Sequence[ChurnPodShape],
    options: ChurnOptions,
) -> list[ChurnEvent]:
    """Returns the event of one step, with the end of the Job if one begins."""
    kind = _draw_kind(dice)
    service, which = services[dice.draw_index(len(services))], dice.draw_share()
    name = service.workload.name
    match kind:
        case ChurnKind.SCALE:
            # Now and then a user scales; otherwise the HPA of a workload whose number has to change.
            wanted = service.wanted_at(at)
            if which < 0.1:
                wanted = max(1, round(service.base * (0.6 + 0.8 * dice.draw_share())))
            else:
                due = [one for one in services if one.wanted_at(at) != one.replicas]
                service = due[int(which * len(due))] if due else service
                name, wanted = service.workload.name, service.wanted_at(at)
            service.replicas = wanted
            return [ChurnEvent(at=at, kind=kind, workload=name, amount=wanted)]
        case ChurnKind.JOB:
            shape = jobs[dice.draw_index(len(jobs))]
            job = f"j{number:05d}"
            return [
                ChurnEvent(at=at, kind=kind, workload=job, shape=shape),
                ChurnEvent(at=at + shape.seconds, kind=ChurnKind.JOB_ENDS, workload=job),
            ]
        case ChurnKind.BUDGET:
            amount = 1 if which < 0.6 else 0 if which < 0.65 else 2 if which < 0.8 else -1
            return [ChurnEvent(at=at, kind=kind, workload=name, amount=amount)]
        case ChurnKind.CORDON:
            return [ChurnEvent(at=at, kind=kind, share=which, amount=dice.draw_between(120, 900))]
        case ChurnKind.ROLLOUT:
            return [ChurnEvent(at=at, kind=kind, workload=name)]
        case _:
            return [ChurnEvent(at=at, kind=kind, share=which)]


def _first_nodes(options: ChurnOptions, workloads: Sequence[ChurnWorkload]) -> tuple[str, ...]:
    """Returns the groups of the first nodes: two small ones for each large one, until the fill is reached."""
    millicores = sum(one.shape.millicores * one.replicas for one in workloads)
    mebibytes = sum(one.shape.mebibytes * one.replicas for one in workloads)
    nodes: list[str] = []
    small, large = MACHINES
    cores = memory = 0
    while cores * options.fill < millicores or memory * options.fill < mebibytes:
        machine = large if len(nodes) % 3 == 2 else small
        nodes.append(machine.group)
        cores += machine.millicores
        memory += machine.mebibytes
    return tuple(nodes)
