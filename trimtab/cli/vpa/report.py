"""The reports of `trimtab vpa simulate` and `trimtab vpa propose`, and their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, NamedTuple

from trimtab.autoscaling.container_amounts import format_amount, read_amount
from trimtab.autoscaling.simulation.propose_vpas import VpaProposal
from trimtab.autoscaling.simulation.simulate_vpa import VpaOutcome
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import format_quantity
from trimtab.cluster.timestamps import format_timestamp
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.vpa_estimators import MAX_AMOUNT, RecommenderFlags, compute_reaction_times

_GIB = 1 << 30


class RequestPoint(ReportPart, frozen=True, kw_only=True):
    """New requests of a pod at one time."""

    time: str
    """When the pod got the requests, as RFC 3339."""
    pod: str
    """The name of the pod."""
    cause: str
    """How the pod got the requests: `created`, `evicted` or `resized`."""
    requests: dict[str, str]
    """Resource → quantity."""


class ResourceResult(ReportPart, frozen=True, kw_only=True):
    """The outcome of the simulation for one resource."""

    resource: str
    """The resource: cpu or memory."""
    lower_bound: str
    """The lower bound of the last recommendation. The next two fields are from the same recommendation."""
    target: str
    """The target of the last recommendation."""
    upper_bound: str
    """The upper bound of the last recommendation."""
    starved_minutes: int
    """The minutes in which a pod used more than its request, summed over all pods."""
    starved_share: float
    """The share of the time of all pods in which they used more than their request, from 0 to 1."""
    longest_starved_minutes: int
    """The longest time without a break in which a pod used more than its request, in minutes."""
    waste_share: float
    """The amount that was requested but not used, divided by the amount that was used."""
    waste_per_hour: float
    """The cores or GiB that were requested but not used, on average over time."""


class FlagsResult(ReportPart, frozen=True, kw_only=True):
    """The outcome for one container with one set of flags."""

    flags: str
    """`default`, or the flags that differ from the defaults."""
    evictions: int
    """The number of evictions by the updater."""
    resizes: int
    """The number of resizes in place."""
    blocked_rounds: int
    """The number of rounds in which the updater did not act because the workload had too few pods
    (`--min-replicas`)."""
    resources: list[ResourceResult]
    """The outcome for cpu and for memory."""
    requests: list[RequestPoint]
    """How the requests of the pods change over time."""


class SimulatedContainer(ReportPart, frozen=True, kw_only=True):
    """One container of one workload, with the outcome of each set of flags."""

    namespace: str
    """The namespace of the workload."""
    workload: str
    """The workload, as Kind/name."""
    container: str
    """The name of the container."""
    results: list[FlagsResult]
    """The outcome with each set of flags, the default flags first."""


class ReactionRow(ReportPart, frozen=True, kw_only=True):
    """The minutes until cpu requests follow a sudden change of usage, computed by formula."""

    flags: str
    """`default`, or the flags that differ from the defaults."""
    rise_old_pod_minutes: float
    """The minutes until the request of a pod with a long history follows a rise of usage."""
    rise_young_pod_minutes: float
    """The minutes until the request of a pod with a short history follows a rise of usage."""
    drop_minutes: float
    """The minutes until a request follows a drop of usage."""


class VpaSimulateReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab vpa simulate`. Published as deploy/schemas/vpa-simulate-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab vpa simulate"
    api_version: str = API_VERSION
    kind: str = "VpaSimulateReport"
    reaction: list[ReactionRow]
    """How long requests take to follow a step in usage, for each set of flags."""
    containers: list[SimulatedContainer]
    """The containers, each with the outcome of all flags."""
    notes: list[str]
    """What the simulation assumes, one sentence each."""


class ProposedVpa(ReportPart, frozen=True, kw_only=True):
    """The proposal about the VPA of one workload."""

    namespace: str
    """The namespace of the workload."""
    workload: str
    """The workload, as Kind/name."""
    action: str
    """The action: add, change, remove, keep or none."""
    existing: str
    """The name of the workload's VPA; empty if it has none."""
    reason: ReasonReport
    """Why this is proposed."""


class VpaProposeReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab vpa propose`. Published as deploy/schemas/vpa-propose-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab vpa propose"
    api_version: str = API_VERSION
    kind: str = "VpaProposeReport"
    proposals: list[ProposedVpa]
    """The proposal for each workload."""
    notes: list[str]
    """What the proposals rest on, one sentence each."""


def build_reaction_row(name: str, flags: RecommenderFlags) -> ReactionRow:
    """Returns the reaction times with these flags."""
    times = compute_reaction_times(flags)
    return ReactionRow(
        flags=name,
        rise_old_pod_minutes=round(times.rise_old_pod / 60, 1),
        rise_young_pod_minutes=round(times.rise_young_pod / 60, 1),
        drop_minutes=round(times.drop / 60, 1),
    )


def build_simulated_container(key: ContainerKey, outcomes: Mapping[str, VpaOutcome]) -> SimulatedContainer:
    """Returns the report of one container.

    outcomes: name of a set of flags → the outcome of the simulation with these flags."""
    return SimulatedContainer(
        namespace=key.namespace,
        workload=f"{key.kind}/{key.workload}",
        container=key.name,
        results=[_build_flags_result(name, outcome) for name, outcome in outcomes.items()],
    )


def _build_flags_result(name: str, outcome: VpaOutcome) -> FlagsResult:
    return FlagsResult(
        flags=name,
        evictions=outcome.evictions,
        resizes=outcome.resizes,
        blocked_rounds=outcome.blocked_rounds,
        resources=[_build_resource_result(resource, outcome) for resource in outcome.last],
        requests=[
            RequestPoint(
                time=format_timestamp(change.second),
                pod=change.pod,
                cause=change.cause,
                requests={name: format_quantity(name, amount) for name, amount in change.requests.items()},
            )
            for change in outcome.changes
        ],
    )


def _build_resource_result(resource: str, outcome: VpaOutcome) -> ResourceResult:
    estimate, total = outcome.last[resource], outcome.outcomes.get(resource)
    lower, target, upper = (
        "unlimited" if amount >= MAX_AMOUNT else format_quantity(resource, amount)
        for amount in (estimate.lower_bound, estimate.target, estimate.upper_bound)
    )
    hours = total.observed_seconds / 3600 if total else 0.0
    unit = 1 if resource == "cpu" else _GIB
    return ResourceResult(
        resource=resource,
        lower_bound=lower,
        target=target,
        upper_bound=upper,
        starved_minutes=round(total.starved_seconds / 60) if total else 0,
        starved_share=round(total.starved_share, 4) if total else 0.0,
        longest_starved_minutes=round(total.longest_starved_seconds / 60) if total else 0,
        waste_share=round(total.waste_share, 4) if total else 0.0,
        waste_per_hour=round(total.wasted / hours / unit, 4) if total and hours else 0.0,
    )


def build_proposed_vpa(proposal: VpaProposal) -> ProposedVpa:
    """Returns the report of one proposal."""
    workload = proposal.workload
    return ProposedVpa(
        namespace=workload.namespace,
        workload=f"{workload.kind}/{workload.name}",
        action=proposal.action.value,
        existing=proposal.existing,
        reason=report_reason(proposal.reason),
    )


def _shorten(part: ResourceResult, amount: str) -> str:
    """Returns an amount of the report in a form that is easy to read: memory in whole mebibytes."""
    number = read_amount(part.resource, amount)
    return amount if number is None else format_amount(part.resource, number)


def _name_container(one: SimulatedContainer) -> str:
    """Returns namespace/workload/container, without the container if it is named after its workload."""
    name = one.workload.partition("/")[2]
    return f"{one.namespace}/{name}" + (f"/{one.container}" if one.container != name else "")


class _SimulationRow(NamedTuple):
    container: SimulatedContainer
    result: FlagsResult
    part: ResourceResult


def _simulation_rows(report: VpaSimulateReport) -> list[_SimulationRow]:
    return [
        _SimulationRow(container, result, part)
        for container in report.containers
        for result in container.results
        for part in result.resources
    ]


def _explain_blocked(report: VpaSimulateReport) -> Iterator[str]:
    if any(row.blocked_rounds for container in report.containers for row in container.results):
        yield (
            "Some pods were never updated although they should have been, because their workload has fewer pods "
            "than --min-replicas."
        )


def _minutes(title: str, value: Callable[[ReactionRow], float], rank: int) -> Column[ReactionRow]:
    return number_column(title, value, "{:g}", rank=rank, align="left")


def _amount(title: str, read: Callable[[ResourceResult], str]) -> Column[_SimulationRow]:
    return Column(title, lambda row: _shorten(row.part, read(row.part)), value=lambda row: read(row.part))


_REACTION: Section[VpaSimulateReport, ReactionRow] = Section(
    key="reaction",
    title="Minutes until cpu requests follow a step in usage",
    rows=lambda report: report.reaction,
    columns=(
        Column("Flags", lambda row: row.flags),
        _minutes("Rise, old pod", lambda row: row.rise_old_pod_minutes, 1),
        _minutes("Rise, young pod", lambda row: row.rise_young_pod_minutes, 2),
        _minutes("Drop", lambda row: row.drop_minutes, 3),
    ),
    empty=None,
)
_SIMULATED: Section[VpaSimulateReport, _SimulationRow] = Section(
    key="containers",
    title="What the VPA would have done",
    rows=_simulation_rows,
    columns=(
        Column("Container", lambda row: _name_container(row.container)),
        Column("Flags", lambda row: row.result.flags, rank=7),
        Column("Resource", lambda row: row.part.resource),
        _amount("Target", lambda part: part.target),
        Column(
            "Bounds",
            lambda row: f"{_shorten(row.part, row.part.lower_bound)}–{_shorten(row.part, row.part.upper_bound)}",
            value=lambda row: f"{row.part.lower_bound}–{row.part.upper_bound}",
            rank=5,
        ),
        Column(
            "Minutes short",
            lambda row: f"{row.part.starved_minutes} ({row.part.starved_share:.1%})",
            value=lambda row: row.part.starved_minutes,
            rank=1,
        ),
        number_column("Longest", lambda row: row.part.longest_starved_minutes, "{}", align="left", rank=6),
        number_column("Waste", lambda row: row.part.waste_share, "{:.0%}", align="left", rank=2),
        number_column("Evictions", lambda row: row.result.evictions, "{}", align="left", rank=3),
        number_column("Resizes", lambda row: row.result.resizes, "{}", align="left", rank=4),
    ),
    name=lambda row: row.container.workload,
    empty=None,
)
SIMULATE_VIEW: ReportView[VpaSimulateReport] = ReportView(
    title="trimtab vpa simulate",
    sections=(_REACTION, _SIMULATED),
    after=_explain_blocked,
    notes=lambda report: report.notes,
)
"""The reaction times, then for every container and resource a row per set of flags."""


def _count_actions(report: VpaProposeReport) -> Iterator[str]:
    counts = Counter(row.action for row in report.proposals)
    actions = ", ".join(f"{counts[action]} to {action}" for action in ("add", "change", "remove") if counts[action])
    yield f"{format_count(len(report.proposals), 'workload')}: {f'VPAs: {actions}' if actions else 'no VPA to change'}"


PROPOSE_VIEW: ReportView[VpaProposeReport] = ReportView(
    title="trimtab vpa propose",
    sections=(
        Section(
            key="proposals",
            before=_count_actions,
            rows=lambda report: sorted(report.proposals, key=lambda row: row.action in ("keep", "none")),
            columns=(
                Column("Workload", lambda row: f"{row.namespace}/{row.workload}"),
                Column("Action", lambda row: row.action),
                Column("VPA", lambda row: row.existing or "–", value=lambda row: row.existing, rank=2),
                Column("Why", lambda row: row.reason.text, rank=1, is_below=True, min_width=30),
            ),
            name=lambda row: row.workload,
            empty=None,
        ),
    ),
    notes=lambda report: report.notes,
)
