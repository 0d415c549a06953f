"""How the report of `trimtab reserved measure` is shown: one table of all pools, then the recommendation for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from trimtab.cli.reporting.columns import Column, ReportView, Section
from trimtab.cli.reporting.notes import group_notes
from trimtab.cli.reports.reservation_table import format_bytes, format_cpu
from trimtab.cli.reserved.measure_report import PoolReservationReport, ReservedMeasureReport, ReservedReport, UseReport
from trimtab.cluster.format_count import format_count


class _ResourceRow(NamedTuple):
    """One resource of a pool; the resource is empty if the pool was not measured."""

    pool: PoolReservationReport
    resource: str
    use: UseReport | None
    reserved: float | None
    advised: float | None


def _list_rows(report: ReservedMeasureReport) -> list[_ResourceRow]:
    return [row for pool in report.pools for row in _list_resources(pool)]


def _list_drawn_rows(report: ReservedMeasureReport) -> list[_ResourceRow]:
    """Returns the rows of all pools; none if no pool was measured, because a table of dashes says nothing."""
    rows = _list_rows(report)
    return rows if any(row.resource for row in rows) else []


def _list_resources(pool: PoolReservationReport) -> Iterator[_ResourceRow]:
    if pool.cpu is None or pool.memory is None:
        yield _ResourceRow(pool, "", None, None, None)
        return
    now, recommended = pool.reserved_now, pool.recommended
    for resource, use in (("cpu", pool.cpu), ("memory", pool.memory)):
        reserved, advised = (_amount_of(resource, amounts) for amounts in (now, recommended))
        yield _ResourceRow(pool, resource, use, reserved, advised)


def _amount_of(resource: str, amounts: ReservedReport | None) -> float | None:
    if amounts is None:
        return None
    return amounts.millicores if resource == "cpu" else amounts.bytes


def _amount_column(title: str, rank: int, read: Callable[[_ResourceRow], float | None]) -> Column[_ResourceRow]:
    def cell(row: _ResourceRow) -> str:
        amount = read(row)
        write = format_cpu if row.resource == "cpu" else format_bytes
        return "–" if amount is None else write(amount)

    return Column(title, cell, value=read, align="right", rank=rank)


def _format_per_pod(row: _ResourceRow) -> str:
    if row.use is None or row.use.fit is None:
        return "–"
    # A pod adds less than a millicore of cpu: two decimals.
    per_pod = row.use.fit.per_pod
    return f"{per_pod:.2f}m" if row.resource == "cpu" else format_bytes(per_pod)


def _share_used(row: _ResourceRow) -> float | None:
    return row.pool.used_of_reserved.get(row.resource)


def _format_share(row: _ResourceRow) -> str:
    share = _share_used(row)
    return "–" if share is None else f"{share:.0%}"


def _count_nodes(row: _ResourceRow) -> str:
    return f"{row.pool.measured_nodes} of {row.pool.nodes}"


def _pool_name(pool: PoolReservationReport) -> str:
    return f"{pool.pool} ({pool.runtime})" if pool.runtime else pool.pool


def _describe_pools(report: ReservedMeasureReport) -> Iterator[str]:
    for pool in report.pools:
        if pool.missing is None:
            yield from _describe_decision(pool)
    yield from group_notes(
        f"{_pool_name(pool)}: {missing.reason.text} (have {missing.have}, need {missing.need})"
        for pool in report.pools
        if (missing := pool.missing) is not None
    )


def _describe_decision(pool: PoolReservationReport) -> Iterator[str]:
    name = _pool_name(pool)
    days = f"{pool.days:g} days" if pool.days else "one moment"
    text = pool.reason.text if pool.reason is not None else ""
    yield f"{name}: {pool.change}: {text} ({days}, up to {format_count(pool.max_pods_seen, 'pod')} on a node)"
    if pool.unused_dollars_per_month is not None and pool.overdraft_dollars_per_month is not None:
        yield (
            f"  reserved but not used: ${pool.unused_dollars_per_month:,.2f} a month; used but not reserved: "
            f"${pool.overdraft_dollars_per_month:,.2f}"
        )
    for use, resource in ((pool.cpu, "cpu"), (pool.memory, "memory")):
        if use is not None and use.missing_fit is not None:
            yield f"  {resource}: {use.missing_fit.reason.text}; {use.missing_fit.need} are needed"
    for note in pool.notes:
        yield f"  {note}"


VIEW: ReportView[ReservedMeasureReport] = ReportView(
    title="trimtab reserved measure",
    sections=(
        Section(
            key="pools",
            title="Kubelet and container runtime of a node",
            rows=_list_rows,
            drawn=_list_drawn_rows,
            columns=(
                Column(
                    "Pool",
                    lambda row: "" if row.resource == "memory" else _pool_name(row.pool),
                    value=lambda row: _pool_name(row.pool),
                ),
                Column(
                    "Nodes",
                    lambda row: "" if row.resource == "memory" else _count_nodes(row),
                    value=_count_nodes,
                    rank=6,
                ),
                Column("Resource", lambda row: row.resource or "not measured"),
                _amount_column("Base", 5, lambda row: row.use.fit.base if row.use and row.use.fit else None),
                Column(
                    "Each pod",
                    _format_per_pod,
                    value=lambda row: row.use.fit.per_pod if row.use and row.use.fit else None,
                    align="right",
                    rank=4,
                ),
                _amount_column("p95", 2, lambda row: row.use.p95 if row.use else None),
                _amount_column("Maximum", 1, lambda row: row.use.maximum if row.use else None),
                _amount_column("Reserved", 0, lambda row: row.reserved),
                Column("Used", _format_share, value=_share_used, align="right", rank=3),
                _amount_column("Advised", 0, lambda row: row.advised),
            ),
            name=lambda row: f"pool/{row.pool.pool}",
            empty=lambda report: ["No node was measured."],
        ),
    ),
    after=_describe_pools,
    notes=lambda report: report.notes,
)
