"""Reads usage; all samples of usage come from this package.

Sources are Prometheus and compatible servers, files, the cluster's own metrics, and the VPA's checkpoints. Every reader
yields series of containers of single pods; `owners` finds the workload of each pod.

    series                 the series of one container of one pod, without duplicates, resets and gaps
    owners, cluster_label  the workload of a pod, and the cluster of a series
    files                  CSV, Parquet, saved responses of Prometheus
    daily_store,           a history of daily rows as Parquet files, and its daily extension from a server
    daily_ingest
    prometheus             queries in parts, over `http_client`
    prometheus_response    the decoding of its responses, which holds one series at a time as objects
    prometheus_overhead,   what kubelets and container runtimes use themselves
    kubelet_overhead
    metrics_api, kubelet   current usage, not history: the metrics API, the summary of every kubelet
    pod_pressure           how much the processes of pods wait for cpu or memory
    oom_kills              OOM kills
    vpa_checkpoints        the usage and the recommendations that a VPA stored
"""
