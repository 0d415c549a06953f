"""Simulates what autoscalers would have done: the VPA for a workload's usage, the cluster autoscaler for a cluster's
nodes.

vpa_updater       when the VPA's updater acts on a pod, and what its webhook writes into the successor
simulate_vpa      a recommender's and an updater's flags over the series of one workload
propose_vpas      VPAs to add, to change and to remove, as manifests
cluster_history   snapshots and the lifetimes of pods → the history for a replay
replay_nodes      the cluster autoscaler's scale-down, replayed on the nodes and the demand of a history
propose_autoscaler  flags of the cluster autoscaler, compared by their replays
"""
