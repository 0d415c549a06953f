"""Which nodes can go, in which order, and where does every pod go?

Decisions only: a snapshot, settings and the moment in; a plan that says why out. Nothing is cordoned or evicted here.

    blockers      may this pod move? said: what an annotation that means "leave it" says
    candidates    may this node be tried, and may its pool be planned now?
    search/       which set of nodes goes together, and where their pods go
    plan          all of it: a list of waves, and a reason for every node that stays; values: what that is made of
    explain       the chain of reasons for one node or pod, in words
    recheck       are the steps of a round still right, a moment later, together?
    simulate      a plan carried out on a simulated cluster, round by round
    observations  what earlier rounds saw
    holdings      what each pool has, and how full it is
    drain/        of a drain that is under way: its next step, and what is remembered
"""
