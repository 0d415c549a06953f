"""Decides the drain that a user orders: nodes that have to be emptied, whether that saves anything or not.

order_rules            what the user permits, such as the eviction of pods without an owner
ordered_evictions      whether a pod may be evicted for an order, and what would permit it
order_plan             the waves of an order, the target of each pod, what waits, and where room is missing
record                 the annotation that an order writes on a node in the same patch as the cordon
node_history           what one run has observed of the nodes of the order
next_round             the next writes of an order, from the cluster as it is now
order_object           a DrainOrder: the order of a user to the compactor, as an object of the cluster
order_definition       its CustomResourceDefinition
author_policy          the admission policy that ties its author to the user who creates it
order_nodes            the nodes that it means
order_limits           what the settings of pools permit it now
order_status           what its status says

The steps of a drain itself (turns, budgets, successors that have to be ready first) are those of `compaction.drain`.
"""
