"""The recommender: the process that measures usage, stores it and publishes recommendations.

    settings            all settings, with the reason for each default
    pod_watcher         the watches: the owner of each pod, and OOM kills
    collector           adds usage to the history: samples of the metrics API, or all that Prometheus has
    write_budget        the limit of what is written to the API server
    sharded_configmaps  shards among the ConfigMaps of Trimtab's namespace; copies of damaged ones
    checkpointer        stores the history
    publisher           publishes recommendations that changed beyond a tolerance
    reservations        measures kubelets and container runtimes, and publishes a reservation for each pool
    reservation_sources the nodes and samples of that measurement, and its ConfigMaps
    loop                the rounds: collect, publish, store
    metrics             the recommender's metrics
    process             one replica: election, pages, watches; or a single round

It changes no pod and no workload: it only writes ConfigMaps of its own and its Lease.

What is stored, and why it is safe to stop at any moment:

- A complete day never changes, so it is written once, an hour after its end. Later values go into another ConfigMap of
  that day; of two with the same container, the one with more values counts. What still changes is written every ten
  minutes, the part that was written longest ago first, and at shutdown.
- The shard of a workload is the hash of its namespace (for recommendations: of the workload) modulo a power of two,
  which doubles when a shard would exceed 128 KB (64 KB). A workload leaves a shard only after its new shard is written:
  after a crash in between it is stored twice, never nowhere.
- Collection does not wait for publishing: samples wait in a queue of at most one hour.
- Nothing counts twice: of a pod only samples newer than its last one count. A memory peak enters the histogram when its
  interval of six hours ends. Containers that were not observed for two weeks are deleted; a recommendation without a
  histogram only if the histograms cover the whole window.
- Two leaders: each write checks the Lease first. The next leader waits until no write can be in progress, and reads
  everything again.
"""
