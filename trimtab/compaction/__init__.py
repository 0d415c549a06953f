"""Decides which nodes can be drained, in which order, and where each of their pods is placed.

The package only decides: from a snapshot, settings and a time it calculates a plan with a reason for every node. It
cordons and evicts nothing; `trimtab.compactor` does.

    blockers               whether a pod may be evicted
    candidates             whether a node may be tried, and whether its pool may be planned now
    search/                the set of nodes that can be drained together, and the targets of their pods
    plan                   the plan: the nodes to drain, in waves, and a reason for every node that stays
    plan_types             the values of which a plan consists
    plan_variants          plans of the same cluster with one setting changed
    explain                the chain of reasons for one node or pod, as text
    recheck                whether the steps of a round are still valid, together, just before they are executed
    reserved_targets       the targets that the first wave does not need
    simulate               a plan executed on a simulated cluster, round by round
    pool_usage             the size, usage and cost of each pool
    karpenter              a report: nodes that Karpenter consolidates itself
    misplaced_pods         a report: pods on nodes where they cost more than necessary
    drain/                 a drain in progress: its next step, and the stored state
"""
