"""Searches for the set of nodes that can be drained together, and for the target node of each of their pods.

problem            the input of a search, read from the cluster model once
reserved_capacity  capacity kept for pods that do not exist yet
drain_order        what each node saves, the order in which nodes are tried, the waves that disruption budgets allow,
                   and the replay of a plan move by move
pool_limits        minimum sizes and headroom of pools, node groups and zones
drain_search       the search itself
strategy           searches over two orders, and improvements of the better result
preferences        chooses, among the nodes on which a pod fits, the node that the pod prefers
upper_bound        an upper bound on the savings of any plan
"""
