"""Ranks machine types: which one costs least for a workload, and why.

workload    what a pool's pods request together, per GiB of memory, and what the DaemonSets of each node take
capacity    how much of the workload one node of a type holds, by each limit, and which limit binds
score       the price of that much workload: the share of the price that is used, and the surcharges
rank_types  all types in order, and why the others are left out; whether a switch pays
type_sets   the cheapest set of at most two types, in whole nodes of each zone
packing     the real pods on empty nodes of a type, by kube-scheduler's filters
break_even  the ratio of memory to cores at which one family becomes cheaper than another
priorities  the priorities of node groups for the cluster autoscaler's expander
demotion    a priority map in which groups for which the cloud has no nodes come last for an hour
commitments  what nodes hold that are paid for whether they run or not
reasons     every reason code of this package
"""
