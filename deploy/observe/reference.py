"""docs/reference/metrics.md: every metric, from the registries."""

from collections.abc import Iterable

from deploy.observe.exported import Metric, everything

_WHERE = {
    "webhook": "`/metrics` on its serving port, over TLS. Each replica has its own figures.",
    "compactor": "`/metrics` on `TRIMTAB_COMPACTOR_LISTEN`. Only the leader has figures of pools, and"
    " counts them while it is scraped.",
    "watchdog": "`/metrics` on `TRIMTAB_WATCHDOG_LISTEN`. Only the leader has more figures than its own.",
    "metrics-api": "`/metrics` on its serving port, over TLS. Each replica has its own figures.",
    "recommender": "`/metrics` on `TRIMTAB_RECOMMENDER_LISTEN`. Only the leader has more figures than its own.",
}


def page() -> str:
    found = everything()
    lines = [
        "# Metrics\n",
        "What each process exports for Prometheus. A label that users could fill (policy, pool, reason) has 200 values",
        "at the most, every further one is `other`. NaN is Prometheus' word for unknown. Names of counters end in",
        "`_total`; a histogram has `_bucket` (with the label `le`), `_count` and `_sum`.\n",
        "After a change of leaders the old leader's page keeps its last numbers: join with its `…_leading`, as",
        "[the rules and dashboards](../how-to/see-it.md) do.\n",
    ]
    for process, where in _WHERE.items():
        lines += [f"## trimtab {process}\n", f"{where}\n", *_table(m for m in found if m.process == process), ""]
    return "\n".join(lines)


def _table(metrics: Iterable[Metric]) -> list[str]:
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels) or '–'} | {one.unit} "
        f"| {one.says} |"
        for one in metrics
    ]
    return ["| metric | type | labels | unit | what it means |", "|---|---|---|---|---|", *rows]
