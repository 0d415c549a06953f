"""Readers of usage: the only source of samples.

Sources are Prometheus and compatible servers, files, the cluster's own metrics, and the VPA's checkpoints. Every reader
gives series of single pods' containers; `owners` finds the workload of each.

    series                 the series of one container of one pod, without duplicates, resets and gaps
    owners, cluster_label  the workload of a pod, and the cluster of a series
    files                  CSV, Parquet, saved responses of Prometheus
    prometheus             queries in parts, over `http_client`
    prometheus_response    the decoding of its responses, which holds one series at a time as objects
    metrics_api, kubelet   current usage, not history: the metrics API, the summary of every kubelet
    oom_kills              OOM kills
    vpa_checkpoints        the usage and the recommendations that a VPA stored
"""
