"""docs/reference/metrics.md: every metric, from the registries."""

from collections.abc import Iterable

from deploy.observe.exported import Metric, everything
from docs.pages.sentences import first_sentence

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
        "What each process exports for Prometheus, with the labels in brackets. A name that ends in `_total` is a "
        "counter,",
        "every other one a gauge if nothing else is said. A histogram has `_bucket` (with the label `le`), `_count` "
        "and",
        "`_sum`. A label that users could fill (policy, pool, reason) has 200 values at the most, every further one is",
        "`other`. NaN is Prometheus' word for unknown. Metrics of 0 or 1 say whether something is so.\n",
        "After a change of leaders the old leader's page keeps its last numbers: join with its `…_leading`, as",
        "[the rules and dashboards](../how-to/see-it.md) do.\n",
    ]
    for process, where in _WHERE.items():
        lines += [f"## trimtab {process}\n", f"{where}\n", *_list(m for m in found if m.process == process), ""]
    return "\n".join(lines)


def _list(metrics: Iterable[Metric]) -> list[str]:
    return [f"- `{one.name}`{_describe_labels(one)}: {first_sentence(one.says)}" for one in metrics]


def _describe_labels(metric: Metric) -> str:
    words = [*(["histogram"] if metric.kind == "histogram" else []), *(f"`{label}`" for label in metric.labels)]
    return f" ({', '.join(words)})" if words else ""
