"""What pods state about their own evictions: windows, a cost and a daily number, within the bounds of the pool.

term_ledger     what the compactor recorded: evictions of workloads, and how long terms have kept nodes
term_obstacles  whether the terms of a pod permit its eviction now
daily_numbers   how many evictions of the day the nodes of one plan leave to workloads
stated_costs    the costs that the pods of nodes state
reasons         the codes
"""
