"""Where was usage written down?

The only door to samples: Prometheus and what speaks like it, files, the cluster's own metrics, the VPA's
checkpoints. Every reader gives series of single pods' containers; `owners` says which workload each belongs to.

    series       one container of one pod: cleaned of duplicates, resets and gaps
    owners       which workload is this pod of?
    files        CSV, Parquet, saved answers of Prometheus
    prometheus   queries in pieces
    answer       what it answers, read series by series without ever holding it as objects
    metrics      the metrics API: the moment, not history
    kubelet      every kubelet's summary: the moment, too
    checkpoints  what a VPA wrote down, and what it recommends
"""
