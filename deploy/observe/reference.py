"""docs/reference/metrics.md: every metric, from the registries."""

from collections import Counter

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


_HEAD = """\
# Metrics

What each process exports for Prometheus, with the labels in brackets. A name that ends in `_total` is a counter, every
other one a gauge if nothing else is said. A histogram has `_bucket` (with the label `le`), `_count` and `_sum`. A label
that users could fill (policy, pool, reason) has 200 values at the most, every further one is `other`. NaN is
Prometheus' word for unknown. The unit of a metric is at the end of its name or in its text.

After a change of leaders the old leader's page keeps its last numbers: join with its `…_leading`, as
[the rules and dashboards](../how-to/see-it.md) do.

In every process:

"""
_COUNT = "The number of "


def page() -> str:
    found = everything()
    processes = Counter(one.name for one in found)
    common = {one.name: one for one in found if processes[one.name] == len(_WHERE)}
    lines = [_HEAD + "\n".join(map(_describe, common.values())) + "\n"]
    for process, where in _WHERE.items():
        own = [one for one in found if one.process == process and one.name not in common]
        lines += [f"## trimtab {process}\n", f"{where}\n", *map(_describe, own), ""]
    return "\n".join(lines)


def _describe(metric: Metric) -> str:
    labels = [*(["histogram"] if metric.kind == "histogram" else []), *(f"`{label}`" for label in metric.labels)]
    brackets = f" ({', '.join(labels)})" if labels else ""
    text = first_sentence(metric.says).removeprefix(_COUNT)
    return f"- `{metric.name}`{brackets}: {text[0].upper()}{text[1:]}"
