"""The compactor: executes plans unattended.

    watch → view → plan … wait … new view → recheck → actuator → record

`trimtab.compaction` decides, and this package executes. One process leads, by a Lease. All that a new leader needs
after a crash is stored in the cluster. A drain's annotation, with which a cordon can be undone, is on the node;
everything else is in one ConfigMap per pool.

    settings                 the settings of the process
    cluster_reader           the watched objects as one view
    use_reader               what pods that request nothing use now
    actuator                 the writes to a cluster, and the dry run that writes nothing
    kube_actuator            the actuator that writes through the API server
    pool_state_store         the state of each pool, in one ConfigMap per pool
    drainer                  executes the next step of every drain
    drain_in_progress        one drain: its node and annotation in the present view
    group_dry_run            asks the API server about all evictions of a group before the first
    resizer, resize_reader   proposes and executes resizes of running pods, and reads what it needs for them
    step_runner              what holds for the next step of every drain and of every resize
    planner                  makes the plan, and starts drains
    soft_taint               the taints that keep successors off nodes that are drained next or reserved
    readmission_state        what evicted pods would request if they were admitted now
    successor_requests       the watches from which that is known
    node_signatures          the signing keys of the compactor
    loop, error_guard        runs round after round; an unexpected error in one pool does not stop the others
    decision_events, metrics  history entries as Events, and as metrics
    notifications            what the compactor did and wants, for a chat room or another program
    in_memory                the same loop in a cluster in memory, for simulations and replays
    process                  connects all parts: leader election, signals, shutdown
"""
