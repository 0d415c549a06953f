"""The report of `trimtab compactor status`, and its table."""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from rich.text import Text

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, Frame, Paragraph, ReportView, Section, number_column
from trimtab.cli.reports.drain_waits import list_drain_waits
from trimtab.cluster.api.core import Node
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import node_from_api
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.order_entry import ORDERS
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.start import closed_reason
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.drain.waiting import describe_stays, pool_mode, waiting_reason
from trimtab.compaction.plan_types import Observations
from trimtab.compaction.resize.records import ResizePhase, ResizeRecords
from trimtab.compaction.resize.types import DEFAULT_RESIZE_SETTINGS
from trimtab.compaction.room_forecast import DemandHistory, describe_forecast, forecast_rooms
from trimtab.inputs.compactor_state import CompactorState
from trimtab.inputs.reasons import NO_COMPACTOR

MAX_NAMES = 5
"""The largest number of nodes that one line names."""


class DrainReport(ReportPart, frozen=True, kw_only=True):
    """A node with the annotation of a drain."""

    node: str
    """The node."""
    pool: str
    """The pool of the drain."""
    drain: str
    """The identifier of the drain, which the history of the compactor has as well."""
    phase: str
    """The phase of the drain: `emptying`, `emptied`, or `unreadable`.

    It is a sentence instead if the pool's state does not contain the drain, or if the compactor of another namespace
    wrote the annotation. The annotation is not verified."""
    since: str
    """When the drain began, as RFC 3339."""
    pods_left: int
    """The number of pods that have not been evicted yet."""
    pods: int
    """The number of pods on the node that the drain moves."""
    waits_for: str = ""
    """The PodDisruptionBudgets that at present allow no eviction of the pods that are left, as text; empty if there are
    none, or if they could not be read."""


class PoolForecast(ReportPart, frozen=True, kw_only=True):
    """What the pods of a pool will request in addition before a removal pays, by the pool's own history."""

    millicores: int
    """The millicores that pods will request in addition."""
    mebibytes: int
    """The MiB that pods will request in addition."""
    basis: str
    """With which moments of the history the present one was compared."""
    judged: int
    """The number of earlier forecasts that were compared with what happened."""
    sufficient: int
    """How many of them were large enough."""
    text: str
    """The forecast as a sentence."""


class PoolStatus(ReportPart, frozen=True, kw_only=True):
    """The state of one pool."""

    name: str
    """The name of the pool."""
    mode: str
    """The mode in the pool's ConfigMap: act, rehearse or off; `gone` if the pool has a state but no ConfigMap."""
    closed: bool
    """Whether no drain starts in the pool because drains failed or the pool backs off. `resume --pool` opens the pool
    again."""
    strikes: int
    """The number of failed drains in a row, where those that one namespace caused count as one; after two, the pool is
    closed."""
    evictions_last_hour: int
    """The number of pods that the compactor evicted in the pool in the last hour."""
    evictions_per_hour: int | None
    """The largest number of evictions in an hour; null without a limit, or if the pool has no ConfigMap."""
    saved_nodes: int
    """The number of nodes that the autoscaler removed after the compactor drained them, counted since the pool's state
    was created."""
    next: list[str]
    """The nodes that the last plan would drain, in order, without those whose drain is in progress."""
    planned_at: str | None
    """When the last plan of the pool was made, as RFC 3339; null if there is no plan."""
    waits_for: str
    """The condition that must come true before the next drain starts; empty if there is none."""
    stays: dict[str, int]
    """Reason code → the number of the pool's nodes that the last plan keeps for this reason, the largest number
    first."""
    forecast: PoolForecast | None
    """The room that the pool keeps for its pods; null if it keeps none, or if its history is too short."""


class PoolResizes(ReportPart, frozen=True, kw_only=True):
    """The resizes of running pods in one pool."""

    pool: str
    """The name of the pool."""
    resizing: int
    """The number of pods whose kubelet has not finished the resize."""
    verifying: int
    """The number of resized pods that are still watched; the capacity that they released is not yet counted as free."""
    reverting: int
    """The number of pods that are being changed back: they get their former resources again.

    Pods that are replaced because their node has no room for the former resources are included."""
    last_hour: int
    """The number of pods that were resized in the last hour."""
    per_hour: int | None
    """The largest number of pods that may be resized in an hour; null without a limit, or if the pool has no
    ConfigMap."""
    verified: int
    """The number of resizes that proved to be harmless, counted since the pool's state was created."""
    reverted: int
    """The number of resizes that were undone because they did harm, counted since the pool's state was created."""
    replaced: int
    """The number of pods that were evicted because their node had no room for their former resources, counted since the
    pool's state was created."""
    freed_millicores: int
    """The millicores that resizes have freed, counted since the pool's state was created."""
    freed_bytes: int
    """The bytes of memory that resizes have freed, counted since the pool's state was created."""
    backs_off: list[str]
    """Workloads that are not resized for a time because their last resize did harm or failed, as
    namespace/Kind/name."""
    stays: dict[str, int]
    """Reason code → the number of pods that policies want to resize but that are not resized for this reason."""
    uncovered: list[str]
    """Some of the pods that policies want to resize and that run on nodes of no pool, as namespace/name."""
    uncovered_count: int
    """The number of all such pods, of which `uncovered` names some."""


class StatusReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab compactor status`. Published as deploy/schemas/compactor-status-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab compactor status"
    api_version: str = API_VERSION
    kind: str = "CompactorStatusReport"
    paused: str
    """The reason of the pause; empty if Trimtab is not paused."""
    leader: str
    """The replica that holds the compactor's Lease; empty if none does."""
    no_leader: ReasonReport | None
    """Why no replica leads, and since when; null if one leads."""
    pools: list[PoolStatus]
    """The pools."""
    drains: list[DrainReport]
    """The drains that have begun and not ended."""
    cordoned_by_others: list[str]
    """The nodes that are cordoned and have no drain annotation."""
    resizes: list[PoolResizes]
    """The resizes of each pool in which pods are, were or should be resized while they run."""
    mistakes: list[str]
    """The mistakes in the pools' ConfigMaps."""


def build_status_report(state: CompactorState) -> StatusReport:
    """Returns the report of all drains and all pools, including pools that have a state but no ConfigMap."""
    pools = {pool.name: pool for pool in state.pools.pools}
    names = sorted({*pools, *(name for name in state.pool_states if name != ORDERS)})
    annotated = {node.name for node, _ in state.list_annotations()}
    nodes = map(node_from_api, state.snapshot.objects_of(Node))
    return StatusReport(
        paused=state.paused,
        leader=state.leader,
        no_leader=report_reason(state.no_leader) if state.no_leader is not None else None,
        pools=[_report_pool(name, pools.get(name), state) for name in names],
        drains=_report_drains(state),
        cordoned_by_others=sorted(node.name for node in nodes if node.is_cordoned and node.name not in annotated),
        resizes=[
            _report_resizes(name, pools.get(name), state.pool_states[name].resizes, state.read_at)
            for name in names
            if name in state.pool_states and state.pool_states[name].resizes != ResizeRecords()
        ],
        mistakes=[*map(str, state.pools.mistakes), *state.problems],
    )


def _report_resizes(name: str, pool: Pool | None, records: ResizeRecords, now: Seconds) -> PoolResizes:
    phases = Counter(record.phase for record in records.open.values())
    return PoolResizes(
        pool=name,
        resizing=phases[ResizePhase.RESIZING],
        verifying=phases[ResizePhase.VERIFYING],
        reverting=phases[ResizePhase.REVERTING] + phases[ResizePhase.REPLACING],
        last_hour=records.recent_count(now),
        per_hour=pool.resizes_per_hour if pool is not None else None,
        verified=records.verified,
        reverted=records.reverted,
        replaced=records.replaced,
        freed_millicores=records.freed.get("cpu", 0),
        freed_bytes=records.freed.get("memory", 0),
        backs_off=sorted(
            owner for owner, failure in records.failures.items() if now < failure.retry_after(DEFAULT_RESIZE_SETTINGS)
        ),
        stays=dict(records.refusals),
        uncovered=list(records.uncovered),
        uncovered_count=records.uncovered_count,
    )


def choose_reopening_time(pool_state: PoolState | Unreadable, now: Seconds) -> Seconds:
    """Returns the time to write as the pool's reopening: when the pool last closed or backed off, or a namespace last
    made a drain fail, or `now` if none of this happened.

    These times were written by the compactor. They are used instead of `now` because
    this machine's clock may differ from the compactor's.
    """
    if not isinstance(pool_state, PoolState):
        return now
    # The latest of them: the reopening ends a closing and a back-off that began before it.
    ended = [pool_state.closed, pool_state.backoff.last if pool_state.backoff is not None else None]
    ended += [last for _, last in pool_state.failing.values()]
    return max((at for at in ended if at is not None), default=now)


def _report_pool(name: str, pool: Pool | None, state: CompactorState) -> PoolStatus:
    pool_state = state.pool_states.get(name, PoolState())
    terms = DrainTimeouts()
    reason = closed_reason(pool, pool_state, state.read_at, terms) if pool is not None else None
    return PoolStatus(
        name=name,
        mode=pool_mode(pool),
        closed=reason is not None,
        strikes=pool_state.strikes,
        evictions_last_hour=Observations(evictions=pool_state.evictions).recent_evictions(state.read_at),
        evictions_per_hour=pool.evictions_per_hour if pool is not None else None,
        saved_nodes=pool_state.saved,
        next=[node for node in pool_state.plan if node not in pool_state.drains],
        planned_at=format_timestamp(pool_state.plan_at) if pool_state.plan_at is not None else None,
        waits_for=waiting_reason(
            pool, pool_state, state.read_at, terms, paused=state.paused, is_led=bool(state.leader)
        ),
        stays=dict(pool_state.plan_stays),
        forecast=_report_forecast(pool, pool_state.demand, state.read_at) if pool is not None else None,
    )


def _report_forecast(pool: Pool, history: DemandHistory, now: Seconds) -> PoolForecast | None:
    room = forecast_rooms({pool.name: history}, [pool], now).get(pool.name)
    if room is None:
        return None
    return PoolForecast(
        millicores=room.millicores,
        mebibytes=room.mebibytes,
        basis=room.basis,
        judged=history.judged,
        sufficient=history.kept,
        text=describe_forecast(pool, room, history),
    )


def _report_drains(state: CompactorState) -> list[DrainReport]:
    reports, waits = [], list_drain_waits(state)
    for node, annotation in state.list_annotations():
        if isinstance(annotation, Unreadable):
            reports.append(
                DrainReport(node=node.name, pool="", drain="", phase="unreadable", since="", pods_left=0, pods=0)
            )
            continue
        reports.append(
            DrainReport(
                node=node.name,
                pool=annotation.pool,
                drain=annotation.drain,
                since=format_timestamp(annotation.since),
                phase=_drain_phase(node.name, annotation, state),
                pods_left=state.count_remaining_pods(annotation),
                pods=len(annotation.moves),
                waits_for=waits.get(node.name, ""),
            )
        )
    return sorted(reports, key=lambda drain: (drain.since, drain.node))


def _drain_phase(node: str, annotation: DrainAnnotation, state: CompactorState) -> str:
    if annotation.home not in ("", state.namespace):
        return f"the compactor of namespace {annotation.home} handles this drain"
    if annotation.order is not None:
        entry = state.pool_states.get(ORDERS, PoolState()).orders.get(annotation.order.order)
        if entry is None:
            return "no DrainOrder is known for this drain"
        phase = "waits" if annotation.order.waits else "emptying" if annotation.emptied is None else "emptied"
        return f"{phase}, for DrainOrder {entry.name}"
    if not state.pool_states.get(annotation.pool, PoolState()).knows_drain(node, annotation.drain):
        return "the pool's state does not contain this drain"
    return "emptying" if annotation.emptied is None else "emptied"


def _describe_leader(report: StatusReport) -> Iterator[Paragraph]:
    yield Text.assemble(("paused:", "bold red"), f" {report.paused}") if report.paused else "not paused"
    if report.no_leader is None:
        yield f"leader: {report.leader or 'none'}"
    else:
        yield Text.assemble(("no compactor leads: ", "bold red"), report.no_leader.text)
        yield Text(f"What to do: {NO_COMPACTOR.todo}")


def _explain_stays(report: StatusReport) -> Iterator[str]:
    if any(pool.stays for pool in report.pools):
        yield (
            "`trimtab explain CODE` says what changes a reason for which nodes stay; `trimtab why node NODE"
            " --cluster live` explains one node."
        )


_HOW_TO_UNCORDON = (
    "Trimtab's compactor cordoned these nodes, according to their annotations (`trimtab doctor` verifies "
    "the signatures).\nTo uncordon one node: `trimtab compactor release --yes NODE`. To uncordon all of "
    "them: `trimtab compactor pause`. For the details of a node: `trimtab why node NODE`."
)


def _describe_rest(report: StatusReport) -> Iterator[Paragraph]:
    if report.cordoned_by_others:
        names = join_first(report.cordoned_by_others, MAX_NAMES)
        yield f"nodes that other clients cordoned: {names}; `trimtab why node NODE` shows which client cordoned a node"
    yield from (pool.forecast.text for pool in report.pools if pool.forecast is not None)
    for resizes in report.resizes:
        yield from _describe_resizes(resizes)
    yield from (Text(mistake, style="yellow") for mistake in report.mistakes)


def _describe_resizes(resizes: PoolResizes) -> Iterator[Paragraph]:
    pace = f"{resizes.last_hour} of {resizes.per_hour}" if resizes.per_hour is not None else str(resizes.last_hour)
    freed = f"{resizes.freed_millicores / 1000:.1f} cores and {resizes.freed_bytes / 2**30:.1f} GiB are freed"
    yield (
        f"running pods of pool {resizes.pool}: {pace} resized in the last hour, {resizes.verifying} watched, "
        f"{resizes.resizing} in progress, {resizes.reverting} reverting; {resizes.verified} verified ({freed}), "
        f"{resizes.reverted} reverted, {resizes.replaced} replaced"
    )
    for code, count in resizes.stays.items():
        yield f"  {code}: {count} pod{'' if count == 1 else 's'}"
    for owner in resizes.backs_off:
        yield f"  {owner}: no resize for a while, because the last one failed"
    if resizes.uncovered_count:
        names = ", ".join(resizes.uncovered[:5])
        pods = format_count(resizes.uncovered_count, "pod is", "pods are")
        yield Text(f"  {pods} on nodes of no pool: {names}", style="yellow")


def _format_next_nodes(pool: PoolStatus) -> str:
    more = len(pool.next) - 3
    return ", ".join(pool.next[:3]) + (f" and {more} more" if more > 0 else "") or "nothing"


def _format_evictions(pool: PoolStatus) -> str:
    most = pool.evictions_per_hour
    return f"{pool.evictions_last_hour} of {most}" if most is not None else str(pool.evictions_last_hour)


_POOLS: Section[StatusReport, PoolStatus] = Section(
    key="pools",
    rows=lambda report: report.pools,
    columns=(
        Column("pool", lambda pool: pool.name),
        Column("mode", lambda pool: pool.mode),
        Column("evictions/h", _format_evictions, value=lambda pool: pool.evictions_last_hour, rank=3),
        number_column("saved nodes", lambda pool: pool.saved_nodes, "{}", align="left", rank=4),
        Column("next", _format_next_nodes, value=lambda pool: " ".join(pool.next), rank=1),
        Column("stay", lambda pool: describe_stays(pool.stays), rank=2, min_width=20),
        Column("waits for", lambda pool: pool.waits_for, min_width=20),
    ),
    name=lambda pool: f"pool/{pool.name}",
    after=_explain_stays,
    empty=lambda report: ["There is no pool yet: a pool is a ConfigMap with the label trimtab.dev/pool."],
    frame=Frame.NONE,
)
_DRAINS: Section[StatusReport, DrainReport] = Section(
    key="drains",
    rows=lambda report: report.drains,
    columns=(
        Column("node", lambda drain: drain.node),
        Column("pool", lambda drain: drain.pool, rank=2),
        Column("phase", lambda drain: drain.phase),
        Column("since", lambda drain: drain.since, rank=3),
        Column(
            "pods left", lambda drain: f"{drain.pods_left} of {drain.pods}", value=lambda drain: drain.pods_left, rank=1
        ),
        Column("waits for", lambda drain: drain.waits_for, min_width=20),
    ),
    name=lambda drain: f"node/{drain.node}",
    after=lambda report: [_HOW_TO_UNCORDON],
    empty=lambda report: ["no node is being drained"],
    frame=Frame.NONE,
)
VIEW: ReportView[StatusReport] = ReportView(
    title="trimtab compactor", before=_describe_leader, sections=(_POOLS, _DRAINS), after=_describe_rest
)
