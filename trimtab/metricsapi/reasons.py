"""Reasons why a metric has no value, and why no HPA can be proposed."""

from trimtab.cluster.reason import Code

SERIES_MISSING = Code(
    "metric-series-missing",
    "The scraped text has no series with the rule's name and labels. No value is served, not even zero.",
    "Compare `series` and `labels` of the rule with the pod's metrics. Many counters appear only with the first event.",
)
BODY_MALFORMED = Code(
    "metric-body-malformed",
    "The scraped text is not in Prometheus' format. Without the line a sum would be wrong, so no value is served.",
    "Read the metrics page of the pod yourself; the message quotes the line.",
)
BODY_TOO_LARGE = Code(
    "metric-body-too-large",
    "The scraped text exceeds a limit of Trimtab. It is too long, or has a line too long or too many series.",
    "Expose fewer series at this path, or serve the metric with `from: query`.",
)
SCRAPE_FAILED = Code(
    "metric-scrape-failed",
    "A pod could not be scraped. It did not accept the connection, its certificate is not trusted, it answered with "
    "another status than 200, or its response was cut short.",
    "See the cause in the message; a NetworkPolicy must admit the metrics API. It is in the pod's namespace.",
)
SCRAPE_FILE_MISSING = Code(
    "metric-scrape-file-missing",
    "A rule names a file that the Secret `trimtab-metrics-scrape` lacks, so the pod is not scraped. The file has a "
    "token or an authority.",
    "Add the file to the Secret, or correct its name in the rule.",
)
QUERY_FAILED = Code(
    "metric-query-failed",
    "Prometheus did not answer a rule's query, or not with one value for each pod.",
    "Run the query by hand. Each result needs the labels `namespace` and `pod`, as `sum by (namespace, pod) (…)` "
    "gives them.",
)
FIRST_SAMPLE = Code(
    "metric-needs-second-sample",
    "A rate needs two samples, but fewer samples of this pod are known.",
    "Wait for the next scrape.",
)
STALE_SAMPLE = Code(
    "metric-sample-stale",
    "The newest sample is older than the rule's `maxAge`. No value is served, not even zero.",
    "Find out why the pod is not scraped, or why the query returns nothing. See `trimtab_metrics_api_failures_total`.",
)
WIDE_GAP = Code(
    "metric-sample-gap",
    "The newest samples are too far apart for a rate that describes the present.",
    "Wait for the next scrape.",
)
CLOSE_SAMPLE = Code(
    "metric-sample-too-close",
    "Two samples are too close in time for an accurate rate.",
    "Nothing to do: Trimtab uses the next sample.",
)
TOO_LITTLE_HISTORY = Code(
    "hpa-history-too-short",
    "The rate and the cpu of a pod are known together too seldom.",
    "Provide a longer history of the rate and the cpu.",
)
HISTORY_TOO_FLAT = Code(
    "hpa-history-too-flat",
    "The rate hardly changed, so the cpu of one request cannot be computed.",
    "Provide a history with a quiet and a busy time, such as a whole day.",
)
CPU_UNRELATED = Code(
    "hpa-cpu-unrelated-to-metric",
    "The cpu of the pods does not depend on the metric. So the metric does not measure the load.",
    "Choose another metric, or one for each kind of request.",
)
REQUEST_TOO_SMALL = Code(
    "hpa-request-below-base",
    "The target share of the cpu request is less than an idle pod needs.",
    "Raise the cpu request, or the utilization.",
)
