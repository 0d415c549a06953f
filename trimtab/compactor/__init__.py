"""How is a plan carried out, with nobody watching?

    watch → view → plan … wait … fresh view → recheck → actuator → record

Decisions are made in `trimtab.compaction`, of values; here they are done. One process leads, by a Lease; what it
needs to go on after a crash is in the cluster: what undoes a cordon is on the node, the rest in a ConfigMap per pool.

    settings           what can be set
    cluster_reader     the watch, read as one view
    actuator           what can be done to a cluster, and the dry run that does nothing
    kube_actuator      the one that does it
    pool_state_store   what each pool remembers, in one ConfigMap per pool
    drainer            the next step of every drain
    planner            the plan, and the drains that start with it
    soft_taint         successors kept off the nodes that go next
    readmission        what policies would give evicted pods now
    node_signatures    which annotations and taints of nodes are believed
    loop, error_guard  one round after the other; errors of ours that keep no pool from its turn
    events, metrics    records as Events, and as numbers
    process            all of it wired: leader, signals, the end
"""
