"""The request of every container of a fleet, as a job for an engine: split files, merge rows, decide.

The decision for a container depends only on its rows and its present requests. It is the same as the decision of
`trimtab recommend` for the same history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import msgspec

from trimtab.cluster.reason import NotYet
from trimtab.fleet.container_blocks import Block, DailyFileSplitter, bucket_of, decode_block
from trimtab.fleet.money_report import MICRO_DOLLARS, ClusterFailure, ContainerDecision, FleetSums, RequestSums
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.daily_rows import DailyRow, MergedContainerHistory, merge_rows
from trimtab.histogram.daily_window import DailyHistograms, DamagedHistogram
from trimtab.histogram.pod_averages import MIN_VALUES, PRESENT_SECONDS, PodUse
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.runtime.files import RuntimeFault
from trimtab.sizing.cost import HOURS_PER_MONTH, ResourcePrice
from trimtab.sizing.reasons import NO_USAGE
from trimtab.sizing.request import CurrentResources, Proposal, SizingSettings, Unchanged, propose_request
from trimtab.sizing.statistics import UsageStatistics, required_history, summarize_usage
from trimtab.usage.daily_store import DailyStore, StoredDay, import_arrow, rows_of_batch

ENDING_KINDS = ("CronJob", "Job")
"""The kinds of workloads whose pods finish, so that they cost only while they run."""
MEBIBYTE = 1 << 20
_USAGE, _CURRENT, _FAILED = b"U", b"C", b"F"


class CurrentRow(msgspec.Struct, array_like=True, frozen=True):
    """The present requests of one container, without its usage."""

    namespace: str
    kind: str
    workload: str
    container: str
    team: str
    replicas: int
    cpu: CurrentResources
    memory: CurrentResources
    core_price: float
    """The price of a core in micro-dollars an hour. The field `gib_price` has the price of a GiB."""
    gib_price: float

    @property
    def key(self) -> ContainerKey:
        return ContainerKey(self.namespace, self.kind, self.workload, self.container)


class DailyFile(msgspec.Struct, tag=True, frozen=True):
    """A source of usage: one file of the history."""

    cluster: str
    day: int
    path: str
    size: int


class ClusterState(msgspec.Struct, tag=True, frozen=True):
    """A source of present requests: the snapshot of one cluster, in the form that `read_current` reads."""

    cluster: str
    snapshot: bytes


Source = DailyFile | ClusterState


class _CurrentBlock(msgspec.Struct, array_like=True, frozen=True):
    cluster: str
    rows: list[CurrentRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSettings:
    """The settings with which all machines decide."""

    location: str
    """Where the history is: a folder or a URL."""
    bucket_count: int
    days: int
    now: int
    """The time, in seconds since 1970, for which ages are computed."""
    sizing: SizingSettings
    rows: int
    """The number of containers that the report names; those with the largest changes are named."""
    output: str = ""
    """The folder or URL to which every decision is written; empty: decisions are not written."""
    with_snapshots: frozenset[str] = frozenset()
    """The clusters whose present pods are known."""


@dataclass(frozen=True)
class DecideJob:
    """Decides the requests of all containers."""

    settings: DecisionSettings
    read_current: Callable[[bytes], Sequence[CurrentRow]]
    """Reads the snapshot of a cluster. Raises RuntimeFault."""

    @cached_property
    def _splitter(self) -> DailyFileSplitter:
        return DailyFileSplitter(self.settings.location, self.settings.bucket_count)

    def split_source(self, source: bytes) -> Iterator[Block]:
        decoded = msgspec.msgpack.decode(source, type=Source)
        try:
            if isinstance(decoded, DailyFile):
                stored = StoredDay(decoded.cluster, decoded.day, decoded.path, decoded.size)
                yield from ((bucket, _USAGE + block) for bucket, block in self._splitter.split_file(stored))
            else:
                yield from self._split_state(decoded)
        except RuntimeFault as error:
            yield 0, _FAILED + msgspec.msgpack.encode(ClusterFailure(decoded.cluster, str(error)))

    def _split_state(self, state: ClusterState) -> Iterator[Block]:
        buckets: dict[int, list[CurrentRow]] = {}
        for row in self.read_current(state.snapshot):
            buckets.setdefault(bucket_of(state.cluster, row.key, self.settings.bucket_count), []).append(row)
        for bucket, rows in sorted(buckets.items()):
            yield bucket, _CURRENT + msgspec.msgpack.encode(_CurrentBlock(state.cluster, rows))

    def merge_bucket(self, bucket: int, blocks: Iterable[bytes]) -> bytes:
        usage: dict[tuple[str, ContainerKey], list[DailyRow]] = {}
        current: dict[tuple[str, ContainerKey], CurrentRow] = {}
        sums = FleetSums(groups={}, largest=[], gone={}, failures=[])
        for block in blocks:
            kind, content = block[:1], block[1:]
            if kind == _USAGE:
                cluster, table = decode_block(content)
                for row in rows_of_batch(table):
                    usage.setdefault((cluster, row.container), []).append(row)
            elif kind == _CURRENT:
                part = msgspec.msgpack.decode(content, type=_CurrentBlock)
                current.update({(part.cluster, row.key): row for row in part.rows})
            else:
                sums.failures.append(msgspec.msgpack.decode(content, type=ClusterFailure))
        decisions = list(self._decide(usage, current, sums))
        if self.settings.output and decisions:
            DailyStore(self.settings.output).write_table(f"part-{bucket:05}.parquet", decision_table(decisions))
        largest = FleetSums(groups={}, largest=decisions, gone={}, failures=sums.failures)
        sums.merge(largest, self.settings.rows)
        return msgspec.msgpack.encode(sums, order="sorted")

    def _decide(
        self,
        usage: dict[tuple[str, ContainerKey], list[DailyRow]],
        current: dict[tuple[str, ContainerKey], CurrentRow],
        sums: FleetSums,
    ) -> Iterator[ContainerDecision]:
        """Yields every decision of a bucket, sorted by name, and adds each to `sums`."""
        for cluster, container in sorted({*usage, *current}):
            row = current.get((cluster, container))
            if row is None and cluster in self.settings.with_snapshots:
                sums.gone[cluster] = sums.gone.get(cluster, 0) + 1
                continue
            try:
                history = merge_rows(usage.get((cluster, container), ()), self.settings.days)
            except DamagedHistogram as error:
                sums.failures.append(ClusterFailure(cluster, f"the history of {container}: {error}"))
                continue
            decision = decide_container(cluster, container, history, row, self.settings)
            groups = [("cluster", cluster), ("namespace", f"{cluster}/{container.namespace}")]
            sums.add_sums([*groups, *([("team", decision.team)] if row is not None else [])], sum_decision(decision))
            yield decision


def decide_container(
    cluster: str,
    container: ContainerKey,
    history: MergedContainerHistory,
    row: CurrentRow | None,
    settings: DecisionSettings,
) -> ContainerDecision:
    """Returns the request of one container, decided from its history and its present requests."""
    statistics = {resource: _summarize(container, resource, history, settings) for resource in ("cpu", "memory")}
    proposals = {
        resource: propose_request(_current(row, resource), usage_statistics, settings.sizing)
        for resource, usage_statistics in statistics.items()
    }
    now = {resource: _current(row, resource).request for resource in proposals}
    proposed = {resource: one.request if isinstance(one, Proposal) else None for resource, one in proposals.items()}
    known_statistics = [one for one in statistics.values() if isinstance(one, UsageStatistics)]
    cost_now, cost_proposed = _costs(container, history, row, now, proposed)
    return ContainerDecision(
        cluster=cluster,
        namespace=container.namespace,
        kind=container.kind,
        workload=container.workload,
        container=container.name,
        team="" if row is None else row.team,
        replicas=None if row is None else row.replicas,
        cpu_now=now["cpu"],
        cpu_proposed=proposed["cpu"],
        memory_now=now["memory"],
        memory_proposed=proposed["memory"],
        cpu_reason=_reason_code(proposals["cpu"]),
        memory_reason=_reason_code(proposals["memory"]),
        cpu_p95=_p95(statistics["cpu"]),
        memory_p95=_p95(statistics["memory"]),
        days=max((one.observed_days for one in known_statistics), default=0.0),
        confidence=min((one.confidence for one in known_statistics), default=None),
        cost_now=cost_now,
        cost_proposed=cost_proposed,
    )


def _summarize(
    container: ContainerKey, resource: str, history: MergedContainerHistory, settings: DecisionSettings
) -> UsageStatistics | NotYet:
    window = history.windows[resource]
    if not window.last:
        return NotYet(
            reason=NO_USAGE(f"the source of usage has no {resource} usage of the container"),
            have="nothing",
            need=required_history(resource),
        )
    # The pods that still had values shortly before the newest value of all pods, sorted by name.
    pods = history.pods[resource]
    newest = max((last for last, _, _ in pods.values()), default=0)
    recent = {name: one for name, one in pods.items() if one[0] >= newest - PRESENT_SECONDS and one[1] >= MIN_VALUES}
    return summarize_usage(
        resource,
        window,
        settings.now,
        kind=container.kind,
        oom=history.oom,
        pods=[PodUse(name, mean) for name, (_, _, mean) in sorted(recent.items())] if len(pods) > 1 else [],
        percentiles=settings.sizing.extra_percentiles(resource),
    )


def _current(row: CurrentRow | None, resource: str) -> CurrentResources:
    if row is None:
        return CurrentResources(resource=resource, request=None, limit=None)
    return row.cpu if resource == "cpu" else row.memory


def _reason_code(proposal: Proposal | Unchanged | NotYet) -> str:
    return (proposal.reasons[0] if isinstance(proposal, Proposal) else proposal.reason).code.name


def _p95(statistics: UsageStatistics | NotYet) -> int | None:
    if isinstance(statistics, NotYet):
        return None
    return ceil(statistics.p95 * (1000 if statistics.resource == "cpu" else 1) - 1e-6)


def _costs(
    container: ContainerKey,
    history: MergedContainerHistory,
    row: CurrentRow | None,
    now: dict[str, int | None],
    proposed: dict[str, int | None],
) -> tuple[int | None, int | None]:
    """Returns (present cost, proposed cost) in micro-dollars a month. Both are None if it is not known how many pods
    there are now, or for how long they run."""
    if row is None:
        return None, None
    pods = float(row.replicas)
    if container.kind in ENDING_KINDS:
        hours = _hours_per_month(history.windows["cpu"], row.replicas)
        if hours is None:
            return None, None
        pods = hours / HOURS_PER_MONTH
    price = ResourcePrice(core=row.core_price, gib=row.gib_price)
    before = [now[resource] or 0 for resource in ("cpu", "memory")]
    after = [
        amount if (amount := proposed[resource]) is not None else before[place]
        for place, resource in enumerate(("cpu", "memory"))
    ]
    return (
        round(price.monthly_cost(before[0], before[1]) * pods * MICRO_DOLLARS),
        round(price.monthly_cost(after[0], after[1]) * pods * MICRO_DOLLARS),
    )


def _hours_per_month(histograms: DailyHistograms, replicas: int) -> float | None:
    """Returns for how many hours a month all pods of the workload run together, for a workload whose pods finish; None
    if that is not known. Every hour with usage counts as a full hour."""
    seconds = HOUR * histograms.hours.bit_count() * max(1, replicas)
    if not seconds:
        return None
    return seconds / (max(1, ceil((histograms.last - histograms.first) / DAY)) * DAY) * HOURS_PER_MONTH


def sum_decision(decision: ContainerDecision) -> RequestSums:
    """Returns the sums of one container."""
    is_changed = decision.cpu_proposed is not None or decision.memory_proposed is not None
    is_unknown = decision.cpu_p95 is None and decision.memory_p95 is None
    if decision.cost_now is None or decision.cost_proposed is None:
        return RequestSums(containers=1, changes=int(is_changed), unknown=int(is_unknown))
    pods = decision.replicas or 0
    cpu, memory = decision.cpu_now or 0, decision.memory_now or 0
    new_cpu = cpu if decision.cpu_proposed is None else decision.cpu_proposed
    new_memory = memory if decision.memory_proposed is None else decision.memory_proposed
    return RequestSums(
        containers=1,
        changes=int(is_changed),
        unknown=int(is_unknown),
        priced=1,
        cpu_now=cpu * pods,
        cpu_proposed=new_cpu * pods,
        memory_now=memory * pods // MEBIBYTE,
        memory_proposed=new_memory * pods // MEBIBYTE,
        cost_now=decision.cost_now,
        cost_proposed=decision.cost_proposed,
        too_small=int(new_cpu > cpu or new_memory > memory),
        waste=max(0, decision.saved),
    )


def decision_table(decisions: Sequence[ContainerDecision]) -> Any:
    """Returns the decisions as an Arrow table."""
    arrow = import_arrow()
    names = ContainerDecision.__struct_fields__
    texts = {"cluster", "namespace", "kind", "workload", "container", "team", "cpu_reason", "memory_reason"}
    schema = arrow.schema(
        [
            arrow.field(
                name,
                arrow.string()
                if name in texts
                else arrow.float64()
                if name in ("days", "confidence")
                else arrow.int64(),
            )
            for name in names
        ]
    )
    return arrow.Table.from_pydict(
        {name: [getattr(decision, name) for decision in decisions] for name in names}, schema=schema
    )
