"""Which nodes can go, in which order, and where does every pod go?

Decisions only: a snapshot, settings and the moment in; a plan that says why out. Nothing is cordoned or evicted here:
`trimtab.compactor` does that.

    blockers               may this pod move?
    candidates             may this node be tried, and may its pool be planned now?
    search/                which set of nodes goes together, and where their pods go
    plan, plan_types       a list of waves, and a reason for every node that stays; the values these are made of
    plan_variants          plans of the same cluster with one thing changed
    explain                the chain of reasons for one node or pod, in words
    recheck                are the steps of a round still right, a moment later, together?
    simulate               a plan carried out on a simulated cluster, round by round
    pool_usage             what each pool has, how full it is, and what it costs
    karpenter,             reports: nodes that Karpenter consolidates itself; pods on nodes that cost more than they
    misplaced_pods         need
    drain/                 of a drain that is under way: its next step, and what is remembered
"""
