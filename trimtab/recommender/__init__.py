"""What does every container use, and where is it published?

    settings            what can be set, with the reason for each default
    pod_watcher         the watches: which owner has a pod, and what was killed for want of memory
    collector           usage into the history: the metrics API moment by moment, or Prometheus with all it has
    write_budget        how much may be written now
    sharded_configmaps  shards among ConfigMaps of our namespace; what is damaged is kept aside
    checkpointer        the history, stored
    publisher           recommendations, written where they changed beyond a tolerance
    loop                collect, publish, store; again and again
    metrics             the recommender in numbers
    process             one replica: election, pages, watches; or one round and the end

It touches no pod and no workload: the only things it writes are ConfigMaps of its own and its Lease.
"""
