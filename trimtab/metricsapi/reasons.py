"""Why a metric has no value, and why there is no proposal for an HPA."""

from trimtab.cluster.reason import Code

SERIES_MISSING = Code(
    "metric-series-missing",
    "The scraped body has no series with the name and the labels of the rule: no value is served, and no zero.",
    "Compare `series` and `labels` of the rule with what the pod exposes. Many counters appear with the first event.",
)
BODY_MALFORMED = Code(
    "metric-body-malformed",
    "A line of the wanted series, or the whole body, is not in Prometheus' text format. A sum without it would be"
    " wrong, so no value is served.",
    "Fetch the pod's metrics by hand: the sentence has the line.",
)
BODY_TOO_LARGE = Code(
    "metric-body-too-large",
    "A scraped body, one of its lines, or the number of its series exceeds the limit.",
    "Expose less at this path, or serve the metric with `from: query`.",
)
SCRAPE_FAILED = Code(
    "metric-scrape-failed",
    "A pod could not be scraped: no connection, a certificate that is not trusted, another status than 200, or a"
    " response that was cut short.",
    "The sentence has the cause. A NetworkPolicy in the pod's namespace must admit the metrics API.",
)
SCRAPE_FILE_MISSING = Code(
    "metric-scrape-file-missing",
    "A rule names a token or an authority that is not in the scrape Secret: the pod is not scraped.",
    "Add the file to the Secret `trimtab-metrics-scrape`, or correct the name in the rule.",
)
QUERY_FAILED = Code(
    "metric-query-failed",
    "Prometheus did not answer the query of a rule, or not with one value for each pod.",
    "Run the query by hand. Each result needs the labels `namespace` and `pod`, as `sum by (namespace, pod) (…)` gives"
    " them.",
)
FIRST_SAMPLE = Code(
    "metric-needs-second-sample",
    "A rate needs two samples, and this pod has fewer.",
    "Wait for the next scrape.",
)
STALE_SAMPLE = Code(
    "metric-sample-stale",
    "The newest sample is older than the `maxAge` of the rule: no value is served, and no zero.",
    "See why the pod is not scraped, or the query gives nothing for it: `trimtab_metrics_api_failures_total`.",
)
WIDE_GAP = Code(
    "metric-sample-gap",
    "The two newest samples are so far apart that their rate says nothing about now.",
    "Wait for the next scrape.",
)
CLOSE_SAMPLE = Code(
    "metric-sample-too-close",
    "A sample is too close to the one before it: their rate would be mostly noise.",
    "Nothing. The next sample counts.",
)
TOO_LITTLE_HISTORY = Code(
    "hpa-history-too-short",
    "There are too few moments at which both the rate and the cpu of a pod are known.",
    "Give a longer history.",
)
HISTORY_TOO_FLAT = Code(
    "hpa-history-too-flat",
    "The rate hardly changed, so nothing says how much cpu a request costs.",
    "Give a history with a quiet and a busy time, such as a whole day.",
)
CPU_UNRELATED = Code(
    "hpa-cpu-unrelated-to-metric",
    "The cpu of the pods does not follow the metric: as a measure of load it would mislead the HPA.",
    "Choose another metric, or one per kind of request.",
)
REQUEST_TOO_SMALL = Code(
    "hpa-request-below-base",
    "The wanted part of the cpu request is less than what a pod needs without any request.",
    "Raise the cpu request, or the utilization.",
)
