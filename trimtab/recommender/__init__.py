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
"""
