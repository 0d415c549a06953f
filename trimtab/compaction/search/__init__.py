"""Searches for the set of nodes that can be drained together, and for the places of their pods.

problem            the input of a search, read from the cluster model once
reserved_capacity  capacity kept for pods that do not exist yet
node_order         what each node saves, and the order in which nodes are tried
pool_limits        minimum sizes and headroom of pools, node groups and zones
drain_search       the search itself
strategy           searches over two orders, and improvements of the better result
preferences        among the places that fit, the one that the pods prefer
waves              the waves of a plan, with disruption budgets as a ledger; the replay of a plan move by move
upper_bound        an upper bound on the savings of any plan
"""
