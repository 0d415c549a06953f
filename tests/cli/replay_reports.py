"""Reports of a replayed week, as values, for the tests of what is shown."""

from trimtab.cli.replay.report import CAPTURES, ReplayedFigures, ReplayedWorkload, ReplayGap, ReplayReport
from trimtab.cli.reports.replay_words import RECORDED

DETAILS = "Trimtab balanced"
DAYS = tuple(f"2026-11-{day}" for day in range(16, 23))
POOLS = ("batch", "web")


def figures(
    variant: str, saved: float | None, *, cores: float = 960.0, day: str = "", pool: str = "", has_prices: bool = True
) -> ReplayedFigures:
    """One row; a core costs five cents an hour."""
    is_recorded = variant == RECORDED
    hours = cores - (saved or 0.0)
    return ReplayedFigures(
        variant=variant,
        day=day,
        pool=pool,
        hours=24.0 if day else 168.0,
        node_hours=round(hours / 8, 1),
        saved_node_hours=None if saved is None else round(saved / 8, 1),
        core_hours=hours,
        saved_core_hours=saved,
        cost=round(hours * 0.05, 2) if has_prices else None,
        saved=round(saved * 0.05, 2) if has_prices and saved is not None else None,
        bought=12,
        evictions=None if is_recorded or pool else 30,
        long_waits=None if pool else 4,
        wait_seconds=None if pool else 410,
    )


def week(
    *, has_prices: bool = True, model_error: float = -0.012, workload: str = "shop/web", source: str = CAPTURES
) -> ReplayReport:
    """Returns a week: on the first day nothing is saved, on each other one 24 core hours more."""
    names = ((RECORDED, None), ("autoscaler at 50 %", 0.0), (DETAILS, 1.0))
    days = [
        figures(name, None if factor is None else factor * 24.0 * number, day=day, has_prices=has_prices)
        for name, factor in names
        for number, day in enumerate(DAYS)
    ]
    pools = [
        figures(name, None if factor is None else factor * 252.0, cores=3360.0, pool=pool, has_prices=has_prices)
        for name, factor in names
        for pool in POOLS
    ]
    return ReplayReport(
        cluster="0c7f4a1e" if source == CAPTURES else "",
        source=source,
        since="2026-11-16T00:00:00Z",
        until="2026-11-23T00:00:00Z",
        hours=168.0,
        every_seconds=300,
        rounds=2016,
        pod_states=51_000,
        trimtab_version="0.1.0",
        command="trimtab replay --captures captures",
        details=DETAILS,
        repeats=1,
        saved_least=504.0,
        saved_most=504.0,
        model_error=model_error,
        own_drains=0,
        measured_error="measured elsewhere",
        variants=[
            figures(name, None if factor is None else factor * 504.0, cores=6720.0, has_prices=has_prices)
            for name, factor in names
        ],
        days=days,
        pools=pools,
        pool_days=[
            figures(
                name, None if factor is None else factor * 12.0, cores=480.0, day=day, pool=pool, has_prices=has_prices
            )
            for day in DAYS
            for pool in POOLS
            for name, factor in names
        ],
        best_day=DAYS[-1],
        worst_day=DAYS[0],
        workloads=[
            ReplayedWorkload(workload=workload, evictions=20),
            ReplayedWorkload(workload="data/db", evictions=10),
        ],
        missing=[ReplayGap(what="short pods", changes="fewer purchases")],
        notes=["a note"],
    )
