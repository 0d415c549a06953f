"""Where was usage written down?

The only source of samples: Prometheus and what speaks like it, files, the cluster's own metrics, the VPA's
checkpoints. Every reader gives series of single pods' containers; `owners` says which workload each belongs to.

    series                 one container of one pod: cleaned of duplicates, resets and gaps
    owners, cluster_label  which workload, and which cluster, is this pod of?
    files                  CSV, Parquet, saved answers of Prometheus
    prometheus             queries in pieces, over `http_client`
    prometheus_response    what it answers, read series by series without ever holding it as objects
    metrics_api, kubelet   the moment, not history: the metrics API, every kubelet's summary
    oom_kills              kills for want of memory
    vpa_checkpoints        what a VPA wrote down, and what it recommends
"""
