"""What would have been: recorded days of a cluster, run again in the simulation of a churn.

recording        what a series of captures shows: the lives of pods and nodes, in stretches without gaps
demand           a stretch → when which workload wanted how many pods, and which machines were lost
replay_cluster   the cluster in memory that meets this demand
replay_scheduler its scheduler, for pods with all their requirements
daily_outcome    what happened on each day and in each pool, of a recording and of its replay
"""
