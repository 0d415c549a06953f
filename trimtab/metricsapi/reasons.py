"""Reasons why a metric has no value, and why no HPA can be proposed."""

from trimtab.cluster.reason import Code

SERIES_MISSING = Code(
    "metric-series-missing",
    "The scraped body has no series with the name and the labels of the rule, so no value is served, not even zero.",
    "Compare `series` and `labels` of the rule with the metrics of the pod. Many counters appear only with the "
    "first event.",
)
BODY_MALFORMED = Code(
    "metric-body-malformed",
    "A line of the series, or the whole body, is not in Prometheus' text format. Without this line a sum would "
    "be wrong, so no value is served.",
    "Read the metrics page of the pod yourself; the message quotes the line.",
)
BODY_TOO_LARGE = Code(
    "metric-body-too-large",
    "The scraped body, one of its lines, or the number of its series exceeds a limit of Trimtab.",
    "Expose fewer series at this path, or serve the metric with `from: query`.",
)
SCRAPE_FAILED = Code(
    "metric-scrape-failed",
    "A pod could not be scraped: no connection, a certificate that is not trusted, another status than 200, or a"
    " response that was cut short.",
    "The message names the cause. A NetworkPolicy in the pod's namespace must admit the metrics API.",
)
SCRAPE_FILE_MISSING = Code(
    "metric-scrape-file-missing",
    "A rule names a token or an authority that is not in the Secret `trimtab-metrics-scrape`, so the pod is not "
    "scraped.",
    "Add the file to the Secret `trimtab-metrics-scrape`, or correct the name in the rule.",
)
QUERY_FAILED = Code(
    "metric-query-failed",
    "Prometheus did not answer the query of a rule, or did not return one value for each pod.",
    "Run the query by hand. Each result needs the labels `namespace` and `pod`, as `sum by (namespace, pod) (…)` gives"
    " them.",
)
FIRST_SAMPLE = Code(
    "metric-needs-second-sample",
    "A rate needs two samples, but fewer samples of this pod are known.",
    "Wait for the next scrape.",
)
STALE_SAMPLE = Code(
    "metric-sample-stale",
    "The newest sample is older than the `maxAge` of the rule, so no value is served, not even zero.",
    "Find out why the pod is not scraped, or why the query returns nothing for it: see "
    "`trimtab_metrics_api_failures_total`.",
)
WIDE_GAP = Code(
    "metric-sample-gap",
    "The two newest samples are so far apart that their rate does not describe the present.",
    "Wait for the next scrape.",
)
CLOSE_SAMPLE = Code(
    "metric-sample-too-close",
    "A sample is too close in time to the previous one, so their rate would be inaccurate.",
    "Nothing to do: Trimtab uses the next sample.",
)
TOO_LITTLE_HISTORY = Code(
    "hpa-history-too-short",
    "There are too few points in time at which both the rate and the cpu of a pod are known.",
    "Provide a longer history of the rate and the cpu.",
)
HISTORY_TOO_FLAT = Code(
    "hpa-history-too-flat",
    "The rate hardly changed during the history, so Trimtab cannot compute how much cpu a request costs.",
    "Provide a history with a quiet and a busy time, such as a whole day.",
)
CPU_UNRELATED = Code(
    "hpa-cpu-unrelated-to-metric",
    "The cpu of the pods does not depend on the metric, so the metric does not measure the load.",
    "Choose another metric, or use separate metrics for different kinds of requests.",
)
REQUEST_TOO_SMALL = Code(
    "hpa-request-below-base",
    "The target share of the cpu request is less than a pod needs without any load.",
    "Raise the cpu request, or the utilization.",
)
