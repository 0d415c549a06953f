"""A process of which one replica works, and the others wait for its Lease: what the compactor, the watchdog and the
recommender have in common.

    leader_process     one replica: its settings, its part in the election, its HTTP pages, how it waits and ends
    worker             runs a replica; a worker says what the replica does while it leads
    worker_metrics     the metrics that every such process has
    policy_files       policies from files, for processes that do not read them in the cluster
"""
