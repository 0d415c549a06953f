"""Which set of nodes goes together, and where does every pod go?

problem            everything a search needs, read off the cluster model once
reserved_capacity  room kept for pods that do not exist yet
node_order         what each node saves, and in which order nodes are tried
pool_limits        minimum sizes and room that is kept, of pools, node groups and zones
drain_search       which set of nodes goes together
strategy           searches over several orders, and improvements of the best set
preferences        among places that fit, the one the pods prefer
waves              which node goes in which wave, with budgets as one ledger; is the plan possible move by move?
upper_bound        how much could go at all
"""
